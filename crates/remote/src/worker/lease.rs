//! One lease: fetches the input tree of an Action, runs its command, and sends back the output files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::protobuf;
use prost::Message as _;
use reapi::{Action, ActionResult, Command, Digest, Directory, ExecutedActionMetadata, OutputFile};
use supervisor_process::{
    ChildKind, CommandSpec, Confinement, End, FinishedProcess, Launcher, SandboxMode, SandboxRules,
    environment,
};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::blob_cache::BlobCache;
use crate::connection::Connection;
use crate::error::RemoteError;
use crate::runner::{CACHES_VARIABLE, SANDBOX_VARIABLE};
use crate::storage::{Blob, Blobs, blocking};
use crate::suite_run::{COMMAND, PROGRAM};

/// For Actions without a time limit of their own.
const DEFAULT_LIMIT: Duration = Duration::from_secs(3600);
const MAX_DIRECTORIES: usize = 200_000;

/// How a lease ended. Without a result, the code says why.
#[derive(Debug)]
pub(super) struct LeaseEnd {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) result: Option<prost_types::Any>,
}

impl LeaseEnd {
    pub(super) fn failed(why: &str) -> Self {
        Self::without_result(Code::Internal, why)
    }

    /// The engine gives the work to another worker.
    pub(super) fn leaving() -> Self {
        Self::without_result(Code::Unavailable, "the worker is going down")
    }

    fn without_result(code: Code, why: &str) -> Self {
        Self {
            code,
            message: why.to_owned(),
            result: None,
        }
    }

    fn completed(result: &ActionResult) -> Self {
        Self {
            code: Code::Ok,
            message: String::new(),
            result: Some(prost_types::Any {
                type_url: type_url("ActionResult"),
                value: result.encode_to_vec(),
            }),
        }
    }
}

fn type_url(name: &str) -> String {
    format!("type.googleapis.com/build.bazel.remote.execution.v2.{name}")
}

/// Runs leases, one after the other.
pub(super) struct LeaseRunner {
    pub(super) connection: Connection,
    pub(super) cache: Arc<BlobCache>,
    /// Emptied before each lease.
    pub(super) dir: PathBuf,
    pub(super) caches: PathBuf,
    pub(super) bot: String,
    pub(super) sandbox: SandboxMode,
    pub(super) launcher: Launcher,
}

impl LeaseRunner {
    pub(super) async fn run(
        &self,
        payload: Option<prost_types::Any>,
        stop: &CancellationToken,
    ) -> LeaseEnd {
        let run = self.run_action(payload, stop);
        let ended = tokio::select! {
            () = stop.cancelled() => LeaseEnd::leaving(),
            ended = run => ended.unwrap_or_else(|error| match error {
                RemoteError::Refused { code, message } => LeaseEnd::without_result(code, &message),
                error => LeaseEnd::failed(&error.to_string()),
            }),
        };
        // Processes of a cancelled run must not write into the next one.
        self.launcher.wait_for_all().await;
        let dir = self.dir.clone();
        let _ = blocking(move || remove_dir(&dir)).await;
        ended
    }

    async fn run_action(
        &self,
        payload: Option<prost_types::Any>,
        stop: &CancellationToken,
    ) -> Result<LeaseEnd, RemoteError> {
        let began = SystemTime::now();
        let action = self.action(payload.unwrap_or_default()).await?;
        let command: Command = self
            .connection
            .read_message(&action.command_digest.clone().unwrap_or_default())
            .await?;
        let input = self.dir.join("input");
        let root = action.input_root_digest.clone().unwrap_or_default();
        self.place_inputs(root, &input, &command).await?;
        let fetched = SystemTime::now();
        let finished = self.run_command(&action, &command, &input, stop).await;
        let ended = SystemTime::now();
        let exit_code = match &finished.end {
            End::Exited(code) => *code,
            End::Signalled(signal) => 128 + signal,
            End::TimedOut => {
                let why = "the command was ended after its time limit";
                return Ok(LeaseEnd::without_result(Code::DeadlineExceeded, why));
            }
            End::Cancelled => return Ok(LeaseEnd::leaving()),
            End::CouldNotStart(error) => {
                let result = ActionResult {
                    exit_code: 127,
                    stderr_raw: error.to_string().into_bytes(),
                    ..ActionResult::default()
                };
                return Ok(LeaseEnd::completed(&result));
            }
        };
        let mut blobs = Blobs::default();
        let output_files = self.collect_outputs(&command, &input, &mut blobs)?;
        self.connection.send_missing(&blobs).await?;
        let result = ActionResult {
            exit_code,
            output_files,
            stdout_raw: finished.stdout.text().as_bytes().to_vec(),
            stderr_raw: finished.stderr.text().as_bytes().to_vec(),
            execution_metadata: Some(ExecutedActionMetadata {
                worker: self.bot.clone(),
                worker_start_timestamp: timestamp(began),
                input_fetch_start_timestamp: timestamp(began),
                input_fetch_completed_timestamp: timestamp(fetched),
                execution_start_timestamp: timestamp(fetched),
                execution_completed_timestamp: timestamp(ended),
                output_upload_start_timestamp: timestamp(ended),
                output_upload_completed_timestamp: timestamp(SystemTime::now()),
                worker_completed_timestamp: timestamp(SystemTime::now()),
                auxiliary_metadata: vec![sandbox_metadata(&finished)],
                ..ExecutedActionMetadata::default()
            }),
            ..ActionResult::default()
        };
        Ok(LeaseEnd::completed(&result))
    }

