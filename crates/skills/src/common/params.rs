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
            /// Pins one model and skips the chain; leave it out
            pub model: Option<String>,
            /// Session log to add to
            pub session_id: Option<String>,
            /// More about the task, for the model
            pub context: Option<String>,
            /// Seconds for each model
            pub timeout_s: Option<u64>,
            /// How many models to try at most
            pub max_attempts: Option<u32>,
            /// Most to spend, in USD
            pub budget_usd: Option<f64>,
            /// Ask no model outside this machine
            #[serde(default)]
            pub stay_local: bool,
            /// Show the plan; ask no model
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
                    stay_local: self.stay_local,
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
