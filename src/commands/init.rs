//! `supervisor init`: looks for models, writes models.toml with a chain that works now, and offers
//! to register the server. It shows the file first, overwrites nothing without `--force` and asks
//! no model without permission. This file has the dialog; `init/proposal.rs` creates the settings.

mod dialog;
mod hosted;
mod proposal;

use crate::built_in;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;

use supervisor_models::Env;
use supervisor_models::discover;
use supervisor_models::discover::{DiscoveredModel, DiscoveredServer, SearchAddresses};
use supervisor_models::installed;
use supervisor_models::installed::{InstalledAgent, Login, NotUsable};
use supervisor_process::{CommandSpec, End, Launcher};
use supervisor_settings as routing;
use supervisor_settings::Sources;
use supervisor_text::words;

use super::settings_file::{self, SettingsFile};
use super::signals::Signals;
use dialog::Dialog;
use hosted::HostedService;
use proposal::{ClaudeState, Proposal};

/// Find your models and write the settings for them
///
/// Looks for Ollama, llama-swap, llama.cpp, LM Studio, vLLM and LiteLLM on their usual ports, and for `claude` and its
/// login. Exit code 0 if the settings are in place, 1 if nothing was written.
#[derive(Debug, Default, Args)]
pub(super) struct Init {
    /// Write without asking; nothing is overwritten or registered unless you say so too
    #[arg(long)]
    yes: bool,

    /// Replace a file that is there; it is kept beside the new one, with `.bak` at its end
    #[arg(long)]
    force: bool,

    /// Ask the chosen local model one short question, to see that it answers and which window it is given
    #[arg(long)]
    canary: bool,

    /// Register with Claude Code for all your projects
    #[arg(long)]
    register: bool,

    /// Look at this address instead of the usual ports; can be repeated
    #[arg(long, value_name = "URL")]
    at: Vec<String>,
}

/// Time for a model to be loaded and to answer.
const CANARY_TIMEOUT: Duration = Duration::from_secs(180);

impl Init {
    /// `init --force`
    pub(super) fn replacing() -> Self {
        Self {
            force: true,
            ..Self::default()
        }
    }

