//! Findings about this machine: proxies, the daemon and what earlier runs left behind.

use std::env;

use pegboard::ServerConfig;
use url::Url;

use super::{
    finding::{Finding, Remedy, ReportSection},
    kinds,
};
use crate::{cli::Global, daemon, settings::Settings};

const PROXIES: &[&str] = &[
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Adds what is found about proxies and daemons.
pub(super) async fn check(section: &mut ReportSection, global: &Global, settings: &Settings) {
    for name in PROXIES {
        let Some(value) = env::var(name).ok().filter(|value| !value.is_empty()) else {
            continue;
        };
        let url = match value.contains("://") {
            true => value,
            false => format!("http://{value}"),
        };
        if !Url::parse(&url).is_ok_and(|url| url.has_host()) {
            section.add_finding(
                Finding::new(&kinds::PROXY_INVALID, format!("{name} is no URL")).fix(format!("unset {name}")),
            );
        }
    }
    let found = daemon::leftovers().await;
    if let Some(problem) = found.folder_problem {
        let finding = Finding::new(&kinds::DAEMON_FOLDER, problem);
        section.add_finding(match found.folder {
            Some(path) => finding
                .fix(format!("chmod 700 {}", path.display()))
                .remedy(Remedy::Mode {
                    path,
                    add: 0o700,
                    remove: 0o077,
                }),
            None => finding,
        });
    }
    for path in found.stale {
        section.add_finding(
            Finding::new(
                &kinds::DAEMON_LEFTOVERS,
                format!("{} is the socket of a daemon that was killed", path.display()),
            )
            .fix(format!("rm {}", path.display()))
            .remedy(Remedy::Remove { path }),
        );
    }
    for (pid, version) in found.others {
        section.add_finding(
            Finding::new(
                &kinds::DAEMON_VERSION,
                format!(
                    "the daemon with process id {pid} is version {version}, and this program is {}",
                    env!("CARGO_PKG_VERSION")
                ),
            )
            .fix(format!("kill {pid}")),
        );
    }
    let unfinished = daemon::unfinished_without_daemon(global, settings);
    if let Some(first) = unfinished.first() {
        section.add_finding(Finding::new(&kinds::UNFINISHED_CALLS, first.to_string()).fix("pegboard status"));
    }
}

/// Whether a proxy takes the requests to a server of this machine.
pub(super) fn proxy_of_local(section: &mut ReportSection, server: &ServerConfig) {
    let Some(endpoint) = server.transport.endpoint() else {
        return;
    };
    let url = endpoint.url.expose();
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let is_local = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "::1";
    let variables: &[&str] = match url.scheme() {
        "https" | "wss" => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let is_set = |name: &&&str| env::var(name).is_ok_and(|value| !value.is_empty());
    let Some(proxy) = variables.iter().find(is_set).filter(|_| is_local) else {
        return;
    };
    let exempt = ["NO_PROXY", "no_proxy"]
        .map(|name| env::var(name).unwrap_or_default())
        .join(",");
    let is_exempt = exempt
        .split(',')
        .map(str::trim)
        .any(|entry| entry == "*" || entry == host || entry.starts_with("127."));
    if !is_exempt {
        section.add_finding(
            Finding::new(
                &kinds::PROXY_AND_LOCAL,
                format!("{proxy} is set, and NO_PROXY does not name {host}, so requests to it go to the proxy"),
            )
            .fix("export NO_PROXY=localhost,127.0.0.1,::1"),
        );
    }
}
