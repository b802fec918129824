//! `stay_local`: with every kind of backend, a verifier and a notes service elsewhere, nothing leaves
//! this machine. All of them are behind a proxy that notes each request; without the setting it sees
//! each of them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::loopback::{Do, Server};

use super::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, WRONG};
use crate::support::review_project::clean;
use crate::support::scenario::{Scenario, replaces, trail};

const CHAIN: [&str; 4] = ["hosted", "cloud", "claude-x", "small"];
const HOSTS: [&str; 4] = ["models", "api", "judge", "notes"];

struct Elsewhere {
    scenario: Scenario,
    proxy: Server,
    claude: FakeClaude,
}

impl Elsewhere {
    fn new(stay_local: bool) -> Self {
        let proxy = Server::always(Do::Json(500, String::from("{}")));
        let claude = FakeClaude::that_does(r#"echo x >> "${0%/bin/claude}/started""#);
        let files = [
            MANIFEST,
            OLD_TEST,
            ("src/lib.rs", WRONG),
            ("tests/add.rs", ADD_TEST),
        ];
        let scenario = Scenario::chain(&CHAIN, &files);
        let skill = |name: &str| {
            format!(
                "[skills.{name}]\nchain = {}\nverifier = \"judge\"\n",
                json!(CHAIN)
            )
        };
        let settings = format!(
            "{}{}[projects.\"{}\"]\nstay_local = {stay_local}\n\
             [backends.hosted]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"http://models.example.org\"\nmodels = [\"hosted\"]\n\
             [backends.cloud]\nkind = \"anthropic\"\ntier = \"managed\"\nbase_url = \"http://api.example.org\"\nmodels = [\"cloud\"]\n\
             [backends.court]\nkind = \"anthropic\"\ntier = \"managed\"\nbase_url = \"http://judge.example.org\"\nmodels = [\"judge\"]\n\
             [backends.claude]\nprogram = \"{}\"\n[sandbox]\nmode = \"off\"\n[brain]\ningest_url = \"http://notes.example.org\"\n",
            skill("review"),
            skill("tdd_green"),
            scenario.root().display(),
            claude.program().display(),
        );
        let mut scenario = scenario.settings(&settings);
        for name in [
            "HTTP_PROXY",
            "http_proxy",
            "HTTPS_PROXY",
            "https_proxy",
            "ALL_PROXY",
        ] {
            scenario = scenario.env(name, &proxy.url);
        }
        Self {
            scenario,
            proxy,
            claude,
        }
    }

    /// A review and a green, each of which `small` could do, and a question about notes.
    fn call_all(&mut self) -> [Value; 2] {
        let notes = self
            .scenario
            .call("brain_query", json!({"query": "prices"}));
        assert_eq!(notes["status"], "error", "{notes:#}");
        self.scenario.say("small", &clean(&["src/lib.rs"]));
        let review = self
            .scenario
            .call("review", json!({"files": ["src/lib.rs"]}));
        self.scenario.say("small", &replaces("src/lib.rs", ADD));
        let green = json!({"test_path": "tests/add.rs"});
        [review, self.scenario.call("tdd_green", green)]
    }

    /// Which hosts were asked for.
    fn asked(&self) -> Vec<&'static str> {
        let asked = self.proxy.asked();
        let is_asked = |host: &str| {
            let name = format!("{host}.example.org");
            asked.iter().any(|one| one.head.contains(&name))
        };
        HOSTS.into_iter().filter(|host| is_asked(host)).collect()
    }

    fn claude_started(&self) -> bool {
        let started: PathBuf = self.claude.bin().parent().unwrap().join("started");
        fs::exists(started).unwrap()
    }
}

#[test]
fn nothing_leaves_a_local_project() {
    let mut elsewhere = Elsewhere::new(true);
    for result in elsewhere.call_all() {
        assert_eq!(trail(&result), "small accepted", "{result:#}");
    }
    let pinned = json!({"files": ["src/lib.rs"], "stay_local": true, "model": "cloud"});
    let refused = elsewhere.scenario.call("review", pinned);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("`cloud` is not local"), "{message}");
    assert_eq!(elsewhere.proxy.paths(), Vec::<String>::new());
    assert!(!elsewhere.claude_started());
}

#[test]
fn without_the_setting_everybody_is_asked() {
    let mut elsewhere = Elsewhere::new(false);
    elsewhere.call_all();
    assert_eq!(elsewhere.asked(), HOSTS);
    assert!(elsewhere.claude_started());
}
