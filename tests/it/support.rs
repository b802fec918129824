//! What several tests share: sessions with the program, terminals, projects with recorded models.

pub(crate) mod debug_project;
pub(crate) mod machine;
pub(crate) mod mcp_session;
pub(crate) mod mcp_tools;
pub(crate) mod review_project;
pub(crate) mod role;
pub(crate) mod scenario;
pub(crate) mod tasks;
pub(crate) mod terminal;
pub(crate) mod user_shell;