    /// The payload is the Action, or its digest if the engine does not keep it.
    async fn action(&self, payload: prost_types::Any) -> Result<Action, RemoteError> {
        let broken = |error: prost::DecodeError| RemoteError::Refused {
            code: Code::InvalidArgument,
            message: error.to_string(),
        };
        if payload.type_url.ends_with(".Digest") {
            let digest = Digest::decode(payload.value.as_slice()).map_err(broken)?;
            return self.connection.read_message(&digest).await;
        }
        Action::decode(payload.value.as_slice()).map_err(broken)
    }

    /// Writes the input tree. All files are new: times of other runs would make build tools skip what has changed.
    async fn place_inputs(
        &self,
        root: Digest,
        input: &Path,
        command: &Command,
    ) -> Result<(), RemoteError> {
        let directories = self.directories(root.clone()).await?;
        let files = directories.values().flat_map(|dir| &dir.files);
        let digests: Vec<Digest> = files.filter_map(|file| file.digest.clone()).collect();
        self.cache.fetch(&self.connection, digests.iter()).await?;
        let mut parents = vec![PathBuf::from(&command.working_directory)];
        let outputs = output_paths(command).into_iter();
        parents.extend(outputs.filter_map(|path| Some(path.parent()?.to_owned())));
        for parent in &parents {
            check_inside(parent)?;
        }
        let (dir, input, cache) = (self.dir.clone(), input.to_owned(), self.cache.clone());
        blocking(move || {
            remove_dir(&dir)?;
            std::fs::create_dir_all(&dir)?;
            place(&directories, &root, &input, &cache)?;
            parents
                .iter()
                .try_for_each(|parent| std::fs::create_dir_all(input.join(parent)))
        })
        .await
    }

    /// All directories of a tree, by hash. Read level by level.
    async fn directories(&self, root: Digest) -> Result<BTreeMap<String, Directory>, RemoteError> {
        let mut found: BTreeMap<String, Directory> = BTreeMap::new();
        let mut level = vec![root];
        while !level.is_empty() {
            level.sort_by(|a, b| a.hash.cmp(&b.hash));
            level.dedup();
            let mut next = Vec::new();
            for (digest, bytes) in self.connection.read_small(level).await? {
                let directory = Directory::decode(bytes.as_slice()).map_err(io::Error::other)?;
                let below = directory.directories.iter();
                next.extend(below.filter_map(|node| node.digest.clone()));
                found.insert(digest.hash, directory);
            }
            next.retain(|digest| !found.contains_key(&digest.hash));
            if found.len() + next.len() > MAX_DIRECTORIES {
                return Err(io::Error::other("the input tree has too many directories").into());
            }
            level = next;
        }
        Ok(found)
    }

