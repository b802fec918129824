//! Builds the settings from the servers that were found, with a comment on each part and a chain
//! that works now.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use supervisor_models::discover::{
    ContextWindow, DiscoveredModel, DiscoveredServer, ServerKind, best_local, is_claude,
};
use supervisor_text::words;

use super::hosted::HostedService;

/// Whether Claude can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaudeState {
    Ready,
    LoggedOut,
    Missing,
}

/// Ollama's default context window on a card with less than 24 GiB.
pub(super) const OLLAMA_DEFAULT: u32 = 4096;

/// The settings to write.
#[derive(Debug)]
pub(super) struct Proposal {
    backends: Vec<ProposedBackend>,
    chain: Vec<String>,
    agent: ClaudeState,
    /// Environment variables that Claude needs.
    credentials: Vec<String>,
    hosted: Vec<&'static HostedService>,
}

#[derive(Debug)]
struct ProposedBackend {
    name: String,
    server: DiscoveredServer,
    /// The name used in chains, and the model as the server reports it.
    models: Vec<(String, DiscoveredModel)>,
}

impl Proposal {
    /// Returns `None` if no usable model was found.
    pub(super) fn of(
        servers: &[DiscoveredServer],
        agent: ClaudeState,
        hosted: Vec<&'static HostedService>,
    ) -> Option<Self> {
        let best = best_local(servers);
        let (mut backends, mut used_names, mut chain) =
            (Vec::<ProposedBackend>::new(), BTreeSet::new(), Vec::new());
        for (s, server) in servers.iter().enumerate() {
            let Ok(models) = &server.models else { continue };
            let names_used = backends
                .iter()
                .map(|b| b.name.clone())
                .collect::<BTreeSet<_>>();
            let backend = unique_name(server.kind.slug(), &names_used);
            let mut named = Vec::new();
            for (m, model) in models
                .iter()
                .enumerate()
                .filter(|(_, model)| !is_claude(&model.id))
            {
                // Two servers may offer a model of the same name.
                let name = if used_names.contains(&model.id) {
                    format!("{backend}/{}", model.id)
                } else {
                    model.id.clone()
                };
                used_names.insert(name.clone());
                if best == Some((s, m)) {
                    chain.push(name.clone());
                }
                named.push((name, model.clone()));
            }
            if !named.is_empty() {
                backends.push(ProposedBackend {
                    name: backend,
                    server: server.clone(),
                    models: named,
                });
            }
        }
        // With a login, `haiku` and `sonnet` are the cheaper way to the same models.
        chain.extend(hosted.iter().map(|service| service.model.to_owned()));
        match (agent, chain.is_empty()) {
            // As in the built-in chain: one answer as text costs a tenth of an agent's work.
            (ClaudeState::Ready, _) => {
                chain.extend(["haiku-text", "sonnet-text", "sonnet"].map(String::from));
            }
            (ClaudeState::LoggedOut | ClaudeState::Missing, true) => return None,
            (ClaudeState::LoggedOut | ClaudeState::Missing, false) => {}
        }
        Some(Self {
            backends,
            chain,
            agent,
            credentials: Vec::new(),
            hosted,
        })
    }

    /// Sets the variables through which Claude is reached instead of a login.
    pub(super) fn with_credentials(self, credentials: Vec<String>) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    pub(super) fn chain(&self) -> &[String] {
        &self.chain
    }

    /// Models whose context window was not measured, so that the smallest is assumed.
    pub(super) fn unmeasured(&self) -> Vec<&str> {
        let ollama = self
            .backends
            .iter()
            .filter(|backend| backend.server.kind == ServerKind::Ollama);
        ollama
            .flat_map(|backend| &backend.models)
            .filter(|(_, model)| model.window.is_none())
            .map(|(name, _)| name.as_str())
            .collect()
    }

    pub(super) fn to_toml(&self) -> String {
        let mut text = String::from(
            "# Made by `supervisor init` from what it found. Yours to change: what is not here is as built in, and\n\
             # `supervisor explain` shows what is in effect and where each value comes from.\n\n",
        );
        let has_verifier = self.agent == ClaudeState::Ready && !self.backends.is_empty();
        if has_verifier {
            text += "# Who gives a second opinion on what a local model made, once all tests have passed.\n";
            text += "verifier = \"sonnet\"\n\n";
        } else if self.agent != ClaudeState::Ready {
            text += "# The work of a local model gets no second opinion: tests and other gates alone decide.\n";
            text += "# With `claude` installed and logged in, this could be \"sonnet\".\n";
            text += "verifier = \"none\"\n\n";
        }
        text += "# The models that every skill asks, cheapest first; the next one is asked when the one before it failed.\n";
        let _ = writeln!(text, "default_chain = {}\n", toml_list(&self.chain));
        for backend in &self.backends {
            text += &backend.to_toml();
        }
        if self.agent != ClaudeState::Missing {
            text += &self.local_agent_toml().unwrap_or_default();
        }
        for service in &self.hosted {
            text += &hosted_toml(service);
        }
        if !self.credentials.is_empty() {
            text += "# Claude is reached by these variables of your environment, and not by a login. No other program gets them, and\n";
            text += "# agents that have a key get no shell.\n";
            let _ = writeln!(
                text,
                "[backends.claude]\nenv_pass = {}\n",
                toml_list(&self.credentials)
            );
        }
        if let Some(warm) = self.backends.iter().find_map(ProposedBackend::warm_table) {
            text += &warm;
        } else {
            text += "# No server here tells which models are loaded.\n[warm]\nkind = \"none\"\n";
        }
        text
    }
}

