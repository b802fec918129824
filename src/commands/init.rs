//! `supervisor init`: looks for models, writes your models.toml with a chain that can be walked now, and offers to
//! register. Nothing is overwritten without `--force`, no model is asked without leave, and the file is shown first.
//! Knows what is said and asked at the terminal. What is written is made in `init/proposal.rs`.

mod dialog;
mod proposal;
mod settings_file;

use crate::built_in;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;

use supervisor_models::Env;
use supervisor_models::discover;
use supervisor_models::discover::{FoundServer, LookPlaces};
use supervisor_models::installed;
use supervisor_models::installed::{InstalledAgent, Login, NotUsable};
use supervisor_process::{End, Launcher, Spec};
use supervisor_settings as routing;
use supervisor_settings::Sources;
use supervisor_text::words;

use dialog::Dialog;
use proposal::{ClaudeState, Proposal};
use settings_file::SettingsFile;

/// Find your models and write the settings for them
///
/// Looks for Ollama, llama-swap, llama.cpp, LM Studio, vLLM and LiteLLM on their usual ports, and for `claude` and its
/// login. Exit code 0 if the settings are in place, 1 if nothing was written.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Write without asking; nothing is overwritten, no model asked and nothing registered unless that is said too
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

    /// Look at this address instead of the usual ports; may come again
    #[arg(long, value_name = "URL")]
    at: Vec<String>,
}

/// For a model to be loaded and to answer.
const CANARY: Duration = Duration::from_secs(180);

impl Init {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let file = SettingsFile::locate(&built_in::sources(config))?;
        let runtime = super::runtime::build_runtime()?;
        let mut dialog = Dialog::new(out, self.yes);
        let done = runtime.block_on(self.set_up(&file, &mut dialog));
        // A name lookup that never ends would hold an ordinary shutdown.
        runtime.shutdown_background();
        done
    }

    async fn set_up(
        &self,
        file: &SettingsFile,
        dialog: &mut Dialog<'_>,
    ) -> anyhow::Result<ExitCode> {
        let env = Env::of_this_program();
        let launcher = Launcher::this_program();
        let places = match self.at.as_slice() {
            [] => LookPlaces::usual(&env),
            named => LookPlaces::at(named.iter().cloned()),
        };
        let (mut servers, (claude, credentials)) = tokio::join!(
            discover::look(&places, &env),
            look_for_claude(&env, &launcher)
        );
        tell_servers(&servers, &places, dialog)?;
        let agent = tell_claude(&claude, dialog)?;

        if let Some((server, model)) = proposal::best_local(&servers) {
            self.ask_canary(&mut servers, server, model, &env, dialog)
                .await?;
        }
        let Some(proposal) = Proposal::of(&servers, agent) else {
            dialog.say("")?;
            dialog.say("no model was found, so there is nothing to write.")?;
            dialog.say(
                "start a model server (Ollama: `ollama serve`, then `ollama pull qwen3.6:27b`), or install `claude`",
            )?;
            dialog.say(
                "and log in with `claude auth login`; a server elsewhere is named with `--at http://host:port`.",
            )?;
            return Ok(ExitCode::from(1));
        };
        let proposal = proposal.with_credentials(credentials);
        let text = proposal.to_toml();
        file.check(&text)
            .context("the settings made from what was found cannot be used; please report this")?;
        let written = self.write(file, &text, dialog)?;
        if written {
            dialog.say(&format!("calls ask {}", words::list(proposal.chain(), 5)))?;
            self.offer_to_register(agent, &env, &launcher, dialog)
                .await?;
            dialog.say("`supervisor doctor` checks all of it; `supervisor explain` shows what is in effect.")?;
        }
        Ok(ExitCode::from(u8::from(!written)))
    }

    async fn ask_canary(
        &self,
        servers: &mut [FoundServer],
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
        let question = format!(
            "ask `{}` one short question, to see its real window? it is loaded for that",
            chosen.id
        );
        if !(self.canary || (chosen.window.is_none() && dialog.confirm(&question)?)) {
            return Ok(());
        }
        dialog.say(&format!("asking `{}` …", chosen.id))?;
        match discover::canary(&found, &chosen.id, env, CANARY).await {
            Ok(window) => {
                if window.is_some() {
                    chosen.window = window;
                }
                dialog.say(&format!("`{}` answers", chosen.id))?;
            }
            Err(why) => {
                dialog.say(&format!(
                    "`{}` gave no answer ({why}), so it is left out",
                    chosen.id
                ))?;
                models.remove(model);
            }
        }
        Ok(())
    }

    /// Shows what would change, and changes it if that is wanted. True if the file is as it should be.
    fn write(
        &self,
        file: &SettingsFile,
        text: &str,
        dialog: &mut Dialog<'_>,
    ) -> anyhow::Result<bool> {
        let path = file.path().display();
        let before = file.read()?;
        dialog.say("")?;
        if before.as_deref() == Some(text) {
            dialog.say(&format!("{path} holds these settings already"))?;
            return Ok(true);
        }
        dialog.print(&settings_file::diff(
            before.as_deref().unwrap_or_default(),
            text,
            &path.to_string(),
        ))?;
        if before.is_some() && !self.force {
            dialog.say(&format!(
                "{path} is there already and was left alone; `--force` replaces it and keeps it as .bak"
            ))?;
            return Ok(false);
        }
        if !dialog.agrees(&format!("write {path}?"))? {
            dialog.say("nothing was written; `--yes` writes without asking")?;
            return Ok(false);
        }
        file.write(text, before.as_deref())?;
        dialog.say(&format!("wrote {path}"))?;
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
                || dialog.confirm("register with Claude Code for all your projects?")?);
        if !wanted {
            dialog.say(&format!("to register it with Claude Code: {command}"))?;
            return Ok(());
        }
        let mut spec = Spec::new(argv, "/");
        spec.env = env.vars().clone();
        spec.limit = Duration::from_secs(60);
        let seen = launcher.run(spec, &CancellationToken::new()).await;
        match seen.end {
            End::Exited(0) => dialog.say("registered with Claude Code as `supervisor`")?,
            _ => {
                let said = format!("{}{}", seen.stdout.text(), seen.stderr.text());
                let said = words::cut_end(said.trim(), 300).into_owned();
                dialog.say(&format!("`claude mcp add` did not succeed: {said}"))?;
                dialog.say(&format!("by hand: {command}"))?;
            }
        }
        Ok(())
    }
}

