//! The arguments shared by all tools that ask models.

/// Defines a parameter struct with the common fields written out, because serde cannot combine
/// `flatten` with `deny_unknown_fields`.
macro_rules! params {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Absolute path of the project
            pub project_root: String,
            $($(#[$doc])* pub $field: $type,)*
            // The server's instructions describe these once for all tools.
            /// Ask only this model
            #[schemars(extend("said_elsewhere" = true))]
            pub model: Option<String>,
            /// Log to add to
            #[schemars(extend("said_elsewhere" = true))]
            pub session_id: Option<String>,
            /// More about the task
            #[schemars(extend("said_elsewhere" = true))]
            pub context: Option<String>,
            /// Seconds for each model
            #[schemars(extend("said_elsewhere" = true))]
            pub timeout_s: Option<u64>,
            /// Most answers asked for
            #[schemars(extend("said_elsewhere" = true))]
            pub max_attempts: Option<u32>,
            /// Most to spend
            #[schemars(extend("said_elsewhere" = true))]
            pub budget_usd: Option<f64>,
            /// Show the plan, ask no model
            #[schemars(extend("said_elsewhere" = true))]
            #[serde(default)]
            pub dry_run: bool,
            /// With dry_run: the prompt too
            #[serde(default)]
            pub show_prompt: bool,
        }

        impl $name {
            pub(super) fn common(&self) -> supervisor_engine::call::CallArguments {
                supervisor_engine::call::CallArguments {
                    project_root: self.project_root.clone(),
                    model: $crate::common::filled(self.model.as_deref()),
                    session_id: $crate::common::filled(self.session_id.as_deref()),
                    context: $crate::common::filled(self.context.as_deref()),
                    timeout_s: self.timeout_s,
                    max_attempts: self.max_attempts,
                    budget_usd: self.budget_usd,
                    twins: None,
                    samples: None,
                    dry_run: self.dry_run,
                    show_prompt: self.show_prompt,
                    input: $crate::common::input(self),
                }
            }
        }
    };
}
pub(crate) use params;

/// The trimmed text, or `None` if it is empty: models write `""` for an omitted argument.
pub(crate) fn filled(text: Option<&str>) -> Option<String> {
    text.map(str::trim)
        .filter(|t| !t.is_empty())
        .map(str::to_owned)
}

/// The arguments for the log, without those that were left out.
pub(crate) fn input(params: &impl serde::Serialize) -> serde_json::Value {
    let mut input = serde_json::to_value(params).expect("parameters serialise to JSON");
    if let Some(fields) = input.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    input
}
