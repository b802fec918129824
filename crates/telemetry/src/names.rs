//! Names of spans, attributes and metrics: OpenTelemetry's semantic conventions for GenAI and MCP as of 2026-07, and our own
//! below `supervisor.`. Nothing here ever holds a prompt, an answer, code, a path or output of a command.

pub(crate) const SERVICE: &str = "supervisor";

/// What a request to an MCP server is called; the tool is the target.
pub(crate) const MCP_METHOD_NAME: &str = "mcp.method.name";
pub(crate) const TOOLS_CALL: &str = "tools/call";

pub(crate) const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const CHAT: &str = "chat";
pub(crate) const GEN_AI_TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const GEN_AI_CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(crate) const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const GEN_AI_TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const GEN_AI_USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const GEN_AI_USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const ERROR_TYPE: &str = "error.type";

pub(crate) const CALL: &str = "supervisor.call.id";
pub(crate) const CYCLE: &str = "supervisor.cycle.id";
pub(crate) const PHASE: &str = "supervisor.phase";
pub(crate) const STATUS: &str = "supervisor.status";
pub(crate) const TIER: &str = "supervisor.tier";
pub(crate) const ATTEMPT: &str = "supervisor.attempt";
pub(crate) const CAUSE: &str = "supervisor.cause";
pub(crate) const VERIFIED: &str = "supervisor.verified";
pub(crate) const COST_USD: &str = "supervisor.cost_usd";
pub(crate) const GATE: &str = "supervisor.gate";
pub(crate) const GATE_PASSED: &str = "supervisor.gate.passed";
pub(crate) const SANDBOX: &str = "supervisor.sandbox";

pub(crate) const SPAN_TEST_RUN: &str = "test run";
pub(crate) const SPAN_CHECK: &str = "check";

pub(crate) const METRIC_CALLS: &str = "supervisor.calls";
pub(crate) const METRIC_ATTEMPTS: &str = "supervisor.attempts";
pub(crate) const METRIC_COST: &str = "supervisor.cost";
pub(crate) const METRIC_CALL_SECONDS: &str = "supervisor.call.duration";
pub(crate) const METRIC_ATTEMPT_SECONDS: &str = "gen_ai.client.operation.duration";
pub(crate) const METRIC_TOKENS: &str = "gen_ai.client.token.usage";
