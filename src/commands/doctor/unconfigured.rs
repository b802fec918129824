//! Model servers that `init` would find and the settings do not use.

use super::{DoctorContext, Finding, Fix};
use supervisor_models::discover;
use supervisor_models::discover::{DiscoveredServer, SearchAddresses};
use supervisor_text::words;

/// Reports model servers on the usual ports that the settings do not mention. Returns nothing if
/// there are none.
pub(super) async fn unconfigured_servers(context: &DoctorContext) -> Vec<Finding> {
    let Ok(settings) = &context.settings else {
        return vec![];
    };
    let routing = &settings.routing;
    let known = routing
        .backends
        .values()
        .filter_map(|backend| backend.base_url.as_deref());
    let known: Vec<String> = known
        .chain(routing.warm.as_ref().map(|warm| warm.url.as_str()))
        .map(normalize_address)
        .collect();
    let servers = discover::find_servers(
        &SearchAddresses::defaults(&context.probe_config.env),
        &context.probe_config.env,
    )
    .await;
    servers
        .iter()
        .filter(|server| !known.contains(&normalize_address(&server.address)))
        .map(finding)
        .collect()
}

fn finding(server: &DiscoveredServer) -> Finding {
    let at = format!("{} at {}", server.kind, server.address);
    let hint = "`supervisor init` writes settings for it";
    match &server.models {
        Ok(models) if models.is_empty() => Finding::ok(format!("{at} offers no model")),
        Ok(models) => {
            let offers = words::count(models.len(), "model");
            Finding::warn(
                format!("{at} offers {offers} that the settings do not use"),
                hint,
            )
            .fixed_by(Fix::Init)
        }
        Err(why) => Finding::warn(format!("{at}: {why}"), hint),
    }
}

/// Makes the different names of this machine compare equal.
fn normalize_address(address: &str) -> String {
    let address = address.trim_end_matches('/').trim_end_matches("/v1");
    address
        .replace("//127.0.0.1", "//localhost")
        .replace("//[::1]", "//localhost")
}