    /// `init --register`
    pub(super) fn registering() -> Self {
        Self {
            register: true,
            ..Self::default()
        }
    }

    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let file = SettingsFile::locate(&built_in::sources(config))?;
        let runtime = super::runtime::build_runtime()?;
        let mut dialog = Dialog::new(out, self.yes);
        let exit_code = runtime.block_on(self.set_up(&file, &mut dialog));
        // A hanging name lookup would block a normal shutdown.
        runtime.shutdown_background();
        exit_code
    }

    async fn set_up(
        &self,
        file: &SettingsFile,
        dialog: &mut Dialog<'_>,
    ) -> anyhow::Result<ExitCode> {
        let is_written = Arc::new(AtomicBool::new(false));
        let mut signals = Signals::new()?;
        // A task of its own, because questions block until they are answered.
        tokio::spawn({
            let is_written = Arc::clone(&is_written);
            let path = file.path().display().to_string();
            async move {
                let signal = signals.next().await;
                let done = match is_written.load(Ordering::SeqCst) {
                    true => format!("{path} was written before."),
                    false => String::from("Nothing was written."),
                };
                let _ = writeln!(io::stderr(), "\nCancelled. {done}");
                std::process::exit(128 + i32::from(signal));
            }
        });
        let env = Env::from_process();
        let launcher = Launcher::this_program();
        let places = match self.at.as_slice() {
            [] => SearchAddresses::defaults(&env),
            named => SearchAddresses::at(named.iter().cloned()),
        };
        let (mut servers, (claude, credentials)) = tokio::join!(
            discover::find_servers(&places, &env),
            look_for_claude(&env, &launcher)
        );
        report_servers(&servers, &places, dialog)?;
        let agent = report_claude(&claude, dialog)?;

        if let Some((server, model)) = discover::best_local(&servers) {
            self.ask_canary(&mut servers, server, model, &env, dialog)
                .await?;
        }
        if let Some((server, model)) = discover::best_local(&servers) {
            widen_window(&mut servers[server], model, &env, dialog).await?;
        }
        let has_other = discover::best_local(&servers).is_some() || agent == ClaudeState::Ready;
        let hosted = offer_hosted(&env, has_other, dialog)?;
        let Some(proposal) = Proposal::of(&servers, agent, hosted) else {
            dialog.print_line("")?;
            dialog.print_line("No model was found, so nothing was written.")?;
            dialog.print_line(
                "Start a model server (Ollama: `ollama serve`, then `ollama pull qwen3-coder`), or install `claude` and \
                 log in with `claude auth login`, or set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY \
                 and GEMINI_API_KEY. A server elsewhere: `--at http://host:port`. Then run `supervisor init` again.",
            )?;
            return Ok(ExitCode::from(1));
        };
        let proposal = proposal.with_credentials(credentials);
        let text = proposal.to_toml();
        file.check(&text)
            .context("the settings made from what was found cannot be used; please report this")?;
        let unmeasured = proposal.unmeasured();
        if !unmeasured.is_empty() {
            dialog.print_line(&format!(
                "not measured, so assumed to take {} tokens, too few for most files: {}",
                proposal::OLLAMA_DEFAULT,
                words::list(unmeasured, 5)
            ))?;
        }
        let written = self.write(file, &text, dialog)?;
        is_written.store(written, Ordering::SeqCst);
        if written {
            dialog.print_line(&format!(
                "calls ask {}, in this order",
                words::list(proposal.chain(), 5)
            ))?;
        }
        if written || self.register {
            self.offer_to_register(agent, &env, &launcher, dialog)
                .await?;
            dialog.print_line(
                "`supervisor doctor` checks all of it; `supervisor explain` shows the settings.",
            )?;
        }
        Ok(ExitCode::from(u8::from(!written)))
    }

    async fn ask_canary(
        &self,
        servers: &mut [DiscoveredServer],
        server: usize,
        model: usize,
        env: &Env,
        dialog: &mut Dialog<'_>,
    ) -> anyhow::Result<()> {
        let found = servers[server].clone();
        let Ok(models) = &mut servers[server].models else {
            return Ok(());
        };
        let chosen = &mut models[model];
        let question = format!("Load `{}` now to measure its context window?", chosen.id);
        // A window that is not known would have to be guessed, and the guess is too small to work.
        let is_unknown = chosen.window.is_none() && server_tells_window(&found);
        if !(self.canary || (is_unknown && dialog.confirm_write(&question)?)) {
            return Ok(());
        }
        dialog.print_line(&format!("loading `{}` …", chosen.id))?;
        match discover::canary(&found, &chosen.id, env, CANARY_TIMEOUT).await {
            Ok(window) => {
                if window.is_some() {
                    chosen.window = window;
                }
                let tokens = chosen.window.as_ref().map(|window| window.tokens);
                let window = tokens.map(|n| format!(" with a context window of {n} tokens"));
                dialog.print_line(&format!(
                    "`{}` answers{}",
                    chosen.id,
                    window.unwrap_or_default()
                ))?;
            }
            Err(why) => {
                dialog.print_line(&format!(
                    "`{}` gave no answer ({why}), so it is left out",
                    chosen.id
                ))?;
                models.remove(model);
            }
        }
        Ok(())
    }

    /// Shows the change and applies it if the user agrees. Returns whether the file is up to date.
    fn write(
        &self,
        file: &SettingsFile,
        text: &str,
        dialog: &mut Dialog<'_>,
    ) -> anyhow::Result<bool> {
        let path = file.path().display();
        let before = file.read()?;
        dialog.print_line("")?;
        if before.as_deref() == Some(text) {
            dialog.print_line(&format!("{path} has these settings already"))?;
            return Ok(true);
        }
        dialog.print(&settings_file::diff(
            before.as_deref().unwrap_or_default(),
            text,
            &path.to_string(),
        ))?;
        if before.is_some() && !self.force {
            dialog.print_line(&format!(
                "{path} exists and was not changed; `--force` replaces it and keeps the old one as .bak"
            ))?;
            return Ok(false);
        }
        if !dialog.confirm_write(&format!("Write {path}?"))? {
            dialog.print_line("Nothing was written; `--yes` writes without asking.")?;
            return Ok(false);
        }
        file.write(text, before.as_deref())?;
        dialog.print_line(&format!("wrote {path}"))?;
        Ok(true)
    }

    async fn offer_to_register(
        &self,
        agent: ClaudeState,
        env: &Env,
        launcher: &Launcher,
        dialog: &mut Dialog<'_>,
    ) -> anyhow::Result<()> {
        let this = std::env::current_exe().context("this program's own path is not known")?;
        let argv = [
            "claude",
            "mcp",
            "add",
            "--scope",
            "user",
            "supervisor",
            "--",
        ]
        .map(String::from);
        let argv: Vec<String> = argv
            .into_iter()
            .chain([this.display().to_string(), "serve".into()])
            .collect();
        let command = argv.join(" ");
        let wanted = agent != ClaudeState::Missing
            && (self.register
                || dialog.confirm("Register with Claude Code for all your projects?")?);
        if !wanted {
            dialog.print_line(&format!("to register it with Claude Code: {command}"))?;
            return Ok(());
        }
        let mut spec = CommandSpec::new(argv, "/");
        spec.env = env.vars().clone();
        spec.limit = Duration::from_secs(60);
        let finished = launcher.run(spec, &CancellationToken::new()).await;
        match finished.end {
            End::Exited(0) => dialog.print_line("registered with Claude Code as `supervisor`")?,
            _ => {
                let output = format!("{}{}", finished.stdout.text(), finished.stderr.text());
                let output = words::cut_end(output.trim(), 300).into_owned();
                dialog.print_line(&format!("`claude mcp add` did not succeed: {output}"))?;
                dialog.print_line(&format!("by hand: {command}"))?;
            }
        }
        Ok(())
    }
}

