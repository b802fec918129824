//! Why a suite could not be run remotely. No variant says anything about the code under test.

use tonic::{Code, Status};

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error(
        "`{0}` is not the address of an engine; write it as grpc://host:port or grpcs://host:port"
    )]
    Address(String),
    #[error("a token is sent only over TLS or to this machine; write `{0}` with grpcs://")]
    TokenInClear(String),
    #[error("the engine at `{address}` cannot be reached: {why}")]
    Unreachable { address: String, why: String },
    #[error("the engine answered {}: {message}", name(*.code))]
    Refused { code: Code, message: String },
    #[error("the engine supports neither SHA-256 nor BLAKE3")]
    NoDigestFunction,
    #[error("the engine stores files but executes nothing")]
    NoExecution,
    #[error("the run did not end on the engine: {}: {message}", name(*.code))]
    NotFinished { code: Code, message: String },
    #[error("the engine reported an end without a result")]
    NoResult,
    #[error(
        "no worker took the run within {0} s; is one with these platform properties connected?"
    )]
    NotStarted(u64),
    #[error("the worker's run ended with exit code {exit_code} and without a report: {output}")]
    NoReport { exit_code: i32, output: String },
    #[error("the report of the worker does not agree with the exit code {0}")]
    Disagreement(i32),
    #[error("the report of the worker cannot be read: {0}")]
    BadReport(String),
    #[error("the worker cannot run these tests: {0}")]
    WorkerUnfit(String),
    #[error("the files cannot be sent: {0}")]
    Files(#[from] std::io::Error),
    #[error("{0}")]
    NotPortable(String),
    #[error("cancelled")]
    Cancelled,
}

impl RemoteError {
    /// Whether the same run may succeed at once: the engine or a worker broke, and nothing was decided.
    pub(crate) fn is_worth_a_retry(&self) -> bool {
        match self {
            Self::Refused { code, .. } | Self::NotFinished { code, .. } => matches!(
                code,
                Code::Unavailable
                    | Code::Internal
                    | Code::Aborted
                    | Code::Unknown
                    // Blobs that the engine lost: they are sent again.
                    | Code::FailedPrecondition
                    | Code::NotFound
                    | Code::DataLoss
            ),
            Self::NoResult | Self::NoReport { .. } | Self::Disagreement(_) | Self::BadReport(_) => {
                true
            }
            _ => false,
        }
    }

    /// Whether the engine is not usable now, whatever is sent.
    pub(crate) fn is_engine_down(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::NotStarted(_) | Self::NoDigestFunction => true,
            Self::NoExecution | Self::TokenInClear(_) | Self::Address(_) => true,
            Self::Refused { code, .. } | Self::NotFinished { code, .. } => matches!(
                code,
                Code::Unavailable
                    | Code::ResourceExhausted
                    | Code::Unauthenticated
                    | Code::PermissionDenied
                    | Code::Unimplemented
            ),
            _ => false,
        }
    }
}

impl From<Status> for RemoteError {
    fn from(status: Status) -> Self {
        Self::Refused {
            code: status.code(),
            message: first_line(status.message()),
        }
    }
}

/// The name that the API uses, such as `RESOURCE_EXHAUSTED`.
fn name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// Messages of other programs are untrusted: one line of limited length.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_api_names() {
        assert_eq!(name(Code::ResourceExhausted), "RESOURCE_EXHAUSTED");
        assert_eq!(name(Code::Internal), "INTERNAL");
    }
}
