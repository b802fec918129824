//! Does a text name a machine, a person or a project? What is told to other projects, or learned by a model, must not.
//! Symbols of code are no such names: a word that stands in the text as one is left alone.

use std::collections::BTreeSet;

use supervisor_text::words;

/// What names a person or a thing, gathered from the calls that a text is about.
#[derive(Debug, Clone, Default)]
pub struct PrivateNames {
    /// Directories of projects, absolute; the longest first.
    roots: Vec<String>,
    /// Found as they stand: session ids, remotes such as `owner/repository`.
    exact: BTreeSet<String>,
    /// Found as whole words in prose: a project, a user, a machine.
    words: BTreeSet<String>,
    /// Files of the project, relative.
    files: BTreeSet<String>,
    /// Names of directories at the root of this machine's file system.
    top_level: BTreeSet<String>,
}

/// Shorter names are words of the language.
const SHORTEST: usize = 4;

impl PrivateNames {
    /// Nothing yet but what an absolute path looks like on this machine.
    pub fn of_this_machine() -> Self {
        let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
        let mut top_level: BTreeSet<String> = entries
            .filter_map(|e| e.file_name().into_string().ok())
            .collect();
        // Where people's directories lie on other machines.
        top_level.extend(["home", "Users"].map(str::to_owned));
        Self {
            top_level,
            ..Self::default()
        }
    }

    pub fn add_project(&mut self, root: &str) {
        let root = root.trim_end_matches('/');
        if root.len() < 2 || self.roots.iter().any(|known| known == root) {
            return;
        }
        self.roots.push(root.to_owned());
        self.roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        self.add_word(root.rsplit('/').next().unwrap_or_default());
    }

    /// `host/owner/repository`.
    pub fn add_remote(&mut self, remote: &str) {
        let mut parts: Vec<&str> = remote.split('/').collect();
        self.exact.insert(remote.to_owned());
        if parts.len() > 2 {
            parts.remove(0);
            self.exact.insert(parts.join("/"));
        }
        parts.into_iter().for_each(|part| self.add_word(part));
    }

    /// A user, a machine, a project. The superuser and the machine at hand are shared by all.
    pub fn add_word(&mut self, word: &str) {
        let word = word.trim().to_lowercase();
        if word.len() >= SHORTEST
            && !["root", "localhost", "workspace", "project"].contains(&word.as_str())
        {
            self.words.insert(word);
        }
    }

    pub fn add_session(&mut self, id: &str) {
        if id.len() >= SHORTEST {
            self.exact.insert(id.to_owned());
        }
    }

    /// A file of the project, which says nothing to another one.
    pub fn add_file(&mut self, path: &str) {
        let path = self
            .roots
            .iter()
            .find_map(|root| path.strip_prefix(root.as_str()))
            .unwrap_or(path);
        let path = path.trim_matches('/');
        if path.len() >= SHORTEST && path.contains(['/', '.']) {
            self.files.insert(path.to_owned());
        }
    }

    /// The text with the project's own directory taken out of its paths, which makes them relative.
    pub fn relative(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for root in &self.roots {
            text = text
                .replace(&format!("{root}/"), "")
                .replace(root.as_str(), ".");
        }
        text
    }

    /// The first thing in the text that names something private, in words that read after a colon.
    pub fn find(&self, text: &str) -> Option<String> {
        self.find_path(text)
            .map(|path| format!("the absolute path `{path}`"))
            .or_else(|| self.find_name(text))
    }

    /// The same, files of the project included.
    pub fn find_with_files(&self, text: &str) -> Option<String> {
        let file = self.files.iter().find(|file| stands_in(text, file));
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

    /// A path that begins at the root of some machine; `/api/users` begins nowhere.
    fn find_path(&self, text: &str) -> Option<String> {
        let is_inside =
            |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let begins = c == '/' && !is_inside(before) && before != ':' && before != '~';
            before = c;
            if !begins {
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

/// As a whole word among words; nowhere as a symbol of code.
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
            // `shop::total`, `import shop.cart`, `"shop"`: the code itself has that name.
            false => return false,
        }
    }
    prose
}

fn stands_in(text: &str, file: &str) -> bool {
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
    fn code_addresses_and_ordinary_words_are_not() {
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
    fn the_projects_own_directory_is_taken_out() {
        let text = names().relative("/home/ada/work/orders/src/a.rs:3 in /home/ada/work/orders");
        assert_eq!(
            (text.as_str(), names().find(&text)),
            ("src/a.rs:3 in .", None)
        );
    }
}
