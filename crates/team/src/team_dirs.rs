//! Locates a team's files in a project: in the run of a session (newer teams), in
//! `.workflow/.team/<id>` (older ones), or, read-only, in `.workflow/.team-msg/<id>` (the oldest).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use supervisor_workspace::{ConfinedFolder, FolderError};

const SESSIONS: &str = ".workflow/sessions";
const OLDER: &str = ".workflow/.team";
const OLDEST: &str = ".workflow/.team-msg";
/// Maximum length of a session, run or role name in bytes.
const MAX_NAME_LEN: usize = 200;

/// A name that is safe as one segment of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamId(String);

/// Which of the three layouts a team uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TeamLayout {
    Run,
    Older,
    /// Read-only.
    Oldest,
}

/// The directories of a team in a project.
#[derive(Debug, Clone)]
pub struct TeamDirs {
    folder: Arc<ConfinedFolder>,
    layout: TeamLayout,
    /// Relative to the project: bus, wisdom, session file.
    team_dir: String,
    /// Relative to the project: reports.
    outputs: String,
    /// The directory of the run, or of the team.
    base: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TeamDirsError {
    #[error(
        "`{field}` is {given:?}, which cannot name a folder: use 1 to {MAX_NAME_LEN} letters, digits, `-`, `_` or `.`, without `/` and not `.` or `..`"
    )]
    Name { field: &'static str, given: String },
    #[error(
        "`session_id` {id:?} names {count} runs, in the sessions {sessions}; pass `run_dir` to say which"
    )]
    Ambiguous {
        id: String,
        count: usize,
        sessions: String,
    },
    #[error(
        "`run_dir` is `{given}`, which is not `.workflow/sessions/<session>/runs/<run>` below the project root"
    )]
    RunDir { given: String },
    #[error(
        "there is no team `{id}`: neither a run of that name below `{SESSIONS}` nor `{OLDER}/{id}`; make it with `team_msg` operation log, or correct `session_id`"
    )]
    NoTeam { id: String },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl TeamId {
    pub fn new(field: &'static str, given: &str) -> Result<Self, TeamDirsError> {
        let is_plain =
            |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '@' | ':');
        let ok = !given.is_empty()
            && given.len() <= MAX_NAME_LEN
            && given != "."
            && given != ".."
            && given.trim() == given
            && given.chars().all(is_plain);
        if ok {
            return Ok(Self(given.to_owned()));
        }
        let shown: String = given.chars().take(60).collect();
        Err(TeamDirsError::Name {
            field,
            given: shown,
        })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TeamDirs {
    /// Finds an existing team.
    pub fn find(
        root: &Path,
        id: &TeamId,
        run_dir: Option<&str>,
    ) -> Result<Option<Self>, TeamDirsError> {
        let folder = Arc::new(ConfinedFolder::open(root)?);
        if let Some(run_dir) = run_dir {
            return Self::named(&folder, root, run_dir).map(Some);
        }
        let mut sessions = Vec::new();
        for session in folder.list(SESSIONS)? {
            let run = format!("{SESSIONS}/{session}/runs/{}", id.as_str());
            if folder.entry(&run)?.is_some_and(|entry| entry.is_dir) {
                sessions.push((session, run));
            }
        }
        match sessions.as_slice() {
            [] => {}
            [(_, run)] => return Ok(Some(Self::of_run(&folder, run))),
            several => {
                return Err(TeamDirsError::Ambiguous {
                    id: id.as_str().to_owned(),
                    count: several.len(),
                    sessions: several
                        .iter()
                        .map(|(s, _)| format!("`{s}`"))
                        .collect::<Vec<_>>()
                        .join(", "),
                });
            }
        }
        for (dir, layout) in [(OLDER, TeamLayout::Older), (OLDEST, TeamLayout::Oldest)] {
            let team_dir = format!("{dir}/{}", id.as_str());
            if folder.entry(&team_dir)?.is_some_and(|entry| entry.is_dir) {
                return Ok(Some(Self::of_team(&folder, team_dir, layout)));
            }
        }
        Ok(None)
    }

    /// The names of all teams in a project.
    pub fn team_names(root: &Path) -> Result<Vec<String>, TeamDirsError> {
        let folder = ConfinedFolder::open(root)?;
        let mut names = std::collections::BTreeSet::new();
        for session in folder.list(SESSIONS)? {
            names.extend(folder.list(&format!("{SESSIONS}/{session}/runs"))?);
        }
        for dir in [OLDER, OLDEST] {
            names.extend(folder.list(dir)?);
        }
        Ok(names
            .into_iter()
            .filter(|name| TeamId::new("team", name).is_ok())
            .collect())
    }

    /// Finds a team, or returns the directories for a new one.
    pub fn find_or_new(
        root: &Path,
        id: &TeamId,
        run_dir: Option<&str>,
    ) -> Result<Self, TeamDirsError> {
        if let Some(found) = Self::find(root, id, run_dir)?
            && found.layout != TeamLayout::Oldest
        {
            return Ok(found);
        }
        let folder = Arc::new(ConfinedFolder::open(root)?);
        Ok(Self::of_team(
            &folder,
            format!("{OLDER}/{}", id.as_str()),
            TeamLayout::Older,
        ))
    }

    /// Finds a team that must exist.
    pub fn existing(
        root: &Path,
        id: &TeamId,
        run_dir: Option<&str>,
    ) -> Result<Self, TeamDirsError> {
        Self::find(root, id, run_dir)?.ok_or_else(|| TeamDirsError::NoTeam {
            id: id.as_str().to_owned(),
        })
    }

    /// Uses any folder with a pipeline's artifacts as the team folder.
    pub fn of_folder(path: &Path) -> Result<Self, TeamDirsError> {
        let folder = Arc::new(ConfinedFolder::open(path)?);
        Ok(Self {
            folder,
            layout: TeamLayout::Older,
            team_dir: String::new(),
            outputs: String::from("artifacts"),
            base: String::new(),
        })
    }

    /// The team whose folder was named: that of a run, or that of an older team.
    fn named(
        folder: &Arc<ConfinedFolder>,
        root: &Path,
        given: &str,
    ) -> Result<Self, TeamDirsError> {
        let dir = relative_dir(root, given)?;
        Ok(if dir.starts_with(OLDER) {
            Self::of_team(folder, dir, TeamLayout::Older)
        } else {
            Self::of_run(folder, &dir)
        })
    }

    fn of_run(folder: &Arc<ConfinedFolder>, run: &str) -> Self {
        Self {
            folder: Arc::clone(folder),
            layout: TeamLayout::Run,
            team_dir: format!("{run}/work/team"),
            outputs: format!("{run}/outputs"),
            base: run.to_owned(),
        }
    }

    fn of_team(folder: &Arc<ConfinedFolder>, team_dir: String, layout: TeamLayout) -> Self {
        let outputs = format!("{team_dir}/artifacts");
        Self {
            folder: Arc::clone(folder),
            layout,
            base: team_dir.clone(),
            team_dir,
            outputs,
        }
    }

    pub fn folder(&self) -> &ConfinedFolder {
        &self.folder
    }

    pub fn layout(&self) -> TeamLayout {
        self.layout
    }

    /// Directory of messages, state and lock.
    pub fn bus_dir(&self) -> String {
        match self.layout {
            TeamLayout::Oldest => self.team_dir.clone(),
            TeamLayout::Run | TeamLayout::Older => join_path(&self.team_dir, ".msg"),
        }
    }

    pub fn wisdom(&self, file: &str) -> String {
        join_path(&join_path(&self.team_dir, "wisdom"), file)
    }

    pub fn output(&self, file: &str) -> String {
        join_path(&self.outputs, file)
    }

    pub fn outputs_dir(&self) -> &str {
        &self.outputs
    }

    pub fn team_file(&self, file: &str) -> String {
        join_path(&self.team_dir, file)
    }

    /// The directories of a pipeline's artifacts, most likely first, without duplicates.
    pub fn artifact_roots(&self) -> Vec<String> {
        let mut roots = vec![self.team_dir.clone()];
        for root in [&self.outputs, &self.base] {
            if !roots.contains(root) {
                roots.push(root.clone());
            }
        }
        roots
    }

    pub fn absolute(&self, path: &str) -> PathBuf {
        self.folder.locate(path)
    }
}

/// Joins two path parts, either of which may be empty.
pub fn join_path(dir: &str, name: &str) -> String {
    match (dir.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => dir.to_owned(),
        _ => format!("{dir}/{name}"),
    }
}

fn relative_dir(root: &Path, given: &str) -> Result<String, TeamDirsError> {
    let invalid = || TeamDirsError::RunDir {
        given: given.chars().take(200).collect(),
    };
    let path = Path::new(given);
    let relative = if path.is_absolute() {
        path.strip_prefix(root).map_err(|_| invalid())?
    } else {
        path
    };
    let text = relative
        .to_str()
        .ok_or_else(invalid)?
        .trim_end_matches('/')
        .trim_start_matches("./");
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [".workflow", "sessions", session, "runs", run] => {
            TeamId::new("run_dir", session)?;
            TeamId::new("run_dir", run)?;
            Ok(text.to_owned())
        }
        [".workflow", ".team", team] => {
            TeamId::new("session", team)?;
            Ok(text.to_owned())
        }
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_team_names_are_refused() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "a\0b",
            " a",
            "a\n",
            &"x".repeat(300),
        ] {
            assert!(TeamId::new("session_id", bad).is_err(), "{bad:?}");
        }
        for good in [
            "TLV4-login-2026-11-01",
            "20260717-001-team-testing",
            "größe",
            "a.b",
        ] {
            assert!(TeamId::new("session_id", good).is_ok(), "{good}");
        }
    }

    #[test]
    fn newest_existing_layout_is_used() {
        let dir = tempfile::tempdir().expect("temp dir");
        let id = TeamId::new("session_id", "r1").expect("a name");
        let make = |path: &str| std::fs::create_dir_all(dir.path().join(path)).expect("mkdir");
        let found = || TeamDirs::find(dir.path(), &id, None).expect("looked");
        assert!(found().is_none());
        assert_eq!(
            TeamDirs::find_or_new(dir.path(), &id, None)
                .expect("new")
                .bus_dir(),
            ".workflow/.team/r1/.msg"
        );
        make(".workflow/.team-msg/r1");
        assert_eq!(
            found().map(|p| (p.layout(), p.bus_dir())),
            Some((TeamLayout::Oldest, ".workflow/.team-msg/r1".into()))
        );
        make(".workflow/.team/r1");
        assert_eq!(found().map(|p| p.layout()), Some(TeamLayout::Older));
        make(".workflow/sessions/s1/runs/r1");
        let run = found().expect("found");
        assert_eq!(
            run.bus_dir(),
            ".workflow/sessions/s1/runs/r1/work/team/.msg"
        );
        assert_eq!(
            run.output("x.md"),
            ".workflow/sessions/s1/runs/r1/outputs/x.md"
        );
        make(".workflow/sessions/s2/runs/r1");
        assert!(matches!(
            TeamDirs::find(dir.path(), &id, None),
            Err(TeamDirsError::Ambiguous { count: 2, .. })
        ));
        let named = TeamDirs::find(dir.path(), &id, Some(".workflow/sessions/s2/runs/r1"))
            .expect("named")
            .expect("there");
        assert!(named.bus_dir().contains("/s2/"));
        assert!(TeamDirs::find(dir.path(), &id, Some("../elsewhere")).is_err());
    }

    #[test]
    fn symlinked_session_is_refused() {
        let dir = tempfile::tempdir().expect("temp dir");
        let outside = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir_all(dir.path().join(".workflow/.team")).expect("mkdir");
        std::os::unix::fs::symlink(outside.path(), dir.path().join(".workflow/.team/r1"))
            .expect("link");
        let id = TeamId::new("session_id", "r1").expect("a name");
        let error = TeamDirs::find(dir.path(), &id, None).expect_err("refused");
        assert!(error.to_string().contains("link"), "{error}");
    }
}