/// The window that an Ollama model is given instead.
const WIDE_WINDOW: u32 = 32_768;

/// Whether the window can be read once a model is loaded.
fn server_tells_window(server: &DiscoveredServer) -> bool {
    use discover::ServerKind;
    matches!(
        server.kind,
        ServerKind::Ollama | ServerKind::LlamaSwap | ServerKind::LmStudio
    )
}

/// Offers a variant of the model with a usable window, where the server can make one, and warns
/// where it cannot.
async fn widen_window(
    server: &mut DiscoveredServer,
    model: usize,
    env: &Env,
    dialog: &mut Dialog<'_>,
) -> anyhow::Result<()> {
    let found = server.clone();
    let Ok(models) = &mut server.models else {
        return Ok(());
    };
    let narrow = models[model].clone();
    let tokens = narrow.window.as_ref().map(|window| window.tokens);
    let Some(tokens) = tokens.filter(|tokens| *tokens < discover::SMALL_WINDOW) else {
        return Ok(());
    };
    let id = &narrow.id;
    dialog.print_line(&format!(
        "`{id}` has a context window of {tokens} tokens, too small for most files."
    ))?;
    if found.kind != discover::ServerKind::Ollama {
        dialog.print_line(&format!(
            "Give it at least {WIDE_WINDOW} at the server, then run `supervisor init --force`."
        ))?;
        return Ok(());
    }
    let wide = format!("{}-{}k", id.trim_end_matches(":latest"), WIDE_WINDOW / 1024);
    let question = format!(
        "Create `{wide}` in Ollama: the same model with {WIDE_WINDOW} tokens, nothing to download?"
    );
    if !dialog.confirm(&question)? {
        dialog.print_line(&format!(
            "Start Ollama with OLLAMA_CONTEXT_LENGTH={WIDE_WINDOW}, then run `supervisor init --force`."
        ))?;
        return Ok(());
    }
    let made = discover::create_wide(&found, id, &wide, WIDE_WINDOW, CANARY_TIMEOUT).await;
    let measured = match made {
        Ok(()) => discover::canary(&found, &wide, env, CANARY_TIMEOUT).await,
        Err(why) => Err(why),
    };
    match measured {
        Ok(window) => {
            dialog.print_line(&format!("`{wide}` answers"))?;
            models.push(DiscoveredModel {
                id: wide,
                loaded: true,
                window,
            });
        }
        Err(why) => dialog.print_line(&format!(
            "`{wide}` cannot be used ({why}); start Ollama with OLLAMA_CONTEXT_LENGTH={WIDE_WINDOW} instead."
        ))?,
    }
    Ok(())
}

/// The services for which a key was found and which the user wants to use.
fn offer_hosted(
    env: &Env,
    has_other: bool,
    dialog: &mut Dialog<'_>,
) -> anyhow::Result<Vec<&'static HostedService>> {
    let mut wanted = Vec::new();
    for service in hosted::SERVICES {
        if env.get(service.key_var).is_none() {
            continue;
        }
        dialog.print_line(&format!(
            "{}: ${} is set; `{}` costs ${} in and ${} out per million tokens ({})",
            service.name,
            service.key_var,
            service.model,
            service.price_in,
            service.price_out,
            hosted::PRICES_OF
        ))?;
        // Without a terminal a key is used only where there is nothing else.
        let question = format!("Use {} with `{}`?", service.name, service.model);
        if dialog.confirm(&question)? || (dialog.assumes_yes() && !has_other && wanted.is_empty()) {
            wanted.push(service);
        }
    }
    Ok(wanted)
}

