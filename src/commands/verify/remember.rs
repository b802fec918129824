//! Writes the test command of a project into the user's settings, and keeps everything else there: comments, order and
//! blank lines.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use crate::commands::settings_file::SettingsFile;
use supervisor_process::expand_home;

pub(super) struct TestCommand<'a> {
    pub(super) test_cmd: &'a str,
    pub(super) test_report: Option<&'a str>,
}

impl TestCommand<'_> {
    /// Returns the name of the project in the settings.
    pub(super) fn write_to(&self, file: &SettingsFile, root: &Path) -> anyhow::Result<String> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let before = file.read()?;
        let (name, text) =
            self.edited(before.as_deref().unwrap_or_default(), root, home.as_deref())?;
        file.check(&text)
            .context("the settings would not be valid any more, so nothing was written")?;
        file.write(&text, before.as_deref())?;
        Ok(name)
    }

    fn edited(
        &self,
        before: &str,
        root: &Path,
        home: Option<&Path>,
    ) -> anyhow::Result<(String, String)> {
        let mut document: DocumentMut = before.parse().context("your settings are not TOML")?;
        let projects = document.entry("projects").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let projects = projects
            .as_table_like_mut()
            .context("`projects` in your settings is not a table")?;
        let is_root = |name: &str| {
            let path = expand_home(name, home).map(|path| path.canonicalize().unwrap_or(path));
            path.as_deref() == Some(root)
        };
        let known = projects.iter().map(|(name, _)| name.to_owned());
        let name = match known.into_iter().find(|name| is_root(name)) {
            Some(name) => name,
            None => project_name(root, home)?,
        };
        let project = projects
            .entry(&name)
            .or_insert_with(|| Item::Table(Table::new()));
        let project = project
            .as_table_like_mut()
            .with_context(|| format!("`projects.\"{name}\"` in your settings is not a table"))?;
        set(project, "test_cmd", self.test_cmd);
        match self.test_report {
            Some(report) => set(project, "test_report", report),
            // It belonged to the command before.
            None => drop(project.remove("test_report")),
        }
        Ok((name, document.to_string()))
    }
}

/// `~/shop`, or the whole path outside of the home directory.
fn project_name(root: &Path, home: Option<&Path>) -> anyhow::Result<String> {
    let below_home = home
        .and_then(|home| home.canonicalize().ok())
        .and_then(|home| root.strip_prefix(home).ok().map(Path::to_owned));
    let path = root
        .to_str()
        .context("the path of the project is not UTF-8, so it cannot stand in the settings")?;
    Ok(match below_home.as_deref().and_then(Path::to_str) {
        Some("") => String::from("~"),
        Some(rest) => format!("~/{rest}"),
        None => path.to_owned(),
    })
}

/// Sets a text and keeps the comment beside it.
fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    let mut value = Value::from(text);
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        _ => drop(table.insert(key, Item::Value(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_order_are_kept() {
        let home = Path::new("/home/me");
        let command = TestCommand {
            test_cmd: "make test",
            test_report: None,
        };
        let before = "# mine\nverifier = \"none\" # no judge\n\n[projects.\"~/shop\"]\ntest_cmd = \"old\" # slow\nstay_local = true\n";
        let (name, after) = command
            .edited(before, Path::new("/home/me/shop"), Some(home))
            .expect("edited");
        assert_eq!(name, "~/shop");
        assert_eq!(after, before.replace("\"old\"", "\"make test\""));

        let (name, added) = command
            .edited(before, Path::new("/srv/b c"), Some(home))
            .expect("edited");
        assert_eq!(name, "/srv/b c");
        assert_eq!(
            added,
            format!("{before}\n[projects.\"/srv/b c\"]\ntest_cmd = \"make test\"\n")
        );
    }
}
