//! The form of a report: which sections, in which order, under which titles. A role spec gives it as
//! an example in a fenced Markdown block; without one the report has our own form.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

use super::verdict::CheckGroup;

/// Our own form.
const BUILT_IN: &str = "\
# Checkpoint Report: CHECKPOINT-NNN
## Scope
## Results
### Consistency
### Process Compliance
### Execution Health
## Verdict
## Override
## Evidence
## Recommendations
## Risks Logged
";

/// Words of the headings below which a role spec shows its report.
const REPORT_HEADINGS: &[&str] = &["phase 4", "report", "verdict"];

/// What a section contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionContent {
    Title,
    Scope,
    Results,
    Group(CheckGroup),
    Verdict,
    Override,
    Evidence,
    Recommendations,
    Risks,
    Unknown,
}

/// Words in a heading and what its section contains; the first that fits counts.
const CONTENTS: &[(&str, SectionContent)] = &[
    ("scope", SectionContent::Scope),
    ("tasks checked", SectionContent::Scope),
    (
        "consistency",
        SectionContent::Group(CheckGroup::Consistency),
    ),
    ("process", SectionContent::Group(CheckGroup::Process)),
    ("health", SectionContent::Group(CheckGroup::Health)),
    ("result", SectionContent::Results),
    ("findings", SectionContent::Results),
    ("checks", SectionContent::Results),
    ("verdict", SectionContent::Verdict),
    ("decision", SectionContent::Verdict),
    ("override", SectionContent::Override),
    ("evidence", SectionContent::Evidence),
    ("recommendation", SectionContent::Recommendations),
    ("next step", SectionContent::Recommendations),
    ("risk", SectionContent::Risks),
];

/// The sections of a report. Empty if the role spec gives none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportFormat {
    sections: Vec<ReportSection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportSection {
    pub(super) level: usize,
    pub(super) title: String,
}

impl ReportSection {
    pub(super) fn content(&self) -> SectionContent {
        let title = self.title.to_lowercase();
        if self.level == 1 {
            return SectionContent::Title;
        }
        let known = CONTENTS.iter().find(|(word, _)| title.contains(word));
        known.map_or(SectionContent::Unknown, |(_, content)| *content)
    }
}

impl ReportFormat {
    /// The form of the first Markdown block below a heading about reports.
    pub(super) fn of_role_spec(text: &str) -> Self {
        let mut open: Vec<(usize, String)> = Vec::new();
        let (mut heading, mut block): (Option<usize>, Option<String>) = (None, None);
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    let level = level as usize;
                    open.retain(|(above, _)| *above < level);
                    open.push((level, String::new()));
                    heading = Some(level);
                }
                Event::End(TagEnd::Heading(_)) => heading = None,
                Event::Text(part) | Event::Code(part) => {
                    if let (Some(_), Some((_, title))) = (heading, open.last_mut()) {
                        title.push_str(&part.to_lowercase());
                    }
                    if let Some(block) = &mut block {
                        block.push_str(&part);
                    }
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    let is_markdown = matches!(language.trim(), "markdown" | "md");
                    let is_report = |(_, title): &(usize, String)| {
                        REPORT_HEADINGS.iter().any(|word| title.contains(word))
                    };
                    if is_markdown && open.iter().any(is_report) {
                        block = Some(String::new());
                    }
                }
                Event::End(TagEnd::CodeBlock) => {
                    let format = Self::of_example(block.take().as_deref().unwrap_or_default());
                    if format != Self::default() {
                        return format;
                    }
                }
                _ => {}
            }
        }
        Self::default()
    }

    fn of_example(example: &str) -> Self {
        let heading = |line: &str| {
            let title = line.trim_start_matches('#');
            let level = line.len() - title.len();
            let is_heading = (1..=6).contains(&level) && title.starts_with(' ');
            is_heading.then(|| ReportSection {
                level,
                title: title.trim().to_owned(),
            })
        };
        Self {
            sections: example.lines().filter_map(heading).collect(),
        }
    }

    /// Titles of sections that stay empty.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        let is_unknown = |section: &&ReportSection| section.content() == SectionContent::Unknown;
        let unknown = self.sections.iter().filter(is_unknown);
        unknown.map(|section| section.title.as_str())
    }

    pub(super) fn is_built_in(&self) -> bool {
        self.sections.is_empty()
    }

    /// The sections to write. What a report must have is added at the end of a form that lacks it.
    pub(super) fn sections(&self) -> Vec<ReportSection> {
        let built_in = Self::of_example(BUILT_IN).sections;
        let mut sections = self.sections.clone();
        let has = |sections: &[ReportSection], wanted: SectionContent| {
            sections.iter().any(|section| section.content() == wanted)
        };
        for (n, section) in built_in.into_iter().enumerate() {
            let content = section.content();
            let is_needed = match content {
                SectionContent::Title
                | SectionContent::Verdict
                | SectionContent::Override
                | SectionContent::Evidence => true,
                SectionContent::Group(_) => !has(&self.sections, SectionContent::Results),
                _ => self.is_built_in(),
            };
            if is_needed && !has(&sections, content) {
                let at = if n == 0 { 0 } else { sections.len() };
                sections.insert(at, section);
            }
        }
        sections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_is_read_from_the_reports_example() {
        let text = "# Role\n\n```markdown\n# Not this\n```\n\n## Phase 4\n\n```json\n{}\n```\n\n### Write it\n\n\
                    ````markdown\n# Gate CHECKPOINT-NNN\n\n## Go or no go: {verdict}\n#tag\n## Staffing\n````\n";
        let format = ReportFormat::of_role_spec(text);
        let titles: Vec<String> = format.sections().into_iter().map(|s| s.title).collect();
        assert_eq!(
            titles,
            [
                "Gate CHECKPOINT-NNN",
                "Go or no go: {verdict}",
                "Staffing",
                "Consistency",
                "Process Compliance",
                "Execution Health",
                "Override",
                "Evidence"
            ]
        );
        assert_eq!(format.unknown().collect::<Vec<_>>(), ["Staffing"]);
        assert!(ReportFormat::of_role_spec("## Report\n\nas you like").is_built_in());
    }
}
