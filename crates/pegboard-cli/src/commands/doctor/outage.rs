//! Says what kind of finding a failed start is, by the library's diagnosis of it.

use pegboard::{
    Config, ServerName,
    config::Transport,
    diagnosis::{Cause, Code, ConnectFault, Diagnosis, StderrClue, Step, TlsFault},
    status::LastError,
};

use super::{
    finding::Finding,
    kinds::{self, FindingKind},
    runners,
};
use crate::{
    commands::needed_variables::{self, LastWords},
    logging::Exchanged,
};

/// The most characters of a server's own words that are shown.
const MAX_WORDS: usize = 1500;

/// The fix of a list that fails.
pub(super) fn log_says_more(name: &str, transport: &Transport) -> String {
    match transport {
        Transport::Stdio(_) => {
            format!("the server's log says more: run its command by hand, or `pegboard logs {name}`")
        }
        Transport::Remote { .. } => "the server's own log says more".to_owned(),
    }
}

/// The findings of processes that exited by themselves, by what their last words point to. The first one counts.
static CLUES: [(StderrClue, &FindingKind); 3] = [
    (StderrClue::DockerNotRunning, &kinds::DOCKER_NOT_RUNNING),
    (StderrClue::PackageUnknown, &kinds::PACKAGE_UNKNOWN),
    (StderrClue::ModuleMissing, &kinds::MODULE_MISSING),
];

/// The finding for the outage of a server of this config.
pub(super) fn finding(name: &ServerName, config: &Config, error: &LastError, exchanged: &Exchanged) -> Finding {
    let Some(transport) = config.servers.get(name).map(|server| &server.transport) else {
        return Finding::new(&kinds::START_FAILED, error.message.clone());
    };
    let diagnosis = error.diagnosis.as_deref();
    let stderr = error.stderr.as_deref().unwrap_or_default();
    let kind = clue(diagnosis, transport, stderr).unwrap_or_else(|| kind(diagnosis, transport));
    let finding = match &exchanged.other_json {
        Some(json) if kind.id == kinds::SILENT.id => {
            let found = format!("{}; it writes JSON that is no MCP message: {json}", error.message);
            Finding::new(&kinds::OTHER_JSON, found).fix(kinds::OTHER_JSON.remedy)
        }
        _ => {
            let words = LastWords::here(error).filter(|_| kind.id == kinds::EXITS_AT_START.id);
            let needed = words
                .as_ref()
                .and_then(|words| needed_variables::advice(config, name, words));
            let fix = needed.unwrap_or_else(|| fix(name.as_str(), kind, transport, error));
            let secrets = words.map(|words| needed_variables::missing_secrets(config, name, &words));
            Finding::new(kind, describe_outage(kind, diagnosis, &error.message))
                .fix(fix)
                .asks_for(secrets.unwrap_or_default())
        }
    };
    match diagnosis {
        Some(diagnosis) => finding.with_diagnosis(diagnosis.clone()),
        None => finding,
    }
}

/// The finding that the last words of a process point to. They count only if it failed by itself before the handshake, and its program uses them so.
fn clue(diagnosis: Option<&Diagnosis>, transport: &Transport, stderr: &str) -> Option<&'static FindingKind> {
    let (diagnosis, Transport::Stdio(command)) = (diagnosis?, transport) else {
        return None;
    };
    let has_failed = matches!(diagnosis.cause, Cause::Exit { code: Some(code), .. } if code != 0);
    if diagnosis.code != Code::ExitsAtStart || diagnosis.step != Step::Spawn || !has_failed {
        return None;
    }
    let programs = runners::names(command);
    let is_it = |clue: &StderrClue| clue.is_about(&programs) && clue.is_in(stderr);
    CLUES.iter().find(|(clue, _)| is_it(clue)).map(|(_, kind)| *kind)
}

/// The kind of finding that a diagnosis is.
fn kind(diagnosis: Option<&Diagnosis>, transport: &Transport) -> &'static FindingKind {
    let other = match transport {
        Transport::Stdio(_) => &kinds::START_FAILED,
        Transport::Remote { .. } => &kinds::CONNECTION_FAILED,
    };
    let Some(diagnosis) = diagnosis else { return other };
    match diagnosis.code {
        Code::Exited => &kinds::EXITS_AT_START,
        Code::CredentialsMissing => &kinds::CREDENTIALS_REFUSED,
        code => match kinds::find(code) {
            Some(kind) => kind,
            None if diagnosis.step == Step::List => &kinds::LIST_FAILED,
            None => other,
        },
    }
}

