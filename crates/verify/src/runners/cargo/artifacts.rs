//! Parses the output of `cargo test --no-run --message-format=json`: the test programs, or the build errors.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::super::build::BuildError;
use super::super::super::test_wrapper::{Plan, PlannedProgram};

/// The result of a build.
#[derive(Debug, Default)]
pub(super) struct Build {
    pub(super) programs: Vec<Program>,
    pub(super) errors: Vec<BuildError>,
    /// Whether there is a library whose documentation may contain tests.
    pub(super) has_doctests: bool,
    /// The errors as the compiler displays them.
    pub(super) rendered: String,
}

/// One test program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// `demo`, `demo::api`, `demo::bin/tool`
    pub(super) id: String,
    pub(super) path: PathBuf,
    /// False for `harness = false`. Such a program may do anything when called with `--list`.
    pub(super) has_harness: bool,
}

pub(super) fn parse(json_lines: &str) -> Build {
    let mut build = Build::default();
    for line in json_lines.lines().filter(|l| l.starts_with('{')) {
        match serde_json::from_str(line) {
            Ok(Message::CompilerArtifact(artifact)) => {
                build.has_doctests |= artifact.profile.test && artifact.target.doctest;
                build.programs.extend(artifact.program());
            }
            Ok(Message::CompilerMessage { message }) if message.level.starts_with("error") => {
                build
                    .rendered
                    .push_str(message.rendered.as_deref().unwrap_or_default());
                // The same error is reported once per target that includes the file.
                let error = message.error().filter(|e| !build.errors.contains(e));
                build.errors.extend(error);
            }
            Ok(Message::CompilerMessage { .. } | Message::Other) | Err(_) => {}
        }
    }
    build.programs.sort_by(|a, b| a.id.cmp(&b.id));
    build
}

impl Build {
    pub(super) fn plan(&self) -> Plan {
        Plan {
            programs: self
                .programs
                .iter()
                .map(|p| PlannedProgram {
                    path: p.path.clone(),
                    can_list: p.has_harness,
                })
                .collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[expect(clippy::enum_variant_names, reason = "the names are cargo's")]
enum Message {
    CompilerArtifact(Artifact),
    CompilerMessage {
        message: Diagnostic,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
    src_path: PathBuf,
    #[serde(default)]
    doctest: bool,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    level: String,
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Span>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    is_primary: bool,
}

impl Artifact {
    /// The test program, if any. Examples are built for a test run too, but only those in the test profile are run.
    fn program(self) -> Option<Program> {
        let path = self.executable.filter(|_| self.profile.test)?;
        let package = package_name(&self.package_id);
        let kind = self.target.kind.first().map_or("", String::as_str);
        let id = match kind {
            "test" => format!("{package}::{}", self.target.name),
            "bin" | "example" | "bench" => format!("{package}::{kind}/{}", self.target.name),
            _ => package,
        };
        let has_harness = has_harness(
            &self.manifest_path,
            kind,
            &self.target.name,
            &self.target.src_path,
        );
        Some(Program {
            id,
            path,
            has_harness,
        })
    }
}

impl Diagnostic {
    fn error(self) -> Option<BuildError> {
        if self.message.starts_with("aborting due to")
            || self.message.starts_with("could not compile")
        {
            return None;
        }
        let mut error = BuildError::new(&self.message);
        if let Some(span) = self.spans.iter().find(|s| s.is_primary) {
            error = error.at(&*span.file_name, Some(span.line_start));
        }
        error.code = self.code.map(|c| c.code);
        Some(error)
    }
}

/// `path+file:///p/api#0.1.0` and `path+file:///p#api@0.1.0` are both `api`.
fn package_name(id: &str) -> String {
    let (url, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => url
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(url)
            .to_owned(),
    }
}

/// Whether a target uses the standard test harness. Cargo's messages do not say, so this reads the manifest.
fn has_harness(manifest: &Path, kind: &str, name: &str, source: &Path) -> bool {
    let Some(manifest) = std::fs::read_to_string(manifest)
        .ok()
        .and_then(|t| t.parse::<toml::Table>().ok())
    else {
        return true;
    };
    let is_disabled =
        |target: &toml::Value| target.get("harness").and_then(toml::Value::as_bool) == Some(false);
    let is_this = |target: &toml::Value| match target.get("name").and_then(toml::Value::as_str) {
        Some(named) => named == name,
        None => target
            .get("path")
            .and_then(toml::Value::as_str)
            .is_some_and(|p| source.ends_with(p)),
    };
    match kind {
        "test" | "bin" | "example" | "bench" => {
            let targets = manifest.get(kind).and_then(toml::Value::as_array);
            !targets.is_some_and(|targets| targets.iter().any(|t| is_this(t) && is_disabled(t)))
        }
        _ => !manifest.get("lib").is_some_and(is_disabled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str = r#"{"reason":"compiler-message","message":{"message":"cannot find function `add` in this scope","level":"error","code":{"code":"E0425"},"spans":[{"file_name":"src/lib.rs","line_start":7,"is_primary":true}],"rendered":"error[E0425]: …\n"}}"#;

    #[test]
    fn package_names_are_read_from_both_id_formats() {
        assert_eq!(package_name("path+file:///p/api#0.1.0"), "api");
        assert_eq!(package_name("path+file:///p#api@0.1.0"), "api");
        assert_eq!(package_name("odd"), "odd");
    }

    #[test]
    fn errors_have_location_code_and_missing_name() {
        let twice = format!(
            "{ERROR}\nnoise\n{ERROR}\n{{\"reason\":\"build-finished\",\"success\":false}}\n"
        );
        let build = parse(&twice);
        assert_eq!(build.errors.len(), 1);
        let error = &build.errors[0];
        assert_eq!(
            error.to_string(),
            "src/lib.rs:7: cannot find function `add` in this scope"
        );
        assert_eq!(
            (error.code.as_deref(), error.missing.as_slice()),
            (Some("E0425"), ["add".to_owned()].as_slice())
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_messages_do_not_panic(text in super::super::super::super::garbage::garbage(ERROR)) {
            let _ = parse(&text);
        }
    }
}
