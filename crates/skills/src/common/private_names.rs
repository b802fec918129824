//! Finds names of machines, people and projects in text that is shared with other projects or used
//! for training. Symbols in code are not private: a word that the text uses as a symbol is ignored.

use std::collections::BTreeSet;

use supervisor_engine::session::detail::LoggedCall;
use supervisor_models::Env;
use supervisor_text::words;

/// Private names, collected from the calls that a text is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrivateNames {
    /// Absolute project directories, longest first.
    roots: Vec<String>,
    /// Matched exactly: session ids, remotes such as `owner/repository`.
    exact: BTreeSet<String>,
    /// Matched as whole words in prose: projects, users, hosts.
    words: BTreeSet<String>,
    /// Project files, relative to the root.
    files: BTreeSet<String>,
    /// The top-level directories of this machine.
    top_level: BTreeSet<String>,
}

/// Shorter names are too likely to be ordinary words.
const MIN_NAME_LEN: usize = 4;

impl PrivateNames {
    /// No names yet; recognises absolute paths of this machine.
    pub(crate) fn of_this_machine() -> Self {
        let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
        let mut top_level: BTreeSet<String> = entries
            .filter_map(|e| e.file_name().into_string().ok())
            .collect();
        // Home directories on other machines.
        top_level.extend(["home", "Users"].map(str::to_owned));
        Self {
            top_level,
            ..Self::default()
        }
    }

    pub(crate) fn add_project(&mut self, root: &str) {
        let root = root.trim_end_matches('/');
        if root.len() < 2 || self.roots.iter().any(|known| known == root) {
            return;
        }
        self.roots.push(root.to_owned());
        self.roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        self.add_word(root.rsplit('/').next().unwrap_or_default());
    }

    /// Adds a remote such as `host/owner/repository`.
    pub(crate) fn add_remote(&mut self, remote: &str) {
        let mut parts: Vec<&str> = remote.split('/').collect();
        self.exact.insert(remote.to_owned());
        if parts.len() > 2 {
            parts.remove(0);
            self.exact.insert(parts.join("/"));
        }
        parts.into_iter().for_each(|part| self.add_word(part));
    }

    /// Adds a user, host or project. Generic names such as `root` and `localhost` are ignored.
    pub(crate) fn add_word(&mut self, word: &str) {
        let word = word.trim().to_lowercase();
        if word.len() >= MIN_NAME_LEN
            && !["root", "localhost", "workspace", "project"].contains(&word.as_str())
        {
            self.words.insert(word);
        }
    }

    pub(crate) fn add_session(&mut self, id: &str) {
        if id.len() >= MIN_NAME_LEN {
            self.exact.insert(id.to_owned());
        }
    }

    /// Adds a project file, which means nothing in other projects.
    pub(crate) fn add_file(&mut self, path: &str) {
        let path = self
            .roots
            .iter()
            .find_map(|root| path.strip_prefix(root.as_str()))
            .unwrap_or(path);
        let path = path.trim_matches('/');
        if path.len() >= MIN_NAME_LEN && path.contains(['/', '.']) {
            self.files.insert(path.to_owned());
        }
    }

    /// Removes the project directories from the text, which makes paths relative.
    pub(crate) fn make_relative(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for root in &self.roots {
            text = text
                .replace(&format!("{root}/"), "")
                .replace(root.as_str(), ".");
        }
        text
    }

    /// The first private name in the text, phrased to follow a colon.
    pub(crate) fn find(&self, text: &str) -> Option<String> {
        self.find_path(text)
            .map(|path| format!("the absolute path `{path}`"))
            .or_else(|| self.find_name(text))
    }

    /// Like [`Self::find`], including project files.
    pub(crate) fn find_with_files(&self, text: &str) -> Option<String> {
        let file = self.files.iter().find(|file| contains_path(text, file));
        file.map(|file| format!("`{file}`, a file of the project"))
            .or_else(|| self.find(text))
    }

    fn find_name(&self, text: &str) -> Option<String> {
        if let Some(exact) = self
            .exact
            .iter()
            .find(|exact| text.contains(exact.as_str()))
        {
            return Some(format!("the name `{exact}`"));
        }
        let lower = text.to_lowercase();
        self.words
            .iter()
            .find(|word| is_in_prose(&lower, word))
            .map(|word| format!("the name `{word}`"))
    }

