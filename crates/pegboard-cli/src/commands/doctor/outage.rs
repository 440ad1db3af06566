//! Says what kind of finding a failed start is, by the library's words for it.

use pegboard::{State, config::Transport, status::LastError};

use super::{
    finding::Finding,
    kinds::{self, Kind},
};
use crate::{commands::needed_variables, logging::Exchanged};

/// The most characters of a server's own words that are shown.
const MAX_WORDS: usize = 1500;

/// The library's words for a server that was stopped because of the text that it printed, and what it puts before the end of stderr.
const FLOOD: &str = "lines of text and no message";
const LAST_WORDS: &str = "; its last words were:";

/// The finding for the outage of a server.
pub(super) fn finding(
    name: &str,
    transport: &Transport,
    state: State,
    error: &LastError,
    exchanged: &Exchanged,
) -> Finding {
    let message = error.message.as_str();
    let kind = match transport {
        Transport::Stdio(_) => of_process(message, error.stderr.as_deref().unwrap_or_default()),
        _ => of_network(message, state, error.hint.as_deref().unwrap_or_default()),
    };
    if kind.id == kinds::SILENT.id
        && let Some(json) = &exchanged.other_json
    {
        return Finding::new(
            &kinds::OTHER_JSON,
            format!("{message}; it writes JSON that is no MCP message: {json}"),
        )
        .fix(kinds::OTHER_JSON.remedy);
    }
    // The library has the same words for all requests.
    let is_of_list = exchanged.last_request.as_deref() == Some("tools/list");
    let is_of_request = [&kinds::HANDSHAKE_REFUSED, &kinds::SILENT, &kinds::CONNECT_TIMEOUT]
        .iter()
        .any(|of_request| of_request.id == kind.id);
    if is_of_list && is_of_request {
        return Finding::new(
            &kinds::LIST_FAILED,
            format!("the tools could not be listed: {}", shortened(message)),
        )
        .fix(LOG_SAYS_MORE);
    }
    if kind.id == kinds::STDOUT_FLOOD.id {
        // What it wrote to stderr does not say why.
        let (found, _) = message.split_once(LAST_WORDS).unwrap_or((message, ""));
        return Finding::new(kind, shortened(found)).fix(kind.remedy);
    }
    let fix = fix(kind).map(str::to_owned).or_else(|| error.hint.clone());
    let needed = match transport {
        Transport::Stdio(command) if kind.id == kinds::EXITS_AT_START.id => {
            needed_variables::advice(command, error.stderr.as_deref().unwrap_or_default())
        }
        _ => None,
    };
    let fix = match kind.id {
        _ if needed.is_some() => needed,
        "sign-in-needed" | "sign-in-expired" => Some(format!("pegboard login {name}")),
        _ => fix,
    };
    Finding::new(kind, shortened(message)).fix(fix.unwrap_or_else(|| kind.remedy.to_owned()))
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// The fix of a list that fails.
pub(super) const LOG_SAYS_MORE: &str = "the server's log says more: run its command by hand, or `pegboard logs SERVER`";

/// What a process that does not start says.
fn of_process(message: &str, stderr: &str) -> &'static Kind {
    let said = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if let Some(kind) = of_protocol(message) {
        return kind;
    }
    if message.contains("process ended") {
        return if said(&[
            "Cannot connect to the Docker daemon",
            "docker daemon is not running",
            "Is the docker daemon running",
        ]) {
            &kinds::DOCKER_NOT_RUNNING
        } else if said(&[
            "code E404",
            "404 Not Found - GET",
            "No solution found",
            "was not found in the package registry",
            "ETARGET",
            "No matching distribution",
            "manifest unknown",
            "pull access denied",
        ]) {
            &kinds::PACKAGE_UNKNOWN
        } else if said(&[
            "ModuleNotFoundError",
            "No module named",
            "Cannot find module",
            "ERR_MODULE_NOT_FOUND",
            "Cannot find package",
        ]) {
            &kinds::MODULE_MISSING
        } else {
            &kinds::EXITS_AT_START
        };
    }
    if message.contains(FLOOD) {
        &kinds::STDOUT_FLOOD
    } else if message.contains("all it wrote was") {
        &kinds::WAITS_FOR_INPUT
    } else if message.starts_with("no answer within") {
        &kinds::SILENT
    } else if message.contains("closed its output") {
        &kinds::EXITS_AT_START
    } else {
        &kinds::START_FAILED
    }
}

