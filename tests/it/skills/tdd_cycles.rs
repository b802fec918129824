//! One whole cycle in each ecosystem over stdio: a red, a green whose first tier is wrong, a refactoring. The models are
//! recorded, the tests are really run.

mod corners;
mod javascript;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use corners::{ELIXIR_IMPORT, GO_OUTSIDE, NODE_MODULES, PYTHON_CLASS, RUBY_GROUPS, RUST_IN_FILE};
use javascript::{JEST, MOCHA, VITEST};
use serde_json::{Value, json};
use table::{CPP, CPP_PROGRAMS, Cycle, ELIXIR, GO, JAVA, NODE, PYTHON, RUBY, RUST};

use crate::support::scenario::{Scenario, creates, gate, replaces, trail};
use supervisor_test_support::programs::{node_modules, require};

/// What the wrong tier's code answers; it stands nowhere in the project.
const WRONG_ANSWER: &str = "1201";

#[test]
fn rust_from_a_missing_symbol_to_a_refactoring() {
    RUST.walk();
}

#[test]
#[ignore = "needs go"]
fn go_from_a_missing_symbol_to_a_refactoring() {
    GO.walk();
}

#[test]
#[ignore = "needs python3 and pytest"]
fn python_from_a_failing_test_to_a_refactoring() {
    PYTHON.walk();
}

#[test]
#[ignore = "needs node and npm"]
fn node_from_a_failing_test_to_a_refactoring() {
    NODE.walk();
}

#[test]
#[ignore = "needs rspec"]
fn ruby_from_a_failing_test_to_a_refactoring() {
    RUBY.walk();
}

#[test]
#[ignore = "needs elixir"]
fn elixir_from_a_failing_test_to_a_refactoring() {
    ELIXIR.walk();
}

#[test]
#[ignore = "needs maven and junit"]
fn java_from_a_missing_symbol_to_a_refactoring() {
    JAVA.walk();
}

#[test]
#[ignore = "needs cmake and gtest"]
fn cpp_from_a_missing_symbol_to_a_refactoring() {
    CPP.walk();
}

#[test]
#[ignore = "needs cmake and gtest"]
fn cpp_with_a_program_for_each_test() {
    CPP_PROGRAMS.walk();
}

#[test]
fn rust_with_the_test_beside_the_code() {
    RUST_IN_FILE.walk();
}

#[test]
#[ignore = "needs go"]
fn go_with_a_test_of_another_package() {
    GO_OUTSIDE.walk();
}

#[test]
#[ignore = "needs python3 and pytest"]
fn python_with_test_class_and_source_directory() {
    PYTHON_CLASS.walk();
}

#[test]
#[ignore = "needs node and npm"]
fn node_with_modules() {
    NODE_MODULES.walk();
}

#[test]
#[ignore = "needs rspec"]
fn ruby_with_nested_groups_and_unnamed_example() {
    RUBY_GROUPS.walk();
}

#[test]
#[ignore = "needs elixir"]
fn elixir_with_import_of_a_missing_module() {
    ELIXIR_IMPORT.walk();
}

#[test]
#[ignore = "needs jest"]
fn jest_from_a_failing_test_to_a_refactoring() {
    JEST.walk_with_modules();
}

#[test]
#[ignore = "needs vitest"]
fn vitest_from_a_failing_test_to_a_refactoring() {
    VITEST.walk_with_modules();
}

#[test]
#[ignore = "needs mocha"]
fn mocha_from_a_failing_test_to_a_refactoring() {
    MOCHA.walk_with_modules();
}

#[test]
fn rust_red_shows_the_failing_assertion() {
    RUST.shows_the_failing_assertion(false);
}

#[test]
#[ignore = "needs all runners"]
fn every_red_shows_the_failing_assertion() {
    for cycle in [&GO, &PYTHON, &NODE, &RUBY, &ELIXIR, &JAVA, &CPP] {
        cycle.shows_the_failing_assertion(false);
    }
    for cycle in [&JEST, &VITEST, &MOCHA] {
        cycle.shows_the_failing_assertion(true);
    }
}

impl Cycle {
    /// The reply to a red of code that builds says what the code gave in place of the expected.
    fn shows_the_failing_assertion(&self, needs_modules: bool) {
        require(self.needs);
        let is_code = |path: &str| path == self.code_path;
        let files: Vec<(&str, &str)> = self
            .files
            .iter()
            .map(|(path, text)| (*path, if is_code(path) { self.wrong } else { *text }))
            .collect();
        let mut scenario = Scenario::chain(&["small"], &files);
        if needs_modules {
            let modules = scenario.root().join("node_modules");
            std::os::unix::fs::symlink(node_modules(), modules).unwrap();
        }
        let is_new = self.files.iter().all(|(path, _)| *path != self.test_path);
        let edit = if is_new { creates } else { replaces };
        scenario.say("small", &edit(self.test_path, self.red));
        let arguments = json!({"spec": "double(n) is twice n", "test_path": self.test_path});
        // As sent: an outline of the whole result.
        let red = scenario.reply("tdd_red", arguments)["result"]["structuredContent"].clone();
        assert_eq!(red["status"], "pass", "{red:#}");
        let shown = red["runner_output"].as_str().unwrap();
        assert!(tells_wrong_answer(shown), "{}: {shown}", self.new_test);
    }

    fn walk(&self) {
        require(self.needs);
        self.walk_in(Scenario::chain(&["small", "large"], self.files));
    }

    /// With what `tests/ecosystems/install` has put into `node_modules`.
    fn walk_with_modules(&self) {
        require(self.needs);
        let scenario = Scenario::chain(&["small", "large"], self.files);
        std::os::unix::fs::symlink(node_modules(), scenario.root().join("node_modules")).unwrap();
        self.walk_in(scenario);
    }

