//! A proof that travels with a commit: an in-toto statement in a DSSE envelope, kept as a git note under
//! `refs/notes/proof`. With an SSH key it is signed; without one it shows integrity only: that the note belongs to exactly
//! these files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use supervisor_process::{CommandSpec, End, Launcher, ScratchDir, Stdin};
use supervisor_text::words;
use tokio_util::sync::CancellationToken;

use crate::change::{ChangeError, Git};
use crate::report::{Report, Verdict};

const NOTES_REF: &str = "proof";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";
const PASSED: &str = "PASSED";
/// So that a signature made for something else is never taken for a proof.
const NAMESPACE: &str = "supervisor-proof";
const LIMIT: Duration = Duration::from_secs(60);
/// A larger note is not ours.
const MAX_NOTE: usize = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum AttestationError {
    #[error(transparent)]
    Git(#[from] ChangeError),
    #[error("the change is {}, so there is nothing to attest", .0.word())]
    NotProven(Verdict),
    #[error(
        "{commit} has no proof; `supervisor prove --attest` at that commit writes one, and `git fetch origin refs/notes/proof:refs/notes/proof` gets those of others"
    )]
    Missing { commit: String },
    #[error("the proof of {commit} cannot be read: {why}")]
    Damaged { commit: String, why: String },
    #[error(
        "the proof of {commit} is for other files: it names the tree {named}, and the commit has {actual}"
    )]
    OtherTree {
        commit: String,
        named: String,
        actual: String,
    },
    #[error("the proof could not be signed: {0}")]
    NotSigned(String),
    #[error("the signature of {commit} is not valid: {why}")]
    BadSignature { commit: String, why: String },
    #[error(
        "the proof of {commit} carries no signature, and only those of the allowed signers count; sign it with `supervisor prove --attest --key FILE`"
    )]
    NoSignature { commit: String },
    #[error("there is no place for temporary files: {0}")]
    Scratch(#[from] std::io::Error),
}

/// Where notes are read and written, and with whose programs.
pub struct ProofNotes<'a> {
    pub root: &'a Path,
    pub launcher: &'a Launcher,
    /// Of the user: git and ssh-keygen read their settings and keys.
    pub env: &'a BTreeMap<OsString, OsString>,
    pub stop: &'a CancellationToken,
}

/// A note that belongs to its commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedProof {
    pub commit: String,
    pub tree: String,
    pub base: String,
    /// Who signed it, by the verifier's own list; `None`: integrity only.
    pub signer: Option<String>,
    pub predicate: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Signature {
    keyid: String,
    sig: String,
}