/// What goes wrong after the server was reached.
fn of_protocol(message: &str) -> Option<&'static Kind> {
    let says = |words: &str| message.contains(words);
    if says("same cursor twice") || says("gave a cursor of") {
        Some(&kinds::LIST_ENDLESS)
    } else if says("tools/list") {
        Some(&kinds::LIST_FAILED)
    } else if says("protocol version") || says("speaks version") {
        Some(&kinds::PROTOCOL_UNSUPPORTED)
    } else if says("initialize") || says("answered with error") {
        Some(&kinds::HANDSHAKE_REFUSED)
    } else {
        None
    }
}

/// The library's words for a sign-in that was there and is over.
const ENDED_SIGN_IN: &[&str] = &[
    "the token has expired",
    "no longer accepts the token",
    "has ended the session",
    "an earlier renewal of the token was interrupted",
    "refuses tokens that were just issued",
    "does not know this program any more",
];

fn of_network(message: &str, state: State, hint: &str) -> &'static Kind {
    let says = |words: &str| message.contains(words);
    if state == State::NeedsAuth {
        return if says("HTTP 403") {
            &kinds::FORBIDDEN
        } else if ENDED_SIGN_IN.iter().any(|words| says(words)) {
            &kinds::SIGN_IN_EXPIRED
        } else if hint.contains("pegboard login") || hint.contains("give the server's credentials") {
            &kinds::SIGN_IN_NEEDED
        } else {
            &kinds::CREDENTIALS_REFUSED
        };
    }
    let lower = message.to_lowercase();
    if lower.contains("unknownissuer") || lower.contains("caused by: unknown issuer") || lower.contains("self-signed") {
        &kinds::CERTIFICATE_UNKNOWN
    } else if lower.contains("certificate expired")
        || lower.contains("expired: verification time")
        || lower.contains("certificate: expired")
    {
        &kinds::CERTIFICATE_EXPIRED
    } else if lower.contains("notvalidyet") || lower.contains("not valid yet") {
        &kinds::CERTIFICATE_NOT_YET_VALID
    } else if lower.contains("notvalidforname")
        || lower.contains("not valid for name")
        || lower.contains("certificate not valid for")
    {
        &kinds::CERTIFICATE_WRONG_HOST
    } else if lower.contains("certificate") || lower.contains("tls") || lower.contains("corrupt message") {
        &kinds::TLS_FAILED
    } else if lower.contains("lookup") || lower.contains("dns") {
        &kinds::HOST_UNKNOWN
    } else if lower.contains("connection refused") {
        &kinds::CONNECTION_REFUSED
    } else if says("HTTP 404") || says("HTTP 405") {
        &kinds::PATH_NOT_FOUND
    } else if lower.contains("redirect") || says("points elsewhere") {
        &kinds::REDIRECTED
    } else if says("HTTP 429") {
        &kinds::RATE_LIMITED
    } else if says("HTTP 5") {
        &kinds::SERVER_ERROR
    } else if let Some(kind) = of_protocol(message) {
        kind
    } else if hint.contains("not as an MCP server") || says("HTTP 4") || says("HTTP 2") {
        &kinds::NOT_MCP
    } else if lower.contains("timed out") || says("no answer within") || hint.contains("does not answer") {
        &kinds::CONNECT_TIMEOUT
    } else {
        &kinds::CONNECTION_FAILED
    }
}

/// The fix for a kind where the library's hint is not the best.
fn fix(kind: &Kind) -> Option<&'static str> {
    Some(match kind.id {
        "module-missing" => {
            "install the missing module where the program looks for it, or run the server with `uvx` or `npx`"
        }
        "package-unknown" => "correct the name or version of the package in `args`",
        "docker-not-running" => "start Docker, then try again: docker info",
        "waits-for-input" => {
            "run its command once by hand and answer what it asks; if it prints an address, configure that as `url`"
        }
        "certificate-unknown" => {
            "tls = { ca = \"/path/to/authority.pem\" }, with the authority of the server, or of the proxy that intercepts TLS"
        }
        "certificate-expired" => {
            "renew the certificate at the server; compare `date` with the real time if it should be valid"
        }
        "certificate-not-yet-valid" => "set the clock of this machine: sudo timedatectl set-ntp true",
        "certificate-wrong-host" => "write the host name of the certificate in `url`",
        "tls-failed" => {
            "write `http://` in `url` if the server does not speak TLS at this port, and `https://` otherwise"
        }
        "connection-failed" => {
            "see whether the server's log says why it ends the connection, and whether `url` names its port and not another program's"
        }
        "list-endless" => "mend the paging of the server: each page needs another `nextCursor`, and the last one none",
        _ => return None,
    })
}
