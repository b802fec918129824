//! Splits an answer into prose and fenced blocks, line by line. Handles fences as models write
//! them: indented, nested, unclosed.

use super::vocabulary::{is_one_of, vocabulary};

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerSegment<'t> {
    /// Lines between blocks.
    Prose(Vec<&'t str>),
    Block(FencedBlock<'t>),
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FencedBlock<'t> {
    /// The text after the opening fence.
    pub(super) info: &'t str,
    /// The lines inside, without the fence's indentation.
    pub(super) lines: Vec<&'t str>,
    /// Line number of the opening fence, from 1.
    pub(super) line: usize,
    pub(super) is_closed: bool,
}

impl FencedBlock<'_> {
    /// The text inside, with a newline after each line.
    pub(super) fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [*line, "\n"]).collect()
    }

    /// The first word of the info string.
    pub(super) fn language(&self) -> &str {
        self.info
            .split([' ', ':', '{', ',', '='])
            .next()
            .unwrap_or_default()
    }
}

struct FenceLine<'t> {
    indent: usize,
    mark: char,
    length: usize,
    info: &'t str,
}

/// Parses a line that opens or closes a block.
fn fence_line(line: &str) -> Option<FenceLine<'_>> {
    let body = line.trim_start_matches([' ', '\t']);
    let indent = line.len() - body.len();
    let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = body.chars().take_while(|c| *c == mark).count();
    let info = body[length..].trim();
    // Three marks inside a sentence are not a fence.
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(FenceLine {
        indent,
        mark,
        length,
        info,
    })
}

/// Splits an answer into its parts, in order.
pub(super) fn split_segments(text: &str) -> Vec<AnswerSegment<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut segments, mut prose, mut at) = (Vec::new(), Vec::new(), 0);
    while at < lines.len() {
        let Some(open) = fence_line(lines[at]) else {
            prose.push(lines[at]);
            at += 1;
            continue;
        };
        if !prose.is_empty() {
            segments.push(AnswerSegment::Prose(std::mem::take(&mut prose)));
        }
        let (end, mut is_closed) = find_end(&lines, at, &open);
        let mut inside: Vec<&str> = lines[at + 1..end]
            .iter()
            .map(|line| without_indent(line, open.indent))
            .collect();
        let ends_at = if is_closed { end + 1 } else { end };
        if !is_closed && let Some(bare) = closed_on_last_line(&inside, &open) {
            inside = bare;
            is_closed = true;
        }
        segments.push(AnswerSegment::Block(FencedBlock {
            info: open.info,
            lines: inside,
            line: at + 1,
            is_closed,
        }));
        at = ends_at;
    }
    if !prose.is_empty() {
        segments.push(AnswerSegment::Prose(prose));
    }
    segments
}

/// The line after the last one inside the block, and whether the block is closed.
fn find_end(lines: &[&str], at: usize, open: &FenceLine<'_>) -> (usize, bool) {
    let is_markdown = is_one_of(
        open.info.split(' ').next().unwrap_or_default(),
        &vocabulary().blocks.markdown,
    ) || open.info.ends_with(".md")
        || lines[at.saturating_sub(2)..at]
            .iter()
            .any(|line| line.trim_end_matches(['*', '`', ':']).ends_with(".md"));
    let (mut depth, mut fallback) = (0_usize, None);
    for (n, line) in lines.iter().enumerate().skip(at + 1) {
        let Some(fence) =
            fence_line(line).filter(|f| f.mark == open.mark && f.length >= open.length)
        else {
            continue;
        };
        if !fence.info.is_empty() {
            if is_markdown && fence.length == open.length {
                depth += 1;
            } else if fence.indent <= open.indent && fence.length == open.length {
                // The next block begins before this one was closed.
                return fallback.map_or((n, false), |end| (end, true));
            }
            continue;
        }
        if depth > 0 {
            depth -= 1;
        } else if fence.indent <= open.indent {
            return (n, true);
        } else if fallback.is_none() && fence.indent <= open.indent + 3 {
            // Indented deeper than the opening fence: an example in a doc comment, unless no better
            // end follows.
            fallback = Some(n);
        }
    }
    fallback.map_or((lines.len(), false), |end| (end, true))
}

/// Handles a closing fence at the end of the last line, as in `}` followed by three marks.
fn closed_on_last_line<'t>(lines: &[&'t str], open: &FenceLine<'_>) -> Option<Vec<&'t str>> {
    let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
    let marks: String = std::iter::repeat_n(open.mark, open.length).collect();
    let bare = lines[last].trim_end().strip_suffix(&marks)?;
    Some(lines[..last].iter().copied().chain([bare]).collect())
}

fn without_indent(line: &str, indent: usize) -> &str {
    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[blank.min(indent)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<(String, String, bool)> {
        let block = |segment| match segment {
            AnswerSegment::Block(block) => {
                Some((block.info.to_owned(), block.text(), block.is_closed))
            }
            AnswerSegment::Prose(_) => None,
        };
        split_segments(text).into_iter().filter_map(block).collect()
    }

    #[test]
    fn fenced_blocks_are_found() {
        let one = |info: &str, body: &str, closed| vec![(info.to_owned(), body.to_owned(), closed)];
        assert_eq!(blocks("a\n```rust\nx\n```\nb"), one("rust", "x\n", true));
        assert_eq!(
            blocks("1. so:\n   ~~~ py\n   x\n     y\n   ~~~"),
            one("py", "x\n  y\n", true)
        );
        assert_eq!(
            blocks("````md\n```\nx\n```\n````"),
            one("md", "```\nx\n```\n", true)
        );
        assert_eq!(blocks("```\nopen\n"), one("", "open\n", false));
        assert_eq!(blocks("```js\nx()\n}```\n"), one("js", "x()\n}\n", true));
        assert_eq!(blocks("not ```a fence``` here"), vec![]);
    }

    #[test]
    fn fence_in_documentation_does_not_end_block() {
        let docs = "```elixir\n@doc \"\"\"\n    ```\n    iex> 1\n    ```\n\"\"\"\n```\n";
        assert_eq!(blocks(docs).len(), 1);
        assert!(blocks(docs)[0].1.ends_with("\"\"\"\n"));
        let readme = "README.md\n```markdown\n# x\n```sh\nmake\n```\nend\n```\n";
        assert_eq!(blocks(readme)[0].1, "# x\n```sh\nmake\n```\nend\n");
    }

    #[test]
    fn unclosed_block_ends_at_the_next() {
        let found = blocks("```rust\nfn a() {}\n\n```rust\nfn b() {}\n```\n");
        assert_eq!(found.iter().map(|b| b.2).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn many_fences_are_linear() {
        assert!(
            blocks(&"```\n".repeat(100_000))
                .iter()
                .all(|b| b.1.is_empty())
        );
        // No opening fence is closed, and the search for its end stops at the next one.
        assert_eq!(blocks(&"```rust\n".repeat(100_000)).len(), 100_000);
        let nested = blocks(&"~~~~~~\n```\n".repeat(50_000));
        assert!(!nested.is_empty());
    }
}