impl ProofNotes<'_> {
    fn git(&self) -> Git<'_> {
        Git {
            root: self.root,
            launcher: self.launcher,
            env: self.env,
            stop: self.stop,
        }
    }

    /// Whether all files are as `HEAD` has them.
    pub async fn is_clean(&self) -> Result<bool, AttestationError> {
        let out = self
            .git()
            .run(&["status", "--porcelain"], Stdin::Null)
            .await?;
        Ok(out.is_empty())
    }

    /// A value of the user's own git settings, never of the project's.
    pub async fn user_setting(&self, name: &str) -> Option<String> {
        let out = self
            .git()
            .run(&["config", "--global", "--get", name], Stdin::Null)
            .await;
        let text = String::from_utf8(out.ok()?).ok()?;
        Some(text.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Writes the proof of `commit` as a note. Returns the line that a commit message may carry.
    pub async fn attest(
        &self,
        report: &Report,
        commit: &str,
        key: Option<&Path>,
        version: &str,
    ) -> Result<String, AttestationError> {
        if report.verdict != Verdict::Proven {
            return Err(AttestationError::NotProven(report.verdict));
        }
        let git = self.git();
        let (commit, tree) = (git.commit(commit).await?, git.tree(commit).await?);
        let base = git.commit(&report.base).await?;
        let statement = statement(report, &commit, &tree, &base, version).to_string();
        let signatures = match key {
            Some(key) => vec![self.sign(&statement, key).await?],
            None => Vec::new(),
        };
        let envelope = Envelope {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: BASE64.encode(&statement),
            signatures,
        };
        let note = serde_json::to_vec_pretty(&envelope).expect("text can be written");
        let arguments = ["notes", "--ref", NOTES_REF, "add", "-f", "-F", "-", &commit];
        git.run(&arguments, Stdin::Bytes(note)).await?;
        Ok(format!("Proof: proven {tree}"))
    }

    /// Reads and checks the proof of a commit, offline. `allowed_signers` is the verifier's own file; with `needs_signature` a
    /// proof that nobody signed is refused.
    pub async fn check(
        &self,
        commit: &str,
        allowed_signers: Option<&Path>,
        needs_signature: bool,
    ) -> Result<CheckedProof, AttestationError> {
        let git = self.git();
        let (commit, tree) = (git.commit(commit).await?, git.tree(commit).await?);
        let note = git
            .run(&["notes", "--ref", NOTES_REF, "show", &commit], Stdin::Null)
            .await
            .map_err(|_| AttestationError::Missing {
                commit: commit.clone(),
            })?;
        let damaged = |why: &str| AttestationError::Damaged {
            commit: commit.clone(),
            why: why.to_owned(),
        };
        if note.len() > MAX_NOTE {
            return Err(damaged("it is too large"));
        }
        let envelope: Envelope =
            serde_json::from_slice(&note).map_err(|error| damaged(&error.to_string()))?;
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(damaged("its payload has another type"));
        }
        let payload = BASE64
            .decode(&envelope.payload)
            .map_err(|error| damaged(&error.to_string()))?;
        let statement: Value =
            serde_json::from_slice(&payload).map_err(|error| damaged(&error.to_string()))?;
        let named = statement["subject"][0]["digest"]["gitTree"]
            .as_str()
            .unwrap_or_default();
        if statement["_type"] != STATEMENT_TYPE || statement["predicateType"] != PREDICATE_TYPE {
            return Err(damaged("it is no statement about tests"));
        }
        if named != tree {
            return Err(AttestationError::OtherTree {
                commit,
                named: words::plain(named).into_owned(),
                actual: tree,
            });
        }
        let predicate = &statement["predicate"];
        if predicate["result"] != PASSED
            || predicate["supervisor"]["verdict"] != Verdict::Proven.word()
        {
            return Err(damaged("it does not say that the change is proven"));
        }
        let signer = match (envelope.signatures.first(), allowed_signers) {
            (None, _) if needs_signature => return Err(AttestationError::NoSignature { commit }),
            (Some(signature), Some(allowed)) => {
                let signer = self.verify(&payload, signature, allowed).await;
                Some(signer.map_err(|why| AttestationError::BadSignature {
                    commit: commit.clone(),
                    why,
                })?)
            }
            _ => None,
        };
        Ok(CheckedProof {
            commit,
            tree,
            base: statement["predicate"]["supervisor"]["base"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            signer,
            predicate: statement["predicate"].clone(),
        })
    }

    async fn sign(&self, statement: &str, key: &Path) -> Result<Signature, AttestationError> {
        let scratch = ScratchDir::new("")?;
        let file = scratch.path().join("statement");
        std::fs::write(&file, signed_bytes(statement.as_bytes()))?;
        let key_text = key.display().to_string();
        let file_text = file.display().to_string();
        self.ssh_keygen(
            &["-Y", "sign", "-f", &key_text, "-n", NAMESPACE, &file_text],
            None,
        )
        .await
        .map_err(AttestationError::NotSigned)?;
        let signature = std::fs::read(file.with_extension("sig"))?;
        Ok(Signature {
            keyid: String::new(),
            sig: BASE64.encode(signature),
        })
    }

    /// Returns the signer's name in the allowed signers.
    async fn verify(
        &self,
        payload: &[u8],
        signature: &Signature,
        allowed: &Path,
    ) -> Result<String, String> {
        let scratch = ScratchDir::new("").map_err(|error| error.to_string())?;
        let file = scratch.path().join("signature");
        let bytes = BASE64
            .decode(&signature.sig)
            .map_err(|error| error.to_string())?;
        std::fs::write(&file, bytes).map_err(|error| error.to_string())?;
        let (file, allowed) = (file.display().to_string(), allowed.display().to_string());
        let found = self
            .ssh_keygen(
                &["-Y", "find-principals", "-s", &file, "-f", &allowed],
                None,
            )
            .await?;
        let signer = found.lines().next().unwrap_or_default().trim().to_owned();
        let arguments = [
            "-Y", "verify", "-f", &allowed, "-I", &signer, "-n", NAMESPACE, "-s", &file,
        ];
        self.ssh_keygen(&arguments, Some(signed_bytes(payload)))
            .await?;
        Ok(signer)
    }

    async fn ssh_keygen(
        &self,
        arguments: &[&str],
        stdin: Option<Vec<u8>>,
    ) -> Result<String, String> {
        let argv = std::iter::once("ssh-keygen").chain(arguments.iter().copied());
        let mut spec = CommandSpec::new(argv.map(OsString::from), self.root);
        spec.env.clone_from(self.env);
        spec.stdin = stdin.map_or(Stdin::Null, Stdin::Bytes);
        spec.limit = LIMIT;
        let finished = self.launcher.run(spec, self.stop).await;
        if finished.end == End::Exited(0) {
            return Ok(finished.stdout.text().to_string());
        }
        let error = format!("{}{}", finished.stderr.text(), finished.stdout.text());
        let line = error
            .lines()
            .next()
            .unwrap_or("ssh-keygen did not end well");
        Err(words::cut_end(&words::plain(line), 200).into_owned())
    }
}

/// The key that the user signs commits with, if that is an SSH key in a file.
pub async fn user_signing_key(notes: &ProofNotes<'_>) -> Option<PathBuf> {
    if notes.user_setting("gpg.format").await.as_deref() != Some("ssh") {
        return None;
    }
    let key = notes.user_setting("user.signingkey").await?;
    let home = notes.env.get(std::ffi::OsStr::new("HOME"));
    let path = match (key.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => PathBuf::from(key),
    };
    path.is_file().then_some(path)
}

fn statement(report: &Report, commit: &str, tree: &str, base: &str, version: &str) -> Value {
    let commands: Vec<&str> = report
        .steps
        .iter()
        .map(|step| step.command.as_str())
        .collect();
    json!({
        "_type": STATEMENT_TYPE,
        "subject": [{"name": commit, "digest": {"gitTree": tree}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": PASSED,
            "configuration": [{"name": report.steps.first().map(|step| &step.command)}],
            "passedTests": report.fail_without_change,
            "supervisor": {
                "version": version,
                "base": base,
                "verdict": report.verdict.word(),
                "summary": report.summary,
                "commands": commands,
                "falsified": {"shown": report.falsified.0, "of": report.falsified.1},
                "mutants": report.mutants,
                "isolation": report.isolation,
                "sandbox": report.sandbox,
            },
        },
    })
}

/// What is signed: the pre-authentication encoding of DSSE, so that type and payload cannot be exchanged.
fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "DSSEv1 {} {PAYLOAD_TYPE} {} ",
        PAYLOAD_TYPE.len(),
        payload.len()
    )
    .into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_bytes_name_type_and_lengths() {
        assert_eq!(
            signed_bytes(b"{}"),
            b"DSSEv1 28 application/vnd.in-toto+json 2 {}"
        );
    }
}
