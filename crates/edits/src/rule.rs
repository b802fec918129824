//! The rules by which answers are parsed. Each rule has a fixture in the table of answer formats,
//! and an answer lists the rules it used, so that the log shows how it was understood.

/// Declares the rules, their names and the list of all of them in one place.
macro_rules! reading_rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)+) => {
        /// One way in which models write what they mean.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ParseRule {
            $($(#[$doc])* $rule,)+
        }

        impl ParseRule {
            pub const ALL: &[Self] = &[$(Self::$rule,)+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)+
                }
            }
        }
    };
}

reading_rules! {
    /// A fenced block with its path on a line before it.
    PathBeforeFence = "path-before-fence",
    /// A fenced block with its path in a heading before it.
    PathInHeading = "path-in-heading",
    /// A fenced block with its path in a sentence before it.
    PathInSentence = "path-in-sentence",
    /// A fenced block with its path in the info string.
    PathInInfo = "path-in-info",
    /// A fenced block whose first line is a comment with the path, or the bare path.
    PathInFirstLine = "path-in-first-line",
    /// A block without a path that can only belong to one file.
    OnlyFile = "only-file",
    /// A quotation of the project, or a shell command: not an edit.
    Quotation = "quotation",
    /// `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`.
    SearchReplace = "search-replace",
    /// An empty search: a new file, or text to append.
    EmptySearch = "empty-search",
    /// A unified diff, with or without correct line numbers.
    UnifiedDiff = "unified-diff",
    /// `*** Begin Patch`, `*** Update File: …`.
    PatchEnvelope = "patch-envelope",
    /// Elements such as `<file path="…">` or `<write_file><path>…`.
    Elements = "elements",
    /// `<function=write_file><parameter=path>…`.
    FunctionElements = "function-elements",
    /// One JSON object as requested.
    Json = "json",
    /// JSON with comments, trailing commas, raw line breaks, other quotes, or brackets missing at its end.
    LenientJson = "lenient-json",
    /// JSON inside a JSON string.
    DoubleEncoding = "double-encoding",
    /// The answer inside another object, a list, or a tool call.
    Wrapper = "wrapper",
    /// One edit without a list around it.
    SingleEdit = "single-edit",
    /// An object whose keys are paths.
    PathMap = "path-map",
    /// Keys or an action under other names than requested.
    OtherWords = "other-words",
    /// No action given: the other keys decide.
    NoAction = "no-action",
    /// Text as a list of lines.
    ListOfLines = "list-of-lines",
    /// A code fence inside the text of a JSON answer.
    FencedContent = "fenced-content",
    /// Line numbers copied from a listing.
    LineNumbers = "line-numbers",
    /// `...` in a search is a placeholder for unchanged lines.
    Elision = "elision",
    /// An absolute path below the project root.
    AbsolutePath = "absolute-path",
    /// The project's name before the path.
    ProjectName = "project-name",
    /// A path in another spelling than the existing file: case, Unicode form, backslashes, a bare
    /// file name.
    OtherSpelling = "other-spelling",
    /// `create` for an existing file, `replace` for a missing one.
    CreateOrReplace = "create-or-replace",
    /// A file repeated without changes.
    Unchanged = "unchanged",
    /// Two edits of one place: the last one counts.
    LastCounts = "last-counts",
    /// Reasoning before the answer, closed or not.
    Thoughts = "thoughts",
    /// Chat template tokens.
    TemplateTokens = "template-tokens",
    /// `DELETE:`, `NEED:`, `CONTRADICTION:`, `NOTES:` on separate lines.
    Directive = "directive",
    /// A contradiction that says there is none.
    NoContradiction = "no-contradiction",
    /// An unclosed block was skipped.
    UnclosedBlock = "unclosed-block",
}
