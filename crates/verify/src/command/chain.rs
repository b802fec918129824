//! A line of shell read as far as it is a chain of commands: `lint && vitest run` is two.
//! Words are told by `shell-words`; what only a shell could run is said to be so, and never guessed at.

use std::path::Path;

/// One command of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub words: Vec<String>,
    /// As it is written.
    pub text: String,
    /// Variables, redirections and the like, which words alone do not carry.
    pub needs_shell: bool,
}

impl Piece {
    /// The words that a shell replaces by the files that match: patterns that are not quoted.
    pub fn patterns(&self) -> Vec<String> {
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

/// Words with these patterns replaced by the files that match now.
pub fn expanded(argv: &[String], patterns: &[String], dir: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for word in argv {
        let found = if patterns.contains(word) {
            files_matching(dir, word)
        } else {
            Vec::new()
        };
        if found.is_empty() {
            words.push(word.clone())
        } else {
            words.extend(found)
        }
    }
    words
}

/// The commands of a chain joined by `&&` or `;`. The sign that makes it something else is given back.
pub fn split_chain(line: &str) -> Result<Vec<Piece>, String> {
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
    pieces: &mut Vec<Piece>,
    text: &mut String,
    needs_shell: &mut bool,
) -> Result<(), String> {
    let text = std::mem::take(text).trim().to_owned();
    let needs_shell = std::mem::take(needs_shell) || text.starts_with("! ");
    let words = shell_words::split(&text).map_err(|e| e.to_string())?;
    if !words.is_empty() {
        pieces.push(Piece {
            words,
            text,
            needs_shell,
        });
    }
    Ok(())
}

/// Files that match a pattern, as `sh` finds them: sorted, and `**` is no deeper than `*`.
fn files_matching(dir: &Path, pattern: &str) -> Vec<String> {
    /// More than any command line takes.
    const MOST: usize = 5_000;
    let escaped = glob::Pattern::escape(&dir.to_string_lossy());
    let whole = format!("{escaped}/{}", pattern.replace("**", "*"));
    let found = glob::glob(&whole)
        .into_iter()
        .flatten()
        .flatten()
        .take(MOST);
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
    fn a_chain_is_split_where_a_shell_would() {
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
        for (line, sign) in [
            ("jest | tee log", "|"),
            ("a & b", "&"),
            ("jest || true", "||"),
        ] {
            assert_eq!(texts(line), Err(sign.into()), "{line}");
        }
        assert!(texts("'").is_err());
    }

    #[test]
    fn what_words_do_not_carry_needs_a_shell() {
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
                split_chain(line).expect("a chain")[0].needs_shell,
                needs,
                "{line}"
            );
        }
    }

    #[test]
    fn patterns_become_files_unless_they_are_quoted() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["b.js", "a.js", "deep/c.js"] {
            std::fs::create_dir_all(dir.path().join("deep")).expect("made");
            std::fs::write(dir.path().join(name), "").expect("written");
        }
        let words = |line: &str| {
            let piece = &split_chain(line).expect("a chain")[0];
            expanded(&piece.words, &piece.patterns(), dir.path())
        };
        assert_eq!(words("mocha *.js"), ["mocha", "a.js", "b.js"]);
        assert_eq!(words("mocha '*.js'"), ["mocha", "*.js"]);
        assert_eq!(words("mocha **/*.js"), ["mocha", "deep/c.js"]);
        assert_eq!(words("mocha *.ts"), ["mocha", "*.ts"], "nothing matches");
    }
}