    /// The first absolute path of a file system. URL paths such as `/api/users` do not count.
    fn find_path(&self, text: &str) -> Option<String> {
        let is_inside =
            |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let is_path_start = c == '/' && !is_inside(before) && before != ':' && before != '~';
            before = c;
            if !is_path_start {
                continue;
            }
            let path: String = text[at..].chars().take_while(|c| is_inside(*c)).collect();
            let mut parts = path
                .trim_start_matches('/')
                .split('/')
                .filter(|part| !part.is_empty());
            let (first, second) = (parts.next().unwrap_or_default(), parts.next());
            if !path.starts_with("//") && second.is_some() && self.top_level.contains(first) {
                return Some(words::cut_end(&path, 80).into_owned());
            }
        }
        None
    }
}

/// Collects the private names in logged calls: projects, files, sessions, users and hosts.
pub(crate) fn private_names<'a>(
    calls: impl Iterator<Item = &'a LoggedCall>,
    env: &Env,
) -> PrivateNames {
    let mut names = PrivateNames::of_this_machine();
    for variable in ["USER", "LOGNAME", "HOSTNAME"] {
        if let Some(value) = env.get(variable) {
            names.add_word(&value);
        }
    }
    if let Ok(host) = rustix::system::uname().nodename().to_str() {
        names.add_word(host);
    }
    for call in calls {
        let entry = call.entry();
        names.add_session(&entry.session_id);
        names.add_project(&entry.project_root);
        names.add_file(&entry.file_path);
        for (name, value) in entry.input.as_object().into_iter().flatten() {
            let is_path = name.ends_with("path") || name == "files";
            let values = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            for path in values
                .iter()
                .filter_map(|value| value.as_str())
                .filter(|_| is_path)
            {
                names.add_file(path.split("::").next().unwrap_or(path));
            }
        }
    }
    names
}

/// Whether the word occurs as a whole word in prose and never as a symbol in code.
fn is_in_prose(text: &str, word: &str) -> bool {
    let mut prose = false;
    for (at, _) in text.match_indices(word) {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let mut rest = text[at + word.len()..].chars();
        let (after, next) = (rest.next().unwrap_or(' '), rest.next().unwrap_or(' '));
        let ends = after.is_whitespace()
            || (matches!(after, '.' | ',' | ';' | '!' | '?' | '\'') && !next.is_alphanumeric());
        match before.is_whitespace() && ends {
            true => prose = true,
            false if before.is_alphanumeric() || after.is_alphanumeric() => {}
            // Used as a symbol: `shop::total`, `import shop.cart`, `"shop"`.
            false => return false,
        }
    }
    prose
}

fn contains_path(text: &str, file: &str) -> bool {
    text.match_indices(file).any(|(at, _)| {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let after = text[at + file.len()..].chars().next().unwrap_or(' ');
        !before.is_alphanumeric() && !after.is_alphanumeric()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> PrivateNames {
        let mut names = PrivateNames::of_this_machine();
        names.add_project("/home/ada/work/orders");
        names.add_remote("git.example.org/lovelace/orders");
        names.add_session("fix-login.2");
        names.add_word("babbage-laptop");
        names.add_file("/home/ada/work/orders/src/cart.py");
        names
    }

    #[test]
    fn people_machines_projects_and_places_are_found() {
        for text in [
            "see /home/ada/notes/x.md",
            "written in /tmp/abc/def by a test",
            "as lovelace said",
            "at git.example.org/lovelace/orders",
            "in session fix-login.2 it failed",
            "only on babbage-laptop.",
            "the orders project is slow",
        ] {
            assert!(names().find(text).is_some(), "{text}");
        }
    }

    #[test]
    fn code_urls_and_ordinary_words_are_ignored() {
        for text in [
            "use orders::total;\nlet orders = 3; // orders of the day",
            "GET /api/users/7 answers 404",
            "https://docs.rs/tokio/latest/tokio",
            "a // b and c/d/e",
            "the root cause is a missing check",
            "reorders nothing, and borders are drawn",
        ] {
            assert_eq!(names().find(text), None, "{text}");
        }
        assert!(
            names()
                .find_with_files("change src/cart.py first")
                .is_some()
        );
        assert_eq!(names().find_with_files("change the cart first"), None);
    }

    #[test]
    fn project_root_is_stripped_from_paths() {
        let text =
            names().make_relative("/home/ada/work/orders/src/a.rs:3 in /home/ada/work/orders");
        assert_eq!(
            (text.as_str(), names().find(&text)),
            ("src/a.rs:3 in .", None)
        );
    }
}