impl Proposal {
    /// `claude` as an agent with the local model of the chain, commented out: few local models are able to
    /// use tools.
    fn local_agent_toml(&self) -> Option<String> {
        let name = self.chain.first()?;
        let named = |backend: &ProposedBackend| {
            let (_, model) = backend.models.iter().find(|(known, _)| known == name)?;
            Some((backend.name.clone(), backend.server.clone(), model.clone()))
        };
        let (backend, server, model) = self.backends.iter().find_map(named)?;
        let speaks_messages = matches!(
            server.kind,
            ServerKind::Ollama | ServerKind::LlamaCpp | ServerKind::Vllm | ServerKind::LiteLlm
        );
        if !speaks_messages || !server.address.starts_with("http://") {
            return None;
        }
        let agent = format!("{name}-agent");
        let mut toml = format!(
            "[backends.{}]\nkind = \"claude-cli\"\ntier = \"local\"\nprogram = \"claude\"\nbase_url = {}\n",
            toml_key(&format!("{backend}-agent")),
            toml_string(&server.address)
        );
        if server.kind == ServerKind::LiteLlm {
            let key = toml_string(supervisor_models::discover::GATEWAY_KEY_VAR);
            let _ = writeln!(toml, "api_key_env = {key}");
        }
        let models = toml_list(std::slice::from_ref(&agent));
        let _ = writeln!(toml, "enabled_by = \"passport\"\nmodels = {models}");
        let (agent_key, id) = (toml_key(&agent), toml_string(&model.id));
        let _ = writeln!(toml, "[models.{agent_key}]\nid = {id}");
        if let Some(window) = &model.window {
            let _ = writeln!(toml, "context = {}", window.tokens);
        }
        let mut text = format!(
            "# `claude` as an agent with `{name}`: it sees no network but this server, and never your login. It takes about ten\n\
             # times the tokens of a text answer, and only models that are able to use tools get anything done. To try it, remove\n\
             # the `# ` below, run `supervisor gym --model {agent}`, and put \"{agent}\" behind \"{name}\" in the chain: it is asked\n\
             # once it was accepted in 30 % of 8 turns. With enabled_by = \"user\" it is asked at once.\n"
        );
        for line in toml.lines() {
            let _ = writeln!(text, "# {line}");
        }
        text.push('\n');
        Some(text)
    }
}

/// The backend of a service and the price of its model.
fn hosted_toml(service: &HostedService) -> String {
    let mut text = format!("# {}, by the key in ${}.\n", service.name, service.key_var);
    // Without an address it is a backend that is built in.
    if let Some(url) = service.base_url {
        let _ = writeln!(text, "[backends.{}]\nkind = \"openai\"", service.slug);
        text += "# Hosted: what it makes is not shown to the verifier.\ntier = \"subagent\"\n";
        let _ = writeln!(text, "base_url = {}", toml_string(url));
        text +=
            "# NAME of the variable that holds the key; the key itself never belongs in a file.\n";
        let _ = writeln!(text, "api_key_env = {}", toml_string(service.key_var));
        let models = [service.model.to_owned()];
        let _ = writeln!(text, "models = {}\n", toml_list(&models));
    }
    let _ = writeln!(
        text,
        "# Prices of {}, USD for a million tokens; check them.",
        super::hosted::PRICES_OF
    );
    let _ = writeln!(text, "[models.{}]", toml_key(service.model));
    if service.id != service.model {
        let _ = writeln!(text, "id = {}", toml_string(service.id));
    }
    let _ = writeln!(
        text,
        "context = {}\nprice_in = {:?}\nprice_out = {:?}\n",
        service.context, service.price_in, service.price_out
    );
    text
}

