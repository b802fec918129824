//! Splits a shell line into a chain of commands: `lint && vitest run` is two. `shell-words` splits the words; commands
//! that only a shell can run are marked as such instead of being guessed at.

use std::path::Path;

/// One command of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainCommand {
    pub words: Vec<String>,
    /// The command as written.
    pub text: String,
    /// Uses variables, redirections or other syntax that a list of words cannot express.
    pub needs_shell: bool,
}

impl ChainCommand {
    /// The unquoted glob patterns, which a shell replaces with the matching files.
    pub(crate) fn patterns(&self) -> Vec<String> {
        let unquoted: Vec<&str> = self.text.split_whitespace().collect();
        let is_pattern =
            |word: &&String| word.contains(['*', '?', '[']) && unquoted.contains(&word.as_str());
        self.words
            .iter()
            .skip(1)
            .filter(is_pattern)
            .cloned()
            .collect()
    }
}

/// Replaces the glob `patterns` in `argv` with the files that match now. A pattern without matches is kept, as in `sh`.
pub(crate) fn expand_globs(argv: &[String], patterns: &[String], dir: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for word in argv {
        let found = if patterns.contains(word) {
            files_matching(dir, word)
        } else {
            Vec::new()
        };
        if found.is_empty() {
            words.push(word.clone());
        } else {
            words.extend(found);
        }
    }
    words
}

/// Splits a chain joined by `&&`, `;` or newlines. The error is the operator that makes the line something else.
pub(crate) fn split_chain(line: &str) -> Result<Vec<ChainCommand>, String> {
    let (mut pieces, mut text, mut needs_shell) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                text.push(c);
                text.extend(chars.next());
                continue;
            }
            (_, '$' | '`') => needs_shell = true,
            (Some(_), _) => {}
            (None, '&' | ';' | '\n' | '|') => {
                let doubled = chars.next_if_eq(&c).is_some();
                match (c, doubled) {
                    ('&', true) | (';' | '\n', false) => {}
                    ('|', true) => return Err(String::from("||")),
                    _ => return Err(c.to_string()),
                }
                add_piece(&mut pieces, &mut text, &mut needs_shell)?;
                continue;
            }
            (None, '<' | '>' | '(' | ')') => needs_shell = true,
            (None, _) => {}
        }
        text.push(c);
    }
    add_piece(&mut pieces, &mut text, &mut needs_shell)?;
    Ok(pieces)
}

fn add_piece(
    pieces: &mut Vec<ChainCommand>,
    text: &mut String,
    needs_shell: &mut bool,
) -> Result<(), String> {
    let text = std::mem::take(text).trim().to_owned();
    let needs_shell = std::mem::take(needs_shell) || text.starts_with("! ");
    let words = shell_words::split(&text).map_err(|e| e.to_string())?;
    if !words.is_empty() {
        pieces.push(ChainCommand {
            words,
            text,
            needs_shell,
        });
    }
    Ok(())
}

/// Files that match a pattern, as in `sh`: sorted, and `**` means the same as `*`.
fn files_matching(dir: &Path, pattern: &str) -> Vec<String> {
    /// More than fit on any command line.
    const MAX_FILES: usize = 5_000;
    let escaped = glob::Pattern::escape(&dir.to_string_lossy());
    let full_pattern = format!("{escaped}/{}", pattern.replace("**", "*"));
    let found = glob::glob(&full_pattern)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_FILES);
    let relative = |path: std::path::PathBuf| {
        Some(path.strip_prefix(dir).ok()?.to_string_lossy().into_owned())
    };
    found.filter_map(relative).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Result<Vec<String>, String> {
        Ok(split_chain(line)?.into_iter().map(|p| p.text).collect())
    }

    #[test]
    fn chain_is_split_like_in_a_shell() {
        assert_eq!(
            texts("xo && ava && tsd"),
            Ok(vec!["xo".into(), "ava".into(), "tsd".into()])
        );
        assert_eq!(
            texts("a 'b && c';d\\&\\&e"),
            Ok(vec!["a 'b && c'".into(), "d\\&\\&e".into()])
        );
        assert_eq!(texts("jest"), Ok(vec!["jest".into()]));
        assert_eq!(texts(""), Ok(vec![]));
        for (line, operator) in [
            ("jest | tee log", "|"),
            ("a & b", "&"),
            ("jest || true", "||"),
        ] {
            assert_eq!(texts(line), Err(operator.into()), "{line}");
        }
        assert!(texts("'").is_err());
    }

    #[test]
    fn shell_syntax_needs_a_shell() {
        for (line, needs) in [
            ("jest --ci", false),
            ("jest '$x'", false),
            ("jest \"$x\"", true),
            ("x $(y)", true),
            ("jest > log", true),
            ("! grep x", true),
            ("mocha test/*.js", false),
        ] {
            assert_eq!(
                split_chain(line).expect("a command chain")[0].needs_shell,
                needs,
                "{line}"
            );
        }
    }

    #[test]
    fn unquoted_globs_become_files() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["b.js", "a.js", "deep/c.js"] {
            std::fs::create_dir_all(dir.path().join("deep")).expect("the directory is created");
            std::fs::write(dir.path().join(name), "").expect("the file is written");
        }
        let words = |line: &str| {
            let piece = &split_chain(line).expect("a command chain")[0];
            expand_globs(&piece.words, &piece.patterns(), dir.path())
        };
        assert_eq!(words("mocha *.js"), ["mocha", "a.js", "b.js"]);
        assert_eq!(words("mocha '*.js'"), ["mocha", "*.js"]);
        assert_eq!(words("mocha **/*.js"), ["mocha", "deep/c.js"]);
        assert_eq!(words("mocha *.ts"), ["mocha", "*.ts"], "nothing matches");
    }
}
