//! One integration binary. Each file is about one promise; `map` keeps the house in order.
#![allow(clippy::unwrap_used, reason = "a test that unwraps says where it failed")]

mod chain;
mod claude_cli;
mod doctor;
mod ecosystems;
mod explain;
mod fake_claude;
mod installed;
mod loaded;
mod loopback;
mod machine;
mod map;
mod mcp_bench;
mod mcp_calls;
mod mcp_end;
mod mcp_envelope;
mod mcp_eras;
mod mcp_load;
mod mcp_tools;
mod openai;
mod probes;
mod process;
mod routing_bench;
mod routing_chain;
mod routing_env;
mod routing_messages;
mod session;
mod settings;
mod tier;
mod tiers;
mod upstream;
mod verify;
mod workspace;
