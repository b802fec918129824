//! Whether Claude Code knows this server, and in which version.

use super::{DoctorContext, Finding, Fix};
use crate::commands::claude_code::{ClaudeCode, Registration};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use supervisor_process::which;

pub(super) async fn client(context: &DoctorContext) -> Vec<Finding> {
    let found = ClaudeCode::read(&context.probe_config.env);
    let project = context.project.canonicalize();
    let registered = project
        .ok()
        .and_then(|project| found.registered_in(&project));
    if !found.is_used {
        return vec![Finding::ok("Claude Code has not been used here")];
    }
    if registered.is_none() && found.plugin.is_none() {
        let finding = Finding::warn(
            "Claude Code does not know this server",
            "`supervisor init --register` adds it, or install the plugin from a clone",
        );
        return vec![finding.fixed_by(Fix::Register)];
    }
    let mut findings = Vec::new();
    for one in &found.registrations {
        let place = match &one.project {
            Some(project) => format!("in {}", project.display()),
            None => String::from("in all projects"),
        };
        let program = one.program.display();
        let path = context.probe_config.env.vars().get(OsStr::new("PATH"));
        let is_there = match one.program.is_absolute() {
            true => one.program.exists(),
            false => {
                let path = path.map(OsString::as_os_str);
                which(one.program.as_os_str(), path, None).is_ok()
            }
        };
        findings.push(match is_there {
            true => Finding::ok(format!("Claude Code starts {program} {place}")),
            false => Finding::warn(
                format!("Claude Code starts {program} {place}, and that program is missing"),
                "`claude mcp remove supervisor`, then `supervisor init --register`",
            )
            .fixed_by(one.removal()),
        });
    }
    if let Some(plugin) = &found.plugin {
        let ours = env!("CARGO_PKG_VERSION");
        let named = format!("plugin {} {}", plugin.id, plugin.version);
        findings.push(if let Some(registered) = registered {
            Finding::warn(
                format!("{named}, and the server is registered too, so every tool is listed twice"),
                "`claude mcp remove supervisor` keeps the plugin",
            )
            .fixed_by(registered.removal())
        } else if plugin.version == ours || plugin.version.is_empty() {
            Finding::ok(named)
        } else {
            let differs = Finding::warn(
                format!("{named}, and this program is {ours}"),
                format!(
                    "update the older one: `claude plugin update {}`, or `cargo install --path . --locked` in a clone",
                    plugin.id
                ),
            );
            match numbers(&plugin.version) < numbers(ours) {
                true => differs.fixed_by(Fix::claude(&["plugin", "update", &plugin.id], "/")),
                false => differs,
            }
        });
    }
    findings
}

impl Registration {
    fn removal(&self) -> Fix {
        let (scope, dir) = match &self.project {
            Some(project) => ("local", project.clone()),
            None => ("user", PathBuf::from("/")),
        };
        Fix::claude(&["mcp", "remove", "--scope", scope, "supervisor"], dir)
    }
}

/// `0.10.2` as numbers that can be compared.
fn numbers(version: &str) -> Vec<u64> {
    version
        .split(['.', '-', '+'])
        .map_while(|part| part.parse().ok())
        .collect()
}
