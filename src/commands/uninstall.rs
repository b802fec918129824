//! `supervisor uninstall`: lists what was installed and written, and removes it. Notes and session
//! logs are the user's own work, so they stay unless they are asked for.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::claude_code::{self, ClaudeCode};
use crate::built_in;
use supervisor_models::Env;
use supervisor_settings::load;
use supervisor_text::words;
use supervisor_workspace::state::{StateDir, allocated_bytes};

/// List what was installed, and remove it
///
/// The registration in Claude Code, the plugin and its marketplace, the settings, the state directory and this program. Notes and session logs
/// stay unless you give `--data`. Your projects are not touched. Exit code 0 if all of it was removed, 1 if not.
#[derive(Debug, Args)]
pub(super) struct Uninstall {
    /// Remove without asking
    #[arg(long)]
    yes: bool,
    /// Remove notes and session logs too
    #[arg(long)]
    data: bool,
}

/// One thing that can be removed.
struct Installed {
    what: &'static str,
    is_data: bool,
    removal: Removal,
}

enum Removal {
    /// A file or directory.
    Path(PathBuf),
    /// A command of Claude Code, to be run in a directory.
    Command(Vec<String>, PathBuf),
}

impl Uninstall {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let env = Env::from_process();
        let found = find(&env, config);
        for one in &found {
            let kept = if one.is_data && !self.data {
                " (kept without --data)"
            } else {
                ""
            };
            let line = format!("{:<12} {}{kept}\n", one.what, one.removal.describe());
            super::print(out, &line)?;
        }
        let wanted: Vec<&Installed> = found
            .iter()
            .filter(|one| self.data || !one.is_data)
            .collect();
        if !self.yes && !confirm(out)? {
            super::print(
                out,
                "Nothing was removed. `--yes` removes without asking.\n",
            )?;
            return Ok(ExitCode::from(1));
        }
        let runtime = super::runtime::build_runtime()?;
        let mut is_complete = true;
        for one in wanted {
            let removed = runtime.block_on(one.removal.apply(&env));
            is_complete &= removed.is_ok();
            let line = match removed {
                Ok(()) => format!("removed {}\n", one.what),
                Err(why) => format!("not removed {}: {why}\n", one.what),
            };
            super::print(out, &words::plain(&line))?;
        }
        Ok(ExitCode::from(u8::from(!is_complete)))
    }
}

fn confirm(out: &mut dyn Write) -> io::Result<bool> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(false);
    }
    out.write_all(b"Remove all of this? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn find(env: &Env, config: Option<PathBuf>) -> Vec<Installed> {
    let mut found = Vec::new();
    let mut add = |what, is_data, removal| {
        found.push(Installed {
            what,
            is_data,
            removal,
        });
    };
    let argv = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let client = ClaudeCode::read(env);
    for one in client.registrations {
        let (scope, dir) = match one.project {
            Some(project) => ("local", project),
            None => ("user", PathBuf::from("/")),
        };
        let command = argv(&["claude", "mcp", "remove", "--scope", scope, "supervisor"]);
        add("registration", false, Removal::Command(command, dir));
    }
    if let Some(plugin) = client.plugin {
        let command = argv(&["claude", "plugin", "uninstall", &plugin.id]);
        add("plugin", false, Removal::Command(command, "/".into()));
    }
    if client.has_marketplace {
        let command = argv(&["claude", "plugin", "marketplace", "remove", "supervisor"]);
        add("marketplace", false, Removal::Command(command, "/".into()));
    }
    let sources = built_in::sources(config);
    if let Some(file) = sources.user_path() {
        for path in [file.with_extension("toml.bak"), file] {
            if path.exists() {
                add("settings", false, Removal::Path(path));
            }
        }
    }
    if let Ok(state) = StateDir::locate() {
        let sessions = state.path().join("sessions");
        let others = fs::read_dir(state.path()).into_iter().flatten().flatten();
        for entry in others.map(|entry| entry.path()) {
            let is_data = entry == sessions;
            let what = if is_data { "session logs" } else { "state" };
            add(what, is_data, Removal::Path(entry));
        }
    }
    let notes = load(&sources)
        .ok()
        .and_then(|settings| supervisor_skills::notes_folder(&settings.routing).ok());
    if let Some(notes) = notes.filter(|notes| notes.exists()) {
        add("notes", true, Removal::Path(notes));
    }
    if let Ok(program) = std::env::current_exe() {
        add("program", false, Removal::Path(program));
    }
    found
}

impl Removal {
    fn describe(&self) -> String {
        let text = match self {
            Self::Path(path) if path.is_dir() => format!(
                "{} ({} MB)",
                path.display(),
                allocated_bytes(path) / 1_000_000
            ),
            Self::Path(path) => path.display().to_string(),
            Self::Command(argv, dir) if dir == Path::new("/") => argv.join(" "),
            Self::Command(argv, dir) => format!("{} (in {})", argv.join(" "), dir.display()),
        };
        words::plain(&text).into_owned()
    }

    async fn apply(&self, env: &Env) -> Result<(), String> {
        match self {
            Self::Path(path) => {
                let removed = match path.is_dir() {
                    true => fs::remove_dir_all(path),
                    false => fs::remove_file(path),
                };
                removed.map_err(|why| format!("{}: {why}", path.display()))
            }
            Self::Command(argv, dir) => claude_code::run(argv, dir, env).await,
        }
    }
}
