//! What can be asked? One file per skill or family of skills: parameters, phases and `#[tool]` methods.
//! Adding a skill is a file, its `mod` and its line in [`SKILLS`]; a test compares folder and table.

mod answers;
mod app;
pub mod brain;
mod call;
mod common;
pub mod debug;
mod parameters;
mod progress;
pub mod reply;
pub mod retrospective;
pub mod review;
pub mod schema;
pub mod session_log;
pub mod spec;
pub mod supervise;
pub mod tdd;
pub mod team_msg;
pub mod tier;
mod tools;
pub mod trainer;

use rmcp::handler::server::tool::ToolRouter;

pub use app::App;
pub use call::Call;
pub use common::{BrainRecollection, notes_folder};
pub use parameters::Parameters;
pub use progress::{JobStory, MAX_PROGRESS, NotificationSender, Progress};
pub use reply::Reply;
pub use tools::Tools;

/// One skill: the name of its file, and the router its `#[tool_router]` made.
type SkillRouter = (&'static str, fn() -> ToolRouter<Tools>);

// Tools appear in the list when they work, not before.
const SKILLS: &[SkillRouter] = &[
    ("brain", Tools::brain_tools),
    ("debug", Tools::debug_tool),
    ("retrospective", Tools::retrospective_tool),
    ("review", Tools::review_tool),
    ("session_log", Tools::session_log_tool),
    ("spec", Tools::spec_tool),
    ("supervise", Tools::supervise_tool),
    ("tdd", Tools::tdd_tools),
    ("team_msg", Tools::team_msg_tool),
    ("tier", Tools::tier_tool),
    ("trainer", Tools::trainer_tool),
];

/// All tools in one router.
pub fn router() -> ToolRouter<Tools> {
    SKILLS
        .iter()
        .fold(ToolRouter::new(), |mut all, (_, tools)| {
            all.merge(tools());
            all
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_settings::Routing;

    #[test]
    fn a_skill_can_be_called_exactly_if_a_tool_has_it() {
        let tools: Vec<String> = router()
            .list_all()
            .iter()
            .map(|tool| tool.name.to_string())
            .collect();
        for skill in Routing::known_skills() {
            let has_a_tool = tools
                .iter()
                .any(|tool| tool == skill || tool.starts_with(&format!("{skill}_")));
            let is_callable = Routing::callable_skills().any(|callable| callable == skill);
            assert_eq!(is_callable, has_a_tool, "{skill}");
        }
    }

    #[test]
    fn the_folder_and_the_table_name_the_same_skills() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .map(|entries| {
                entries
                    .flatten()
                    .map(|entry| entry.path())
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default()
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "rs"))
            .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
            .filter(|name| name != "common")
            .collect();
        files.sort();
        let mut table: Vec<_> = SKILLS.iter().map(|(name, _)| (*name).to_owned()).collect();
        table.sort();
        assert_eq!(files, table);
    }
}
