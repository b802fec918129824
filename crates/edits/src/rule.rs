//! The names of the shapes in which an answer is read. Each rule has a fixture in the table of answer shapes, and an
//! answer says which rules it took, so that a reader of the log sees how it was understood.

/// Declares the rules, their names and the list of all of them in one place.
macro_rules! reading_rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)+) => {
        /// One way in which models write what they mean.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ReadingRule {
            $($(#[$doc])* $rule,)+
        }

        impl ReadingRule {
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
    /// A fenced block whose path stands on a line before it.
    PathBeforeFence = "path-before-fence",
    /// A fenced block whose path stands in a heading before it.
    PathInHeading = "path-in-heading",
    /// A fenced block whose path stands in a sentence before it.
    PathInSentence = "path-in-sentence",
    /// A fenced block whose path stands in its info string.
    PathInInfo = "path-in-info",
    /// A fenced block whose first line is a comment with the path, or the bare path.
    PathInFirstLine = "path-in-first-line",
    /// A block without a path that can only be meant for one file.
    OnlyFile = "only-file",
    /// A quotation of the project, or a shell command: not an edit.
    Quotation = "quotation",
    /// `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`.
    SearchReplace = "search-replace",
    /// A search that is empty: a new file, or text to append.
    EmptySearch = "empty-search",
    /// A unified diff, with or without numbers that are right.
    UnifiedDiff = "unified-diff",
    /// `*** Begin Patch`, `*** Update File: …`.
    PatchEnvelope = "patch-envelope",
    /// Elements such as `<file path="…">` or `<write_file><path>…`.
    Elements = "elements",
    /// `<function=write_file><parameter=path>…`.
    FunctionElements = "function-elements",
    /// One JSON object as it was asked for.
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
    /// Keys, or an action, by other names than those asked for.
    OtherWords = "other-words",
    /// No action: what the other keys are decides.
    NoAction = "no-action",
    /// Text as a list of lines.
    ListOfLines = "list-of-lines",
    /// A code fence inside the text of a JSON answer.
    FencedContent = "fenced-content",
    /// Line numbers copied from a listing.
    LineNumbers = "line-numbers",
    /// `...` in a search stands for lines that stay.
    Elision = "elision",
    /// An absolute path beneath the root of the project.
    AbsolutePath = "absolute-path",
    /// The project's name before the path.
    ProjectName = "project-name",
    /// A path spelt otherwise than the one file that is there: case, Unicode form, back slashes, a bare file name.
    OtherSpelling = "other-spelling",
    /// `create` for a file that is there, `replace` for one that is not.
    CreateOrReplace = "create-or-replace",
    /// A file repeated as it is.
    Unchanged = "unchanged",
    /// Two edits for one place: the last one counts.
    LastCounts = "last-counts",
    /// Thoughts before the answer, with or without their end.
    Thoughts = "thoughts",
    /// Tokens of a chat template.
    TemplateTokens = "template-tokens",
    /// `DELETE:`, `NEED:`, `CONTRADICTION:`, `NOTES:` on lines of their own.
    Directive = "directive",
    /// A contradiction that says there is none.
    NoContradiction = "no-contradiction",
    /// A block that is not closed was left out.
    UnclosedBlock = "unclosed-block",
}
