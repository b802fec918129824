//! Calls walked with scripted models, and the session log.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]
#![allow(clippy::disallowed_methods, reason = "tests start programs themselves")]

mod agent;
mod chain;
mod concurrent_user;
mod record;
mod rounds;
mod samples;
mod session;

supervisor_test_support::before_tests!(act_in_role);

/// Some tests start this program again in a role. Shims inherit its variables, and have arguments.
fn act_in_role() {
    if std::env::args_os().len() > 1 {
        return;
    }
    agent::act_as_server();
    concurrent_user::act_as_server();
    samples::act_as_server();
    session::roles::act_in_role();
}
