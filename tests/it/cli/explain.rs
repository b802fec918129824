//! `supervisor explain`, as a person runs it: the built binary, with nothing in its environment but what is said here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_supervisor");

/// A person at a terminal: a home of their own, and a project they stand in.
struct Person {
    dir: tempfile::TempDir,
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Person {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("home/.config/supervisor")).unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        Self { dir }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.dir.path().join(inside)
    }

    fn write(&self, inside: &str, text: &str) -> PathBuf {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.path("home"))
            .current_dir(self.path("project"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, &[])
    }

    fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = self.command(Path::new(BINARY), arguments);
        self.said(command.envs(variables.iter().copied()))
    }

    fn said(&self, command: &mut Command) -> Said {
        let output = command.output().expect("the binary starts");
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .unwrap()
                .replace(self.dir.path().to_str().unwrap(), "DIR")
        };
        Said {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

#[test]
fn all_skills_in_short_with_every_setting() {
    let said = Person::new().run(&["explain"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain", said.out);
}

#[test]
fn one_skill_in_full() {
    let said = Person::new().run(&["explain", "spec"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain_spec", said.out);
}

#[test]
fn a_pinned_model() {
    let said = Person::new().run(&["explain", "review", "--model", "ollama/Qwen3.5:30B"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain_review_model", said.out);
}

#[test]
fn call_layer_names_the_argument_per_value() {
    let person = Person::new();
    let arguments = [
        "--arg",
        "timeout_s=60",
        "--arg",
        "max_attempts=2",
        "--arg",
        "budget_usd=0.5",
    ];
    let said = person.run(
        &[
            &["explain", "tdd_green", "--model", "sonnet"][..],
            &arguments,
        ]
        .concat(),
    );
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain_call", said.out);
    for (argument, cause) in [
        (
            "test_path=x",
            "`test_path` of a call does not change the routing",
        ),
        (
            "timeout_s=soon",
            "`timeout_s` takes a number of seconds above 0, not `soon`",
        ),
        (
            "max_attempts=0",
            "`max_attempts` of this call takes a whole number from 1 on",
        ),
        ("timeout_s", "write `--arg NAME=VALUE`"),
    ] {
        let said = person.run(&["explain", "tdd_green", "--arg", argument]);
        assert!(
            said.code == Some(2) && said.err.contains(cause),
            "{argument}: {}",
            said.err
        );
    }
}

#[test]
fn values_from_files_and_variables_name_them() {
    let person = Person::new();
    person.write(
        "home/.config/supervisor/models.toml",
        "[skills.tdd]\nverifier = \"none\"\n\n[models.\"ollama/qwen3.6:27b\"]\nid = \"qwen\"\nlimit_s = 42\n",
    );
    let variables = [
        ("LITELLM_BASE_URL", "http://gate:4000"),
        ("SUPERVISOR_SKILLS__TDD_GREEN__MAX_ATTEMPTS", "1"),
        ("SUPERVISOR_MAX_ATEMPTS", "9"),
    ];
    let said = person.run_with(&["explain", "tdd_green"], &variables);
    assert_eq!(said.code, Some(0));
    insta::assert_snapshot!(
        "explain_layers",
        format!("{}--- stderr\n{}", said.out, said.err)
    );
}

#[test]
fn json_for_one_skill_and_for_all() {
    let person = Person::new();
    person.write(
        "home/.config/supervisor/models.toml",
        "[limits]\nlocal_s = 12\n",
    );
    let variables = [("SUPERVISOR_LIMITS__TESTS_S", "5"), ("SUPERVISOR_FOO", "1")];
    let said = person.run_with(&["explain", "debug", "--json"], &variables);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain_debug_json", said.out);

    let all: serde_json::Value =
        serde_json::from_str(&person.run(&["explain", "--json"]).out).unwrap();
    assert_eq!(all["skills"].as_array().unwrap().len(), 10);
    let local = &all["settings"]["limits.local_s"];
    assert_eq!(local["value"], 12);
    assert_eq!(local["origin"], "DIR/home/.config/supervisor/models.toml:2");
    assert_eq!(all["settings"]["limits.agent_s"]["layer"], "built-in");
}

#[test]
fn mistake_is_one_sentence_and_exit_code_2() {
    let person = Person::new();
    let file = person.write("other.toml", "[limits]\nlocl_s = 1\n");
    let file = file.to_str().unwrap();
    let expected = "error: DIR/other.toml:2: `limits.locl_s` is not a known key\n  hint: did you mean `limits.local_s`?\n";
    // The option is the same before and after the command.
    for said in [
        person.run(&["explain", "--config", file]),
        person.run(&["--config", file, "explain"]),
        person.run(&["explain", "--json", "--config", file]),
    ] {
        assert_eq!(
            (said.code, said.out.as_str(), said.err.as_str()),
            (Some(2), "", expected)
        );
    }
    assert_eq!(
        person
            .run_with(&["explain"], &[("SUPERVISOR_MODELS_FILE", file)])
            .code,
        Some(2)
    );
    let said = person.run(&["explain", "reveiw"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (
            Some(2),
            "error: there is not a skill `reveiw`; did you mean `review`?\n"
        )
    );
    let said = person.run(&["explain", "review", "--model", "gpt-5"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err
            .contains("no backend serves `gpt-5`; they serve `anthropic/*`, `claude-*`"),
        "{}",
        said.err
    );
}

#[test]
fn project_and_current_directory_are_not_read() {
    let person = Person::new();
    for place in [
        "",
        "supervisor/",
        ".config/supervisor/",
        ".supervisor/",
        "config/supervisor/",
    ] {
        person.write(
            &format!("project/{place}models.toml"),
            "max_attempts = 97531\n",
        );
    }
    person.write("project/.env", "SUPERVISOR_MAX_ATTEMPTS=97531\n");
    // Also where a broken environment points there.
    for variables in [
        &[][..],
        &[("HOME", ".")],
        &[("XDG_CONFIG_HOME", ".")],
        &[("XDG_CONFIG_HOME", "")],
    ] {
        let said = person.run_with(&["explain"], variables);
        assert_eq!(said.code, Some(0), "{variables:?}: {}", said.err);
        assert!(!said.out.contains("97531"), "{variables:?}: {}", said.out);
    }
    let said = person.run_with(&["explain"], &[("SUPERVISOR_MODELS_FILE", "models.toml")]);
    assert_eq!(
        said.code,
        Some(2),
        "a relative file in a variable would be the project's: {}",
        said.out
    );
}

#[test]
fn key_in_the_environment_is_never_printed() {
    let variables = [
        ("LITELLM_API_KEY", "sk-canary"),
        ("ANTHROPIC_API_KEY", "canary"),
        ("SUPERVISOR_KEY", "canary"),
    ];
    for arguments in [
        &["explain"][..],
        &["explain", "review"],
        &["explain", "--json"],
    ] {
        let said = Person::new().run_with(arguments, &variables);
        assert_eq!(said.code, Some(0));
        assert!(
            !said.out.contains("canary") && !said.err.contains("canary"),
            "{arguments:?}"
        );
    }
}

/// Root reads everything, so this runs as somebody else; where that cannot be, it fails.
#[test]
fn unreadable_file_is_not_treated_as_missing() {
    let person = Person::new();
    let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    let platform = person.write("home/.config/supervisor/models.toml", "max_attempts = 9\n");
    let named = person.write("named.toml", "max_attempts = 9\n");
    for file in [&platform, &named] {
        fs::set_permissions(file, Permissions::from_mode(0o000)).unwrap();
    }
    let binary = person.path("supervisor");
    crate::support::user_shell::copy_program(&binary);
    for path in [
        "",
        "home",
        "home/.config",
        "home/.config/supervisor",
        "project",
        "supervisor",
    ] {
        open(&person.path(path));
    }
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = person.command(&binary, arguments);
        command.envs(variables.iter().copied());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        person.said(&mut command)
    };
    let named = named.to_str().unwrap();
    let said = run(&["explain"], &[]);
    assert_eq!(said.code, Some(2), "{}", said.out);
    let hint = "\n  hint: name a file that you may read\n";
    let told = |file: &str| format!("error: {file} cannot be read: permission denied{hint}");
    assert_eq!(said.err, told("DIR/home/.config/supervisor/models.toml"));
    let said = run(&["explain", "--config", named], &[]);
    assert_eq!(said.err, told("DIR/named.toml"));
    let said = run(&["explain"], &[("SUPERVISOR_MODELS_FILE", named)]);
    assert_eq!(said.err, told("$SUPERVISOR_MODELS_FILE: `DIR/named.toml`"));
}

const NOBODY: u32 = 65_534;