/// Variables that give access to Claude without a login. Workers get them only if the settings say
/// so.
const CREDENTIALS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
];

/// Finds `claude` and the variables it needs to be logged in.
async fn look_for_claude(
    env: &Env,
    launcher: &Launcher,
) -> (Result<InstalledAgent, NotUsable>, Vec<String>) {
    let by_login = ask_claude(env, launcher, Vec::new()).await;
    let set: Vec<String> = CREDENTIALS
        .iter()
        .filter(|name| env.get(name).is_some())
        .map(|&name| name.into())
        .collect();
    if !matches!(
        by_login,
        Ok(InstalledAgent {
            login: Login::Out,
            ..
        })
    ) || set.is_empty()
    {
        return (by_login, Vec::new());
    }
    match ask_claude(env, launcher, set.clone()).await {
        Ok(by_key) if !matches!(by_key.login, Login::Out) => (Ok(by_key), set),
        _ => (by_login, Vec::new()),
    }
}

async fn ask_claude(
    env: &Env,
    launcher: &Launcher,
    env_pass: Vec<String>,
) -> Result<InstalledAgent, NotUsable> {
    let built_in =
        routing::load(&Sources::built_in(built_in::MODELS_TOML)).map(|loaded| loaded.routing);
    let Some(mut backend) = built_in
        .ok()
        .and_then(|mut routing| routing.backends.remove("claude"))
    else {
        return Err(NotUsable::NotFound("claude".into()));
    };
    backend.env_pass = env_pass;
    installed::query(
        &backend,
        env,
        launcher,
        installed::TIMEOUT,
        &CancellationToken::new(),
    )
    .await
}

fn report_servers(
    servers: &[DiscoveredServer],
    places: &SearchAddresses,
    dialog: &mut Dialog<'_>,
) -> anyhow::Result<()> {
    match places.named() {
        _ if !servers.is_empty() => {}
        None => dialog.print_line("no model server answers on the usual ports")?,
        Some([]) => dialog.print_line("no address was looked at for model servers")?,
        Some(named) => {
            dialog.print_line(&format!(
                "no model server answers at {}",
                words::list(named.iter().map(String::as_str), 5)
            ))?;
        }
    }
    for server in servers {
        let at = format!("{} at {}", server.kind, server.address);
        match &server.models {
            Ok(models) if models.is_empty() => {
                dialog.print_line(&format!("{at}: no model for text"))?;
            }
            Ok(models) => {
                dialog.print_line(&format!("{at}: {}", words::count(models.len(), "model")))?;
                for model in models {
                    let loaded = if model.loaded { "loaded" } else { "not loaded" };
                    let window = match &model.window {
                        Some(window) if window.tokens >= 1024 => {
                            format!("{}k context", window.tokens / 1024)
                        }
                        Some(window) => format!("{} tokens of context", window.tokens),
                        None => "context unknown".into(),
                    };
                    dialog.print_line(&format!("  {}: {loaded}, {window}", model.id))?;
                }
            }
            Err(why) => {
                dialog.print_line(&format!("{at}: {why}"))?;
                if why.is_setup() {
                    let var = discover::GATEWAY_KEY_VAR;
                    dialog.print_line(&format!(
                        "  hint: put its key into ${var} and run this again"
                    ))?;
                }
            }
        }
    }
    Ok(())
}

fn report_claude(
    claude: &Result<InstalledAgent, NotUsable>,
    dialog: &mut Dialog<'_>,
) -> anyhow::Result<ClaudeState> {
    Ok(match claude {
        Ok(InstalledAgent {
            version,
            login: Login::Out,
            ..
        }) => {
            dialog.print_line(&format!(
                "claude {version}: not logged in; run `claude auth login` and this again to use it"
            ))?;
            ClaudeState::LoggedOut
        }
        Ok(InstalledAgent { version, login, .. }) => {
            let through = match login {
                Login::In { provider, .. } if !login.is_first_party() => {
                    format!(" through {provider}")
                }
                _ => String::new(),
            };
            dialog.print_line(&format!("claude {version}: ready{through}"))?;
            ClaudeState::Ready
        }
        Err(why) => {
            dialog.print_line(&format!("claude: {why}"))?;
            ClaudeState::Missing
        }
    })
}