/// Variables by which Claude is reached without a login. Workers are shown them only if the settings say so.
const CREDENTIALS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
];

/// What there is of `claude`, and the variables it needs to be logged in.
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
    installed::ask(
        &backend,
        env,
        launcher,
        installed::LIMIT,
        &CancellationToken::new(),
    )
    .await
}

fn tell_servers(
    servers: &[FoundServer],
    places: &LookPlaces,
    dialog: &mut Dialog<'_>,
) -> anyhow::Result<()> {
    match places.named() {
        _ if !servers.is_empty() => {}
        None => dialog.say("no model server answers on the usual ports")?,
        Some([]) => dialog.say("no address was looked at for model servers")?,
        Some(named) => {
            dialog.say(&format!(
                "no model server answers at {}",
                words::list(named.iter().map(String::as_str), 5)
            ))?;
        }
    }
    for server in servers {
        let at = format!("{} at {}", server.kind, server.address);
        match &server.models {
            Ok(models) if models.is_empty() => dialog.say(&format!("{at}: no model for text"))?,
            Ok(models) => {
                dialog.say(&format!("{at}: {}", words::count(models.len(), "model")))?;
                for model in models {
                    let loaded = if model.loaded { ", loaded" } else { "" };
                    let window = match &model.window {
                        Some(window) => {
                            format!("{} tokens, told by {}", window.tokens, window.told_by)
                        }
                        None => "its window is not told".into(),
                    };
                    dialog.say(&format!("  {}: {window}{loaded}", model.id))?;
                }
            }
            Err(why) => {
                dialog.say(&format!("{at}: {why}"))?;
                if why.is_setup() {
                    let var = discover::GATEWAY_KEY_VAR;
                    dialog.say(&format!(
                        "  hint: put its key into ${var} and run this again"
                    ))?;
                }
            }
        }
    }
    Ok(())
}

fn tell_claude(
    claude: &Result<InstalledAgent, NotUsable>,
    dialog: &mut Dialog<'_>,
) -> anyhow::Result<ClaudeState> {
    Ok(match claude {
        Ok(InstalledAgent {
            version,
            login: Login::Out,
            ..
        }) => {
            dialog.say(&format!(
                "claude {version}: not logged in; run `claude auth login` and this again to use it"
            ))?;
            ClaudeState::LoggedOut
        }
        Ok(InstalledAgent { version, .. }) => {
            dialog.say(&format!("claude {version}: ready"))?;
            ClaudeState::Ready
        }
        Err(why) => {
            dialog.say(&format!("claude: {why}"))?;
            ClaudeState::Missing
        }
    })
}
