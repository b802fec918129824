//! What `init` would find and no backend leads to.

use super::{Case, Finding};
use supervisor_models::discover;
use supervisor_models::discover::{FoundServer, LookPlaces};
use supervisor_text::words;

/// Model servers on the usual ports that the settings do not know. Nothing is said if there are none.
pub(super) async fn found(case: &Case) -> Vec<Finding> {
    let Ok(settings) = &case.settings else {
        return vec![];
    };
    let routing = &settings.routing;
    let known = routing
        .backends
        .values()
        .filter_map(|backend| backend.base_url.as_deref());
    let known: Vec<String> = known
        .chain(routing.warm.as_ref().map(|warm| warm.url.as_str()))
        .map(port)
        .collect();
    let servers = discover::look(&LookPlaces::usual(&case.look.env), &case.look.env).await;
    servers
        .iter()
        .filter(|server| !known.contains(&port(&server.address)))
        .map(finding)
        .collect()
}

fn finding(server: &FoundServer) -> Finding {
    let at = format!("{} at {}", server.kind, server.address);
    let hint = "`supervisor init` writes settings for it";
    match &server.models {
        Ok(models) if models.is_empty() => Finding::ok(format!("{at} offers no model")),
        Ok(models) => {
            let offers = words::count(models.len(), "model");
            Finding::warn(
                format!("{at} offers {offers}, and no backend leads there"),
                hint,
            )
        }
        Err(why) => Finding::warn(format!("{at}: {why}"), hint),
    }
}

/// The same server under another name of this machine is the same server.
fn port(address: &str) -> String {
    let address = address.trim_end_matches('/').trim_end_matches("/v1");
    address
        .replace("//127.0.0.1", "//localhost")
        .replace("//[::1]", "//localhost")
}
