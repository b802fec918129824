//! The type that every `#[tool]` method is on.

use crate::App;

/// All tools, with what their calls share.
#[derive(Debug)]
pub struct Tools {
    app: App,
}

impl Tools {
    pub fn new(app: App) -> Self {
        Self { app }
    }

    pub fn app(&self) -> &App {
        &self.app
    }
}
