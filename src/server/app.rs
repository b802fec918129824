//! What calls need from around them: the settings as they are now, and a recent look at the outside world.
//! Nothing is read or asked before a call wants it, so that listing tools stays instant.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::backend::Env;
use crate::backend::world::{Look, World};
use crate::process::Launcher;
use crate::redact::Redactor;
use crate::routing::{self, Loaded, Routing, RoutingError, Sources};

/// How long a look at the world stays good.
const FRESH: Duration = Duration::from_secs(10);

/// What calls need, made once at start.
#[derive(Debug)]
pub struct App {
    sources: Sources,
    look: Look,
    seen: Mutex<Option<Seen>>,
}

/// A look at the world, and the settings that said where to look.
#[derive(Debug)]
struct Seen {
    at: Instant,
    routing: Routing,
    world: Arc<World>,
}

impl Default for App {
    fn default() -> Self {
        Self::of_process(None)
    }
}

impl App {
    /// This process: its variables, and the file named by the user or the one in the config directory.
    pub fn of_process(config: Option<PathBuf>) -> Self {
        Self::new(Sources::of_process(config), Look::new(Env::of_this_program(), Launcher::this_program()))
    }

    pub fn new(sources: Sources, look: Look) -> Self {
        Self { sources, look, seen: Mutex::default() }
    }

    /// The settings, read anew for each call: an edited file needs no restart.
    pub fn settings(&self) -> Result<Loaded, RoutingError> {
        routing::load(&self.sources)
    }

    /// Takes the keys that the settings name out of whatever is shown.
    pub fn redactor(&self, routing: &Routing) -> Redactor {
        self.look.env.redactor(routing.backends.values().filter_map(|backend| backend.api_key_env.as_deref()))
    }

    /// The world as seen in the last ten seconds, or now. Calls that come together share one look.
    /// Second: how old it is.
    pub async fn world(&self, routing: &Routing, refresh: bool, stop: &CancellationToken) -> (Arc<World>, Duration) {
        let asked = Instant::now();
        let mut seen = self.seen.lock().await;
        if let Some(seen) = seen.as_ref().filter(|seen| seen.routing == *routing) {
            // One that was begun while we waited is as good as our own, also for a refresh.
            if seen.at >= asked || (!refresh && seen.at.elapsed() < FRESH) {
                return (Arc::clone(&seen.world), seen.at.elapsed());
            }
        }
        let at = Instant::now();
        let world = Arc::new(World::look(routing, &self.look, stop).await);
        if !stop.is_cancelled() {
            *seen = Some(Seen { at, routing: routing.clone(), world: Arc::clone(&world) });
        }
        (world, Duration::ZERO)
    }
}