    fn walk_in(&self, mut scenario: Scenario) {
        let red = self.red(&mut scenario);
        let green = self.green(&mut scenario, &red);
        let refactor = self.refactor(&mut scenario, &green);
        assert_used_overlays(&[&red, &green, &refactor]);
        let logged = [
            "tdd_red pass: small accepted",
            "tdd_green pass: small rejected | large accepted",
            "tdd_refactor pass: small accepted",
        ];
        assert_eq!(log(&scenario), logged);
    }

    fn red(&self, scenario: &mut Scenario) -> Value {
        let before = scenario.tree();
        let is_new = self.files.iter().all(|(path, _)| *path != self.test_path);
        let edit = if is_new { creates } else { replaces };
        scenario.say("small", &edit(self.test_path, self.red));
        let spec = "double(n) is twice n";
        let red = scenario.call(
            "tdd_red",
            json!({"spec": spec, "test_path": self.test_path, "session_id": "cycle"}),
        );
        assert_eq!(
            (&red["status"], &red["verified"]),
            (&json!("pass"), &json!(true)),
            "{red:#}"
        );
        assert_eq!(
            red["details"]["test_names_added"],
            json!([self.new_test]),
            "{red:#}"
        );
        assert_eq!(red["files_changed"], json!([self.test_path]), "{red:#}");
        assert_eq!(
            red["file_path"],
            json!(scenario.root().join(self.test_path))
        );
        assert_eq!(red["next"]["tool"], "tdd_green");
        let after = scenario.tree();
        let changed: BTreeSet<&PathBuf> = before
            .keys()
            .chain(after.keys())
            .filter(|path| {
                before.get(*path) != after.get(*path)
                    && path.extension().is_none_or(|e| e != "lock")
            })
            .collect();
        assert_eq!(
            changed.into_iter().collect::<Vec<_>>(),
            [&PathBuf::from(self.test_path)],
            "only the test changed"
        );
        red
    }

    fn green(&self, scenario: &mut Scenario, red: &Value) -> Value {
        scenario.say("small", &replaces(self.code_path, self.wrong));
        scenario.say("large", &replaces(self.code_path, self.right));
        let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
        // An example without a name cannot be found in its file, so it cannot be made wrong there.
        let is_named = !green["message"].as_str().unwrap().contains("(unnamed)");
        assert_eq!(
            (&green["status"], &green["verified"]),
            (&json!("pass"), &json!(is_named)),
            "{green:#}"
        );
        assert_eq!(
            (trail(&green).as_str(), &green["model_used"]),
            ("small rejected | large accepted", &json!("large"))
        );
        assert_eq!(
            gate(&green, "inventory")["detail"],
            "no test is gone or newly skipped",
            "{green:#}"
        );
        assert_eq!(green["details"]["tests_after"], json!(2), "{green:#}");
        assert_eq!(
            green["details"]["new_public_items"],
            json!([self.new_item]),
            "{green:#}"
        );
        assert_eq!(green["files_changed"], json!([self.code_path]), "{green:#}");
        self.holds(scenario, self.right);

        // The first two questions to `small` were the red and this one.
        let first = &scenario.asked_of("small")[1];
        assert!(
            !tells_wrong_answer(first) && first.contains(self.symbol),
            "{first}"
        );
        let second = &scenario.asked_of("large")[0];
        assert!(
            second.contains("Prior attempt feedback: [1 · small · rejected]")
                && tells_wrong_answer(second),
            "{second}"
        );
        green
    }

    fn refactor(&self, scenario: &mut Scenario, green: &Value) -> Value {
        assert_eq!(green["next"]["tool"], "tdd_refactor");
        scenario.say("small", &replaces(self.code_path, self.neat));
        let refactor = scenario.call("tdd_refactor", green["next"]["arguments"].clone());
        // As in green: what cannot be found by its name cannot be made wrong.
        let is_named = green["verified"] == true;
        assert_eq!(
            (&refactor["status"], &refactor["verified"]),
            (&json!("pass"), &json!(is_named)),
            "{refactor:#}"
        );
        assert_eq!(
            refactor["files_changed"],
            json!([self.code_path]),
            "{refactor:#}"
        );
        self.holds(scenario, self.neat);
        refactor
    }

    /// The code is this, and the test what it was.
    fn holds(&self, scenario: &Scenario, code: &str) {
        assert_eq!(scenario.read(self.code_path), code);
        if self.test_path != self.code_path {
            assert_eq!(scenario.read(self.test_path), self.red);
        }
    }
}

/// Where the system allows it, all of it runs in a sandbox on overlays, and the results say so.
fn assert_used_overlays(called: &[&Value]) {
    #[cfg(target_os = "linux")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        if runtime.block_on(supervisor_test_support::process::sandbox_level())
            == supervisor_process::SandboxLevel::Namespaces
        {
            for called in called {
                let walls = called["sandbox"].as_str().unwrap_or_default();
                assert!(walls.contains("private view"), "{walls}");
            }
        }
    }
}

/// As a word of its own: the random names that fence untrusted text are hexadecimal and hold any four digits some day.
fn tells_wrong_answer(prompt: &str) -> bool {
    prompt
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| word == WRONG_ANSWER)
}

/// `tdd_green pass: small rejected | large accepted`, one per call.
fn log(scenario: &Scenario) -> Vec<String> {
    let text =
        fs::read_to_string(scenario.state.path().join("state/sessions/cycle.jsonl")).unwrap();
    let entries = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line = |entry: Value| {
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        format!(
            "{} {}: {}",
            text("tool"),
            text("final_status"),
            trail(&entry)
        )
    };
    entries.map(line).collect()
}
