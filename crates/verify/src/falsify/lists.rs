//! Splits bracketed lists at their commas: arguments, arrays, tuples, table rows and macro tokens. It needs only brackets
//! and the known literals, so it works for all languages.

use std::ops::Range;

use super::test_source::TestSource;

impl TestSource {
    /// The elements of the first bracketed list in `range`: `[1, 2]`, `vec![(1, 2)]`, `f(1, 2)`. After a type, the last
    /// list is used: `[]struct{ n int }{{1}, {2}}`.
    pub(super) fn elements(&self, range: &Range<usize>) -> Option<Vec<Range<usize>>> {
        let opens = self.outermost_brackets(range);
        let text = self.slice(range).trim_end();
        let is_typed = opens.len() > 1 && text.ends_with('}') && text.starts_with(['[', 'm']);
        self.elements_from(
            if is_typed {
                *opens.last()?
            } else {
                *opens.first()?
            },
            range,
        )
    }

    /// The positions of opening brackets that are not inside other brackets.
    pub(super) fn outermost_brackets(&self, range: &Range<usize>) -> Vec<usize> {
        let mut depth = 0_usize;
        let mut opens = Vec::new();
        for (at, byte) in self.bytes_outside_literals(range) {
            if is_open(byte) {
                if depth == 0 {
                    opens.push(at);
                }
                depth += 1;
            } else if is_close(byte) {
                depth = depth.saturating_sub(1);
            }
        }
        opens
    }

    fn elements_from(&self, open: usize, range: &Range<usize>) -> Option<Vec<Range<usize>>> {
        let mut depth = 0_usize;
        let mut start = open + 1;
        let mut elements = Vec::new();
        for (at, byte) in self.bytes_outside_literals(&(open..range.end)) {
            match byte {
                b if is_open(b) => depth += 1,
                b if is_close(b) => {
                    depth -= 1;
                    if depth == 0 {
                        elements.push(start..at);
                        let trimmed = elements.into_iter().map(|part| self.trimmed(&part));
                        return Some(trimmed.filter(|part| !part.is_empty()).collect());
                    }
                }
                b',' if depth == 1 => {
                    elements.push(start..at);
                    start = at + 1;
                }
                _ => {}
            }
        }
        None
    }

    /// Splits `key => value` or `key: value`; `None` for anything else.
    pub(super) fn pair(&self, range: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let mut depth = 0_i32;
        let mut previous = 0_u8;
        for (at, byte) in self.bytes_outside_literals(range) {
            depth += i32::from(is_open(byte)) - i32::from(is_close(byte));
            let is_arrow = byte == b'>' && previous == b'=';
            let next = self.text.as_bytes().get(at + 1).copied();
            let is_colon =
                byte == b':' && previous != b':' && next.is_some_and(|n| n.is_ascii_whitespace());
            if depth == 0 && (is_arrow || is_colon) {
                let key_end = if is_arrow { at - 1 } else { at };
                return Some((
                    self.trimmed(&(range.start..key_end)),
                    self.trimmed(&(at + 1..range.end)),
                ));
            }
            previous = byte;
        }
        None
    }

    /// The ranges of the words in `range` that are not part of a literal.
    pub(super) fn words(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut words: Vec<Range<usize>> = Vec::new();
        for (at, byte) in self.bytes_outside_literals(range) {
            let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
            match words.last_mut() {
                Some(last) if is_word && last.end == at => last.end = at + 1,
                _ if is_word => words.push(at..at + 1),
                _ => {}
            }
        }
        words
    }

    /// The range without white space and comments at its ends.
    pub(super) fn trimmed(&self, range: &Range<usize>) -> Range<usize> {
        let mut range = range.clone();
        loop {
            let text = self.slice(&range);
            let start = range.start + (text.len() - text.trim_start().len());
            let end = start.max(range.start + text.trim_end().len());
            let mut inside = self
                .comments
                .iter()
                .filter(|c| start < end && start <= c.start && c.end <= end);
            range = match inside.find(|c| c.start == start || c.end == end) {
                Some(comment) if comment.start == start => comment.end..end,
                Some(comment) => start..comment.start,
                None => return start..end,
            };
        }
    }

    pub(super) fn bytes_outside_literals<'a>(
        &'a self,
        range: &'a Range<usize>,
    ) -> impl Iterator<Item = (usize, u8)> + 'a {
        let mut literals = self.literals_in(range).peekable();
        let first = self.comments.partition_point(|c| c.end <= range.start);
        let mut comments = self.comments[first..].iter().peekable();
        let bytes = self.text.as_bytes();
        range.clone().filter_map(move |at| {
            while literals.peek().is_some_and(|next| next.range.end <= at) {
                literals.next();
            }
            while comments.peek().is_some_and(|next| next.end <= at) {
                comments.next();
            }
            let is_inside = literals.peek().is_some_and(|next| next.range.start <= at)
                || comments.peek().is_some_and(|next| next.start <= at);
            (!is_inside).then(|| Some((at, *bytes.get(at)?))).flatten()
        })
    }
}

fn is_open(byte: u8) -> bool {
    matches!(byte, b'(' | b'[' | b'{')
}

fn is_close(byte: u8) -> bool {
    matches!(byte, b')' | b']' | b'}')
}
