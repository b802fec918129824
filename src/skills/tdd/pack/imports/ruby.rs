//! `require_relative "../lib/x"`, `require "x"`, `autoload :X, "x"`: a file is loaded, and all it defines is there.

use super::{Import, quoted_after};

pub(super) fn imports(text: &str, masked: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in masked.split_inclusive('\n') {
        let begin = at + (line.len() - line.trim_start().len());
        at += line.len();
        let code = line.trim();
        let rest = |keyword: &str| begin + keyword.len();
        if code.starts_with("require_relative") {
            // Marked as a path, since a bare name is looked up elsewhere.
            found.extend(quoted_after(text, rest("require_relative")).map(|m| Import::all(&format!("./{m}"))));
        } else if code.starts_with("require") || code.starts_with("load ") {
            found.extend(quoted_after(text, begin + code.find([' ', '(']).unwrap_or(code.len())).map(Import::all));
        } else if code.starts_with("autoload") {
            let quote = text.get(begin..).and_then(|t| t.find(['"', '\'']));
            found.extend(quote.and_then(|q| quoted_after(text, begin + q)).map(Import::all));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skills::tdd::pack::lang::{Lang, mask};

    #[test]
    fn each_form_of_require_is_read() {
        let text = "require 'json'\nrequire_relative(\"../lib/a\")\n  autoload :B, 'x/b'\n# require 'no'\n";
        let found = imports(text, &mask(Lang::Ruby, text));
        assert_eq!(found, [Import::all("json"), Import::all("./../lib/a"), Import::all("x/b")]);
    }
}