fn describe_outage(kind: &FindingKind, diagnosis: Option<&Diagnosis>, message: &str) -> String {
    let message = shorten(message);
    let is_of_list = diagnosis.is_some_and(|diagnosis| diagnosis.step == Step::List);
    match kind.id == kinds::LIST_FAILED.id || kind.id == kinds::ANSWER_TOO_LARGE.id && is_of_list {
        true => format!("the tools could not be listed: {message}"),
        false => message,
    }
}

fn shorten(message: &str) -> String {
    match message.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// What to do: the first of these that there is.
fn fix(name: &str, kind: &FindingKind, transport: &Transport, error: &LastError) -> String {
    let is_unusable = matches!(error.diagnosis.as_deref(), Some(found) if found.cause == Cause::Response);
    let log = || (kind.id == kinds::LIST_FAILED.id && !is_unusable).then(|| log_says_more(name, transport));
    sign_in(name, kind)
        .or_else(log)
        .or_else(|| tls_fix(kind, error.diagnosis.as_deref()).map(str::to_owned))
        .or_else(|| better_than_hint(kind).map(str::to_owned))
        .or_else(|| error.hint.clone())
        .unwrap_or_else(|| kind.remedy.to_owned())
}

fn sign_in(name: &str, kind: &FindingKind) -> Option<String> {
    let is_of_sign_in = [kinds::SIGN_IN_NEEDED.id, kinds::SIGN_IN_EXPIRED.id].contains(&kind.id);
    is_of_sign_in.then(|| format!("pegboard login {name}"))
}

/// What mends a failed TLS handshake whose cause is known.
fn tls_fix(kind: &FindingKind, diagnosis: Option<&Diagnosis>) -> Option<&'static str> {
    let Cause::Connect { fault } = &diagnosis.filter(|_| kind.id == kinds::TLS_FAILED.id)?.cause else {
        return None;
    };
    Some(match fault {
        ConnectFault::Tls(TlsFault::ClientCertificate) => {
            "name the client certificate that the server accepts, and its key, in `tls.cert` and `tls.key`"
        }
        ConnectFault::Tls(TlsFault::NotTls) => {
            "write `http://` in `url` if the server does not speak TLS at this port, or the port where it does"
        }
        ConnectFault::TlsClosed => {
            "see in the server's log why it closed the connection, and whether it speaks TLS at this port"
        }
        _ => "compare what the message names with the certificate and the TLS settings of the server",
    })
}

/// The fix for a kind where the library's hint is not the best.
fn better_than_hint(kind: &FindingKind) -> Option<&'static str> {
    Some(match kind.id {
        "module-missing" => {
            "install the missing module where the program looks for it, or run the server with `uvx` or `npx`"
        }
        "package-unknown" => "correct the name or version of the package in `args`",
        "docker-not-running" => "start Docker, then try again: docker info",
        "waits-for-input" => {
            "run its command once by hand and answer what it asks; if it prints an address, configure that as `url`"
        }
        "stdout-flood" => kinds::STDOUT_FLOOD.remedy,
        "certificate-unknown" => {
            "tls = { ca = \"/path/to/authority.pem\" }, with the authority of the server, or of the proxy that intercepts TLS"
        }
        "certificate-expired" => {
            "renew the certificate at the server; compare `date` with the real time if it should be valid"
        }
        "certificate-not-yet-valid" => "set the clock of this machine: sudo timedatectl set-ntp true",
        "certificate-wrong-host" => "write the host name of the certificate in `url`",
        "connection-failed" => {
            "see whether the server's log says why it ends the connection, and whether `url` names its port and not another program's"
        }
        "list-endless" => "mend the paging of the server: each page needs another `nextCursor`, and the last one none",
        "answer-too-large" => "raise `max_message` of the server, or let the server answer with less",
        _ => return None,
    })
}
