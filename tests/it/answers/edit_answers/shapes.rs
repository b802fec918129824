//! The ways in which models really write an answer. Each shape wraps the same change; nothing in it knows the reader.

use serde_json::{Value, json};

use super::projects::LanguageProject;

/// One change, to be written in some shape.
pub(crate) struct ShapedChange<'a> {
    pub(crate) project: &'a LanguageProject,
    /// The line that replaces `old_line`.
    pub(crate) line: &'a str,
    /// The absolute path of the project.
    pub(crate) root: &'a str,
}

/// A name, what becomes of it, and how it is written.
pub(crate) type Shape = (&'static str, Fate, fn(&ShapedChange<'_>) -> String);

/// What the reader makes of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Read,
    /// Refused, with these words in the complaint.
    Refused(&'static str),
}
use Fate::{Read, Refused};

impl ShapedChange<'_> {
    fn path(&self) -> &str {
        self.project.code_path
    }

    pub(crate) fn contents(&self) -> String {
        self.project.with(self.line)
    }

    fn fenced(&self, text: &str) -> String {
        format!("```{}\n{text}```\n", self.project.language)
    }

    fn new_fenced(&self) -> String {
        self.fenced(&self.contents())
    }

    /// The line with its indentation, before and after.
    fn lines(&self) -> (String, String) {
        let old = self
            .project
            .old()
            .lines()
            .find(|line| line.contains(self.project.old_line))
            .unwrap();
        (
            old.to_owned(),
            old.replace(self.project.old_line, self.line),
        )
    }

    /// The line before it, as it stands.
    fn line_before(&self) -> &str {
        let lines: Vec<&str> = self.project.old().lines().collect();
        let at = lines
            .iter()
            .position(|line| line.contains(self.project.old_line))
            .unwrap();
        lines[at - 1]
    }

    fn line_after(&self) -> &str {
        let lines: Vec<&str> = self.project.old().lines().collect();
        let at = lines
            .iter()
            .position(|line| line.contains(self.project.old_line))
            .unwrap();
        lines[at + 1]
    }

    fn line_number(&self) -> usize {
        self.project
            .old()
            .lines()
            .position(|line| line.contains(self.project.old_line))
            .unwrap()
            + 1
    }

    fn search_block(&self) -> String {
        let (old, new) = self.lines();
        format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n")
    }

    /// One hunk with a line of context on both sides; `mark` stands before unchanged lines.
    fn hunk(&self, head: &str, mark: &str) -> String {
        let (old, new) = self.lines();
        format!(
            "{head}\n{mark}{}\n-{old}\n+{new}\n{mark}{}\n",
            self.line_before(),
            self.line_after()
        )
    }

    fn numbered(&self, text: &str) -> String {
        text.lines()
            .enumerate()
            .map(|(n, line)| format!("{}| {line}\n", n + 1))
            .collect()
    }

    fn edit(&self) -> Value {
        json!({"path": self.path(), "action": "replace", "content": self.contents()})
    }

    fn change(&self) -> Value {
        let (old, new) = self.lines();
        json!({"path": self.path(), "action": "change", "search": old, "replace": new})
    }

    /// A string of JSON with its line breaks as they are.
    fn raw_string(text: &str) -> String {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

pub(crate) static SHAPES: &[Shape] = &[
    // Files as text.
    ("path before the fence", Read, |c| {
        format!("{}\n{}", c.path(), c.new_fenced())
    }),
    ("path and an empty line before the fence", Read, |c| {
        format!("{}\n\n{}", c.path(), c.new_fenced())
    }),
    ("bold path", Read, |c| {
        format!("I fixed it.\n\n**{}**\n{}", c.path(), c.new_fenced())
    }),
    ("path in backticks with a colon", Read, |c| {
        format!("`{}`:\n\n{}", c.path(), c.new_fenced())
    }),
    ("path in a heading", Read, |c| {
        format!("### {}\n\n{}\nDone.", c.path(), c.new_fenced())
    }),
    ("path in a heading in backticks", Read, |c| {
        format!("## File: `{}`\n{}", c.path(), c.new_fenced())
    }),
    ("path with a label", Read, |c| {
        format!("File: {}\n{}", c.path(), c.new_fenced())
    }),
    ("path in a list", Read, |c| {
        format!("1. `{}` (updated)\n{}", c.path(), c.new_fenced())
    }),
    ("path in a sentence", Read, |c| {
        format!(
            "Here is the updated `{}`:\n\n{}Hope that helps!",
            c.path(),
            c.new_fenced()
        )
    }),
    ("path in a sentence without quotes", Read, |c| {
        format!(
            "I changed {} so that the test in {} passes:\n{}",
            c.path(),
            c.project.test_path,
            c.new_fenced()
        )
    }),
    ("path after the language", Read, |c| {
        format!(
            "```{} {}\n{}```",
            c.project.language,
            c.path(),
            c.contents()
        )
    }),
    ("path after a colon in the info string", Read, |c| {
        format!(
            "```{}:{}\n{}```",
            c.project.language,
            c.path(),
            c.contents()
        )
    }),
    ("path as the info string", Read, |c| {
        format!("```{}\n{}```", c.path(), c.contents())
    }),
    ("path as a title", Read, |c| {
        format!(
            "```{} title=\"{}\"\n{}```",
            c.project.language,
            c.path(),
            c.contents()
        )
    }),
    ("path in a comment on the first line", Read, |c| {
        c.fenced(&format!(
            "{} {}\n{}",
            c.project.comment,
            c.path(),
            c.contents()
        ))
    }),
    ("path on the first line of the block", Read, |c| {
        c.fenced(&format!("{}\n{}", c.path(), c.contents()))
    }),
    ("tildes", Read, |c| {
        format!("{}\n~~~\n{}~~~\n", c.path(), c.contents())
    }),
    ("an indented block in a list", Read, |c| {
        let inside: String = c
            .contents()
            .lines()
            .map(|line| format!("   {line}\n"))
            .collect();
        format!(
            "1. {}\n   ```{}\n{inside}   ```\n",
            c.path(),
            c.project.language
        )
    }),
    ("no path, and one file that can be meant", Read, |c| {
        format!("Sure:\n\n{}", c.new_fenced())
    }),
    ("a shell command after the code", Read, |c| {
        format!(
            "{}\n{}\nThen run:\n```bash\nmake test\n```\n",
            c.path(),
            c.new_fenced()
        )
    }),
    ("a test quoted before the code", Read, |c| {
        let quoted: Vec<&str> = c
            .project
            .text(c.project.test_path)
            .lines()
            .rev()
            .take(3)
            .collect();
        let quoted: String = quoted
            .into_iter()
            .rev()
            .flat_map(|line| [line, "\n"])
            .collect();
        format!(
            "The test in `{}` says:\n{}\nSo:\n\n{}\n{}",
            c.project.test_path,
            c.fenced(&quoted),
            c.path(),
            c.new_fenced()
        )
    }),
    ("the test file repeated unchanged", Read, |c| {
        format!(
            "{}\n{}\n{}\n{}",
            c.path(),
            c.new_fenced(),
            c.project.test_path,
            c.fenced(c.project.text(c.project.test_path))
        )
    }),
    ("notes on a line of their own", Read, |c| {
        format!(
            "{}\n{}\nNOTES: one line was wrong\n",
            c.path(),
            c.new_fenced()
        )
    }),
    ("a contradiction that is none", Read, |c| {
        format!("CONTRADICTION: none\n\n{}\n{}", c.path(), c.new_fenced())
    }),
    ("line numbers copied into the file", Read, |c| {
        format!("{}\n{}", c.path(), c.fenced(&c.numbered(&c.contents())))
    }),
    ("a draft and then the answer", Read, |c| {
        format!(
            "{p}\n{}\nWait, that is wrong.\n\n{p}\n{}",
            c.fenced(c.project.old()),
            c.new_fenced(),
            p = c.path()
        )
    }),
    ("an unclosed block after the answer", Read, |c| {
        format!(
            "{}\n{}\ndocs/notes.md\n```markdown\n# Not",
            c.path(),
            c.new_fenced()
        )
    }),
    ("a byte order mark and carriage returns", Read, |c| {
        format!("\u{feff}{}\n{}", c.path(), c.new_fenced()).replace('\n', "\r\n")
    }),
    ("marks that close on the last line of code", Read, |c| {
        format!(
            "{}\n```{}\n{}```",
            c.path(),
            c.project.language,
            c.contents().trim_end()
        )
    }),
    // Places.
    ("search and replace in a fence", Read, |c| {
        format!("{}\n{}", c.path(), c.fenced(&c.search_block()))
    }),
    ("search and replace with the path inside", Read, |c| {
        c.fenced(&format!("{}\n{}", c.path(), c.search_block()))
    }),
    ("search and replace without a fence", Read, |c| {
        format!("Here:\n\n{}\n{}", c.path(), c.search_block())
    }),
    ("original and updated", Read, |c| {
        let (old, new) = c.lines();
        format!(
            "{}\n```\n<<<<<<< ORIGINAL\n{old}\n=======\n{new}\n>>>>>>> UPDATED\n```\n",
            c.path()
        )
    }),
    ("dashes and pluses", Read, |c| {
        let (old, new) = c.lines();
        format!(
            "{}\n```\n------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE\n```\n",
            c.path()
        )
    }),
    ("search and replace with the wrong indentation", Read, |c| {
        let (old, new) = c.lines();
        format!(
            "{}\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n",
            c.path(),
            old.trim(),
            new.trim()
        )
    }),
    ("search with copied line numbers", Read, |c| {
        let (old, new) = c.lines();
        let n = c.line_number();
        format!(
            "{}\n<<<<<<< SEARCH\n{n}| {old}\n=======\n{n}| {new}\n>>>>>>> REPLACE\n",
            c.path()
        )
    }),
    ("dots for lines that stay", Read, |c| {
        let first = c.project.old().lines().next().unwrap();
        let (old, new) = c.lines();
        format!(
            "{}\n<<<<<<< SEARCH\n{first}\n...\n{old}\n=======\n{first}\n...\n{new}\n>>>>>>> REPLACE\n",
            c.path()
        )
    }),
    ("an empty search for a new file", Read, |c| {
        format!(
            "{}\n{}\ndocs/notes.md\n<<<<<<< SEARCH\n=======\n# Notes\n>>>>>>> REPLACE\n",
            c.path(),
            c.search_block()
        )
    }),
    ("the same place twice", Read, |c| {
        let draft = c.search_block().replace(c.line, "draft");
        format!("{p}\n{draft}\n{p}\n{}", c.search_block(), p = c.path())
    }),
    ("unified diff", Read, |c| {
        let n = c.line_number() - 1;
        format!(
            "```diff\n--- a/{p}\n+++ b/{p}\n{}```\n",
            c.hunk(&format!("@@ -{n},3 +{n},3 @@"), " "),
            p = c.path()
        )
    }),
    ("unified diff of git without a fence", Read, |c| {
        let n = c.line_number() - 1;
        format!(
            "diff --git a/{p} b/{p}\nindex 1..2 100644\n--- a/{p}\n+++ b/{p}\n{}",
            c.hunk(&format!("@@ -{n},3 +{n},3 @@"), " "),
            p = c.path()
        )
    }),
    ("unified diff with wrong numbers", Read, |c| {
        format!(
            "```diff\n--- {p}\n+++ {p}\n{}```\n",
            c.hunk("@@ -90,7 +91,2 @@", " "),
            p = c.path()
        )
    }),
    ("unified diff without numbers", Read, |c| {
        format!(
            "```diff\n--- a/{p}\n+++ b/{p}\n{}```\n",
            c.hunk("@@ ... @@", " "),
            p = c.path()
        )
    }),
    ("a diff without heads under its path", Read, |c| {
        format!("`{}`\n```diff\n{}```\n", c.path(), c.hunk("@@ @@", " "))
    }),
    ("patch envelope", Read, |c| {
        format!(
            "*** Begin Patch\n*** Update File: {}\n{}*** End Patch\n",
            c.path(),
            c.hunk("@@", " ")
        )
    }),
    // JSON.
    ("JSON as it is asked for", Read, |c| {
        json!({"edits": [c.edit()], "notes": "x"}).to_string()
    }),
    ("JSON with search and replace", Read, |c| {
        json!({"edits": [c.change()]}).to_string()
    }),
    ("JSON in a fence amid prose", Read, |c| {
        format!(
            "Here is the answer:\n\n```json\n{:#}\n```\nDone.",
            json!({"edits": [c.edit()]})
        )
    }),
    ("JSON amid prose without a fence", Read, |c| {
        format!("The answer is:\n{}\nDone.", json!({"edits": [c.edit()]}))
    }),
    ("trailing commas", Read, |c| {
        let edit = c.edit().to_string();
        format!("{{\"edits\": [{},}},],}}", edit.strip_suffix('}').unwrap())
    }),
    ("raw line breaks", Read, |c| {
        format!(
            "{{\"edits\": [{{\"path\": \"{}\", \"action\": \"replace\", \"content\": {}}}]}}",
            c.path(),
            ShapedChange::raw_string(&c.contents())
        )
    }),
    ("comments", Read, |c| {
        format!(
            "{{\n  // the fix\n  \"edits\": [ /* one */ {} ]\n}}",
            c.edit()
        )
    }),
    ("single quotes", Read, |c| {
        let text = c
            .contents()
            .replace('\\', "\\\\")
            .replace('\n', "\\n")
            .replace('\t', "\\t");
        format!(
            "{{'edits': [{{'path': '{}', 'action': 'replace', 'content': '{text}'}}]}}",
            c.path()
        )
    }),
    ("triple quotes", Read, |c| {
        format!(
            "{{\"edits\": [{{\"path\": \"{}\", \"action\": \"replace\", \"content\": \"\"\"\n{}\"\"\"}}]}}",
            c.path(),
            c.contents()
        )
    }),
    ("back quotes", Read, |c| {
        format!(
            "{{\"edits\": [{{\"path\": \"{}\", \"action\": \"replace\", \"content\": `{}`}}]}}",
            c.path(),
            c.contents()
        )
    }),
    ("quotes that are not escaped", Read, |c| {
        let text = c.contents().replace('\n', "\\n").replace('\t', "\\t");
        format!(
            "{{\"edits\": [{{\"path\": \"{}\", \"action\": \"replace\", \"content\": \"{text}\"}}]}}",
            c.path()
        )
    }),
    ("closing brackets cut off", Read, |c| {
        json!({"edits": [c.edit()]})
            .to_string()
            .trim_end_matches(['}', ']'])
            .to_owned()
    }),
    ("content as a list of lines", Read, |c| {
        let lines: Vec<String> = c.contents().lines().map(str::to_owned).collect();
        json!({"edits": [{"path": c.path(), "action": "replace", "content": lines}]}).to_string()
    }),
    ("content in a fence inside of JSON", Read, |c| {
        json!({"edits": [{"path": c.path(), "action": "replace", "content": c.new_fenced()}]})
            .to_string()
    }),
    ("edits as one object", Read, |c| {
        json!({"edits": c.edit()}).to_string()
    }),
    ("edits as a map of paths", Read, |c| {
        json!({"edits": {c.path(): c.contents()}}).to_string()
    }),
    ("a map of paths alone", Read, |c| {
        json!({c.path(): c.contents()}).to_string()
    }),
    ("one edit alone", Read, |c| c.edit().to_string()),
    ("a list of edits alone", Read, |c| {
        json!([c.edit()]).to_string()
    }),
    ("file and code", Read, |c| {
        json!({"edits": [{"file": c.path(), "action": "replace", "code": c.contents()}]})
            .to_string()
    }),
    ("filename and contents in files", Read, |c| {
        json!({"files": [{"filename": c.path(), "contents": c.contents()}]}).to_string()
    }),
    ("old and new strings", Read, |c| {
        let (old, new) = c.lines();
        json!({"edits": [{"file_path": c.path(), "old_string": old, "new_string": new}]})
            .to_string()
    }),
    ("no action", Read, |c| {
        json!({"edits": [{"path": c.path(), "content": c.contents()}]}).to_string()
    }),
    ("update", Read, |c| {
        json!({"edits": [{"path": c.path(), "action": "update", "content": c.contents()}]})
            .to_string()
    }),
    ("modify a place", Read, |c| {
        let (old, new) = c.lines();
        json!({"edits": [{"path": c.path(), "action": "modify", "search": old, "replace": new}]})
            .to_string()
    }),
    ("create on a file that is there", Read, |c| {
        json!({"edits": [{"path": c.path(), "action": "create", "content": c.contents()}]})
            .to_string()
    }),
    ("extra keys", Read, |c| {
        let mut edit = c.edit();
        edit["reason"] = json!("it was wrong");
        edit["line"] = json!(7);
        json!({"edits": [edit], "confidence": 0.9, "plan": ["read", "write"]}).to_string()
    }),
    ("an empty search beside the content", Read, |c| {
        json!({"edits": [{"path": c.path(), "action": "replace", "search": "", "replace": "", "content": c.contents()}]})
            .to_string()
    }),
    ("places under one path", Read, |c| {
        let (old, new) = c.lines();
        json!({"file": c.path(), "changes": [{"old": old, "new": new}]}).to_string()
    }),
    ("a diff inside of JSON", Read, |c| {
        json!({"diff": format!("--- a/{p}\n+++ b/{p}\n{}", c.hunk("@@ -1,3 +1,3 @@", " "), p = c.path())}).to_string()
    }),
    ("encoded twice", Read, |c| {
        json!(json!({"edits": [c.edit()]}).to_string()).to_string()
    }),
    ("edits encoded as a string", Read, |c| {
        json!({"edits": json!([c.edit()]).to_string()}).to_string()
    }),
    ("a contradiction of none in JSON", Read, |c| {
        json!({"edits": [c.edit()], "contradiction": "None."}).to_string()
    }),
    ("inside of `answer`", Read, |c| {
        json!({"answer": {"edits": [c.edit()]}}).to_string()
    }),
    ("a call of a tool", Read, |c| {
        json!([{"id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": json!({"path": c.path(), "content": c.contents()}).to_string()}}]).to_string()
    }),
    ("tool_call tags around JSON", Read, |c| {
        format!(
            "<tool_call>\n{}\n</tool_call>",
            json!({"name": "edit", "arguments": {"edits": [c.edit()]}})
        )
    }),
    ("a function with parameters in tags", Read, |c| {
        format!(
            "<tool_call>\n<function=write_file>\n<parameter=path>\n{}\n</parameter>\n<parameter=content>\n{}</parameter>\n</function>\n</tool_call>",
            c.path(),
            c.contents()
        )
    }),
    ("a file element", Read, |c| {
        format!("<file path=\"{}\">\n{}</file>\n", c.path(), c.contents())
    }),
    ("an element with path and content", Read, |c| {
        format!(
            "<write_to_file>\n<path>{}</path>\n<content>\n{}</content>\n</write_to_file>\n",
            c.path(),
            c.contents()
        )
    }),
    ("an element with a CDATA section", Read, |c| {
        format!(
            "<file name=\"{}\"><![CDATA[\n{}]]></file>\n",
            c.path(),
            c.contents()
        )
    }),
    // Around the answer.
    ("thoughts before", Read, |c| {
        format!(
            "<think>\nMaybe {}\n```\nhm\n</think>\n\n{}\n{}",
            c.path(),
            c.path(),
            c.new_fenced()
        )
    }),
    ("thoughts that the template opened", Read, |c| {
        format!("hm, let me see\n</think>\n{}\n{}", c.path(), c.new_fenced())
    }),
    ("thoughts without an end", Read, |c| {
        format!(
            "<think>\nLet me fix it.\n\n{}\n{}",
            c.path(),
            c.new_fenced()
        )
    }),
    ("tokens of a channel", Read, |c| {
        format!(
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{}\n{}<|return|>",
            c.path(),
            c.new_fenced()
        )
    }),
    // Paths.
    ("an absolute path", Read, |c| {
        format!("{}/{}\n{}", c.root, c.path(), c.new_fenced())
    }),
    ("an absolute path in JSON", Read, |c| {
        json!({"edits": [{"path": format!("{}/{}", c.root, c.path()), "action": "replace", "content": c.contents()}]})
            .to_string()
    }),
    ("the project's name before the path", Read, |c| {
        let name = c.root.rsplit('/').next().unwrap();
        format!("{name}/{}\n{}", c.path(), c.new_fenced())
    }),
    ("a path in capitals", Read, |c| {
        format!("{}\n{}", c.path().to_uppercase(), c.new_fenced())
    }),
    ("a bare file name", Read, |c| {
        format!(
            "{}\n{}",
            c.path().rsplit('/').next().unwrap(),
            c.new_fenced()
        )
    }),
    // What is not an answer.
    ("words alone", Refused("no code in the answer"), |c| {
        format!("Change `{}` to `{}`.", c.project.old_line, c.line)
    }),
    ("a block without an end", Refused("has no end"), |c| {
        format!("{}\n```{}\n{}", c.path(), c.project.language, c.contents())
    }),
    (
        "JSON that ends inside of a string",
        Refused("JSON that cannot be read"),
        |c| {
            let whole = json!({"edits": [c.edit()]}).to_string();
            whole[..whole.len() - 12].to_owned()
        },
    ),
    ("a file with parts left out", Refused("left out"), |c| {
        let (_, new) = c.lines();
        format!(
            "{}\n{}",
            c.path(),
            c.fenced(&format!(
                "{} ... existing code ...\n{new}\n",
                c.project.comment
            ))
        )
    }),
    (
        "a search block without a divider",
        Refused("no `=======` line"),
        |c| {
            format!(
                "{}\n{}",
                c.path(),
                c.search_block().replace("=======\n", "")
            )
        },
    ),
    ("nothing but fences", Refused("has no end"), |_| {
        "```\n".repeat(7)
    }),
];