    async fn run_command(
        &self,
        action: &Action,
        command: &Command,
        input: &Path,
        stop: &CancellationToken,
    ) -> FinishedProcess {
        let words: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
        let is_suite = words == [PROGRAM, COMMAND];
        let variables = command.environment_variables.iter();
        let variables = variables.map(|v| (OsString::from(&v.name), OsString::from(&v.value)));
        let dir = input.join(&command.working_directory);
        let mut spec;
        if is_suite {
            // This program itself, which puts the tests into a sandbox. A sandbox around it would forbid that.
            let program = self.launcher.executable();
            spec = CommandSpec::new([program.into_os_string(), COMMAND.into()], dir);
            spec.env.extend(variables);
            spec.env
                .extend(environment::tests(std::env::vars_os(), &[], &[]));
            let mode = match self.sandbox {
                SandboxMode::Off => "off",
                SandboxMode::Auto => "auto",
                SandboxMode::Require => "require",
            };
            spec.env.insert(SANDBOX_VARIABLE.into(), mode.into());
            let _ = std::fs::create_dir_all(&self.caches);
            spec.env
                .insert(CACHES_VARIABLE.into(), self.caches.clone().into());
        } else {
            spec = CommandSpec::new(words.iter().map(OsString::from), dir);
            spec.env.extend(variables);
            spec.confine = Some(Confinement::new(ChildKind::Tests));
        }
        let limit = action.timeout.as_ref().map(|timeout| timeout.seconds);
        let limit = limit.and_then(|seconds| u64::try_from(seconds).ok());
        spec.limit = limit
            .filter(|seconds| *seconds > 0)
            .map_or(DEFAULT_LIMIT, Duration::from_secs);
        let rules = SandboxRules {
            mode: self.sandbox,
            write: vec![input.to_owned()],
            ..SandboxRules::default()
        };
        self.launcher.with_rules(rules).run(spec, stop).await
    }

    /// Output files that are there. Directories are not collected.
    fn collect_outputs(
        &self,
        command: &Command,
        input: &Path,
        blobs: &mut Blobs,
    ) -> io::Result<Vec<OutputFile>> {
        let mut files = Vec::new();
        for output in output_paths(command) {
            let path = input.join(&command.working_directory).join(&output);
            // The command may have put a link there, to a file of the worker.
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            if !meta.is_file() {
                continue;
            }
            let digest = self.connection.function.of_file(&path)?;
            blobs.add(digest.clone(), Blob::File(path));
            files.push(OutputFile {
                path: output.to_string_lossy().into_owned(),
                digest: Some(digest),
                is_executable: meta.permissions().mode() & 0o100 != 0,
                ..OutputFile::default()
            });
        }
        Ok(files)
    }
}

/// Older clients name files in `output_files`.
#[expect(deprecated, reason = "clients before version 2.1 of the API")]
fn output_paths(command: &Command) -> Vec<PathBuf> {
    let paths = command.output_paths.iter().chain(&command.output_files);
    paths.map(PathBuf::from).collect()
}

fn check_inside(path: &Path) -> Result<(), RemoteError> {
    if path.components().all(|c| matches!(c, Component::Normal(_))) {
        return Ok(());
    }
    Err(RemoteError::Refused {
        code: Code::InvalidArgument,
        message: format!("`{}` leads out of the input root", path.display()),
    })
}

fn place(
    directories: &BTreeMap<String, Directory>,
    digest: &Digest,
    at: &Path,
    cache: &BlobCache,
) -> io::Result<()> {
    let missing = || io::Error::other("a directory of the input tree is missing");
    let directory = directories.get(&digest.hash).ok_or_else(missing)?;
    std::fs::create_dir_all(at)?;
    for file in &directory.files {
        let path = at.join(check_name(&file.name)?);
        std::fs::copy(cache.path(file.digest.as_ref().ok_or_else(missing)?), &path)?;
        let mode = if file.is_executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    for link in &directory.symlinks {
        std::os::unix::fs::symlink(&link.target, at.join(check_name(&link.name)?))?;
    }
    for below in &directory.directories {
        let digest = below.digest.as_ref().ok_or_else(missing)?;
        place(
            directories,
            digest,
            &at.join(check_name(&below.name)?),
            cache,
        )?;
    }
    Ok(())
}

/// A name in a directory message must not lead elsewhere.
fn check_name(name: &str) -> io::Result<&str> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::Error::other(format!("`{name}` is not a file name"))),
    }
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn timestamp(time: SystemTime) -> Option<protobuf::Timestamp> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(protobuf::Timestamp {
        seconds: i64::try_from(since.as_secs()).ok()?,
        nanos: i32::try_from(since.subsec_nanos()).ok()?,
    })
}

/// Which sandbox the command had, as text. A suite reports its own.
fn sandbox_metadata(finished: &FinishedProcess) -> protobuf::Any {
    let text = protobuf::StringValue {
        value: format!("sandbox: {}", finished.sandbox),
    };
    protobuf::Any {
        type_url: String::from("type.googleapis.com/google.protobuf.StringValue"),
        value: text.encode_to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        assert!(check_name("a.txt").is_ok());
        for name in ["..", ".", "", "/etc", "a/b", "a/"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_inside(Path::new("out/report.json")).is_ok());
        assert!(check_inside(Path::new("../report.json")).is_err());
    }
}