impl ProposedBackend {
    fn to_toml(&self) -> String {
        let server = &self.server;
        let mut text = format!(
            "# {}, which offered {}.\n",
            server.kind,
            words::count(self.models.len(), "model")
        );
        let _ = writeln!(text, "[backends.{}]", toml_key(&self.name));
        text += "# Any server with `/v1/chat/completions`.\nkind = \"openai\"\n";
        text += "# On your own machine or network: what it makes is shown to the verifier.\ntier = \"local\"\n";
        let _ = writeln!(text, "base_url = {}", toml_string(&server.address));
        if server.kind == ServerKind::LiteLlm {
            let _ = writeln!(
                text,
                "# NAME of the variable that holds the key; the key itself never belongs in a file."
            );
            let _ = writeln!(
                text,
                "api_key_env = {}",
                toml_string(supervisor_models::discover::GATEWAY_KEY_VAR)
            );
        }
        text += "# The names it serves; they can be used in chains and as `model` of a call.\n";
        let names: Vec<String> = self.models.iter().map(|(name, _)| name.clone()).collect();
        let _ = writeln!(text, "models = {}\n", toml_list(&names));
        for (name, model) in &self.models {
            let (context, why) = match (&model.window, server.kind) {
                (Some(ContextWindow { tokens, source }), _) => {
                    (Some(*tokens), format!("Its context window, as {source} says."))
                }
                (None, ServerKind::Ollama) => (
                    Some(OLLAMA_DEFAULT),
                    "Not known before it is loaded; this is what Ollama gives on small cards, too little for most files. Start\n\
                     # Ollama with OLLAMA_CONTEXT_LENGTH=32768 and run `supervisor init --canary --force` for the real one."
                        .to_owned(),
                ),
                (None, _) => (None, String::new()),
            };
            let renamed = *name != model.id;
            if context.is_none() && !renamed {
                continue;
            }
            if !why.is_empty() {
                let _ = writeln!(text, "# {why}");
            }
            let _ = writeln!(text, "[models.{}]", toml_key(name));
            if let Some(context) = context {
                let _ = writeln!(text, "context = {context}");
            }
            if renamed {
                let _ = writeln!(
                    text,
                    "# Its name at the server: another server has a model of this name, too."
                );
                let _ = writeln!(text, "id = {}", toml_string(&model.id));
            }
            text.push('\n');
        }
        text
    }

    /// The `[warm]` table, which says where to ask for loaded models.
    fn warm_table(&self) -> Option<String> {
        let kind = match self.server.kind {
            ServerKind::Ollama => "ollama",
            ServerKind::LlamaSwap => "llama-swap",
            _ => return None,
        };
        let url = toml_string(&self.server.address);
        Some(format!(
            "# Where to ask which models are loaded right now.\n[warm]\nkind = \"{kind}\"\nurl = {url}\n"
        ))
    }
}

fn unique_name(name: &str, used: &BTreeSet<String>) -> String {
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| !used.contains(name))
        .expect("numbers do not end")
}

/// A TOML key, quoted if necessary.
fn toml_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        toml_string(name)
    }
}

/// A TOML basic string. JSON strings are valid ones.
fn toml_string(text: &str) -> String {
    serde_json::json!(text).to_string()
}

fn toml_list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| toml_string(name)).collect();
    let line = format!("[{}]", names.join(", "));
    if line.len() <= 90 {
        line
    } else {
        format!("[\n    {},\n]", names.join(",\n    "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str, tokens: Option<u32>) -> DiscoveredModel {
        let window = tokens.map(|tokens| ContextWindow {
            tokens,
            source: "a test",
        });
        DiscoveredModel {
            id: id.into(),
            loaded: false,
            window,
        }
    }

    fn server(kind: ServerKind, port: u16, models: Vec<DiscoveredModel>) -> DiscoveredServer {
        DiscoveredServer {
            address: format!("http://localhost:{port}"),
            kind,
            models: Ok(models),
        }
    }

    #[test]
    fn same_model_on_two_servers_is_renamed() {
        let servers = [
            server(ServerKind::LlamaCpp, 1, vec![model("m", Some(8192))]),
            server(ServerKind::LlamaCpp, 2, vec![model("m", Some(16_384))]),
        ];
        let text = Proposal::of(&servers, ClaudeState::Missing, vec![])
            .expect("models")
            .to_toml();
        for part in [
            "[backends.llama-cpp-2]",
            "[models.\"llama-cpp-2/m\"]",
            "id = \"m\"",
            "default_chain = [\"m\"]",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn local_agent_is_commented_out_and_valid() {
        let ollama = server(ServerKind::Ollama, 1, vec![model("m", Some(32_768))]);
        let toml = |state| {
            let proposal = Proposal::of(std::slice::from_ref(&ollama), state, vec![]);
            proposal.expect("a model").to_toml()
        };
        assert!(!toml(ClaudeState::Missing).contains("claude-cli"));
        let text = toml(ClaudeState::LoggedOut);
        let enabled = |line: &str| {
            let code = line.strip_prefix("# ").unwrap_or(line);
            let is_code = code.starts_with('[') || code.split(' ').nth(1) == Some("=");
            if is_code {
                format!("{code}\n")
            } else {
                String::new()
            }
        };
        let text: String = text.lines().map(enabled).collect();
        let parsed: toml::Table = toml::from_str(&text).expect("valid TOML");
        let backend = &parsed["backends"]["ollama-agent"];
        assert_eq!(backend["base_url"].as_str(), Some("http://localhost:1"));
        assert_eq!(backend["enabled_by"].as_str(), Some("passport"));
        assert_eq!(parsed["models"]["m-agent"]["id"].as_str(), Some("m"));
    }

    #[test]
    fn no_models_gives_no_proposal() {
        assert!(
            Proposal::of(
                &[server(ServerKind::Ollama, 1, vec![])],
                ClaudeState::LoggedOut,
                vec![]
            )
            .is_none()
        );
        assert_eq!(
            Proposal::of(&[], ClaudeState::Ready, vec![])
                .expect("Claude alone")
                .chain(),
            ["haiku-text", "sonnet-text", "sonnet"]
        );
    }
}
