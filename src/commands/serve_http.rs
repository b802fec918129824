//! `supervisor serve --http`: the same server over streamable HTTP, for CI and runners that have a checkout. Ends like
//! `serve` with 128 + n after signal n, and with 1 if it may not listen as told.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::observers::Observers;
use super::signals::Signals;
use crate::built_in::{self, PLUGIN_SKILLS};
use supervisor_http::{DEFAULT_PORT, HttpConfig, PATH};
use supervisor_mcp::Server;

/// The port on loopback, where no address is given.
const PORT_VAR: &str = "SUPERVISOR_PORT";

pub(super) fn serve_http(
    config: Option<PathBuf>,
    address: &str,
    err: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let address = match parse(address, std::env::var(PORT_VAR).ok().as_deref()) {
        Ok(address) => address,
        Err(message) => {
            writeln!(err, "error: {message}; nothing was started")?;
            return Ok(ExitCode::from(2));
        }
    };
    let app = built_in::app(config.clone());
    let settings = app.settings()?.routing.http;
    let runtime = super::runtime::build_runtime()?;
    let observers = Observers::start(&app, &runtime)?;
    let code = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}; nothing was started"))?;
        let address = listener.local_addr()?;
        let http = match HttpConfig::new(&settings, address) {
            Ok(http) => http,
            Err(error) => {
                writeln!(err, "error: {error}")?;
                return anyhow::Ok(ExitCode::from(1));
            }
        };
        let access = match (http.needs_token(), address.ip().is_loopback()) {
            (true, true) => "with a token",
            (true, false) => {
                "with a token; this port speaks no TLS, so that only the proxy in front may reach it"
            }
            (false, _) => "for every user and program of this machine",
        };
        writeln!(err, "listening on http://{address}{PATH} {access}")?;
        let observed = observers.clone();
        let make = move |caller: &str| {
            let app = observed.attach(built_in::app(config.clone()));
            Server::new(match caller {
                "" => app,
                caller => app.for_caller(caller.to_owned()),
            })
            .with_plugin_skills(PLUGIN_SKILLS)
        };
        let stop = CancellationToken::new();
        let serving = supervisor_http::serve(listener, http, Box::new(make), stop.clone());
        tokio::pin!(serving);
        let number = tokio::select! {
            ended = &mut serving => {
                ended?;
                return Ok(ExitCode::SUCCESS);
            }
            number = signals.next() => number,
        };
        stop.cancel();
        tokio::select! {
            _ended = serving => {}
            _impatient = signals.second_interrupt() => {}
        }
        Ok(ExitCode::from(128 + number))
    });
    observers.finish(&runtime);
    runtime.shutdown_background();
    code
}

/// `""`, `3200`, `:3200`, `127.0.0.1:3200` or `[::1]:3200`.
fn parse(address: &str, port: Option<&str>) -> Result<SocketAddr, String> {
    let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if address.is_empty() {
        let port = match port.filter(|port| !port.is_empty()) {
            None => DEFAULT_PORT,
            Some(port) => port
                .parse()
                .map_err(|_| format!("${PORT_VAR} is not a port from 0 to 65535"))?,
        };
        return Ok(loopback(port));
    }
    let bare = address.strip_prefix(':').unwrap_or(address);
    bare.parse()
        .map(loopback)
        .or_else(|_| address.parse())
        .map_err(|_| format!("`{address}` is not an address such as 127.0.0.1:3200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_loopback_unless_it_says_otherwise() {
        for (address, port, listens) in [
            ("", None, Some("127.0.0.1:3200")),
            ("", Some(""), Some("127.0.0.1:3200")),
            ("", Some("4000"), Some("127.0.0.1:4000")),
            ("", Some("70000"), None),
            ("5000", Some("4000"), Some("127.0.0.1:5000")),
            (":5000", None, Some("127.0.0.1:5000")),
            ("0.0.0.0:80", None, Some("0.0.0.0:80")),
            ("[::1]:80", None, Some("[::1]:80")),
            ("example.com:80", None, None),
        ] {
            let parsed = parse(address, port).ok().map(|a| a.to_string());
            assert_eq!(parsed.as_deref(), listens, "{address} {port:?}");
        }
    }
}
