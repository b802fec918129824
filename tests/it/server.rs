//! How a call looks over MCP: sound requests and others, much at once, tasks, resources, the end.

mod calls;
mod end;
mod envelope;
mod eras;
mod load;
mod project_root;
mod resources;
mod tasks;
mod threads;
