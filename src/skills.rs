//! What can be asked? One file per skill or family of skills: parameters, phases and `#[tool]` methods.
//! Adding a skill is a file, its `mod` and its line in [`SKILLS`]; a test compares folder and table.

pub mod brain;
mod common;
pub mod debug;
pub mod retrospective;
pub mod review;
pub mod session_log;
pub mod spec;
pub mod supervise;
pub mod tdd;
pub mod team_msg;
pub mod tier;
pub mod trainer;

use rmcp::handler::server::tool::ToolRouter;

pub(crate) use common::{BrainRecollection, notes_folder};

use crate::server::Server;

/// One skill: the name of its file, and the router its `#[tool_router]` made.
type SkillRouter = (&'static str, fn() -> ToolRouter<Server>);

// Tools appear in the list when they work, not before.
const SKILLS: &[SkillRouter] = &[
    ("brain", Server::brain_tools),
    ("debug", Server::debug_tool),
    ("retrospective", Server::retrospective_tool),
    ("review", Server::review_tool),
    ("session_log", Server::session_log_tool),
    ("spec", Server::spec_tool),
    ("supervise", Server::supervise_tool),
    ("tdd", Server::tdd_tools),
    ("team_msg", Server::team_msg_tool),
    ("tier", Server::tier_tool),
    ("trainer", Server::trainer_tool),
];

/// All tools in one router.
pub fn router() -> ToolRouter<Server> {
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
    use crate::routing::Routing;

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
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/skills");
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
