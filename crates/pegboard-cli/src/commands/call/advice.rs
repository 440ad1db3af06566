//! One ordered table of advice for a call that was refused: the first row that applies says what to do about it.

use pegboard::{
    Config, Failure, Kind, Outcome, Reply, State,
    config::Transport,
    diagnosis::{Code, Diagnosis},
    status::{LastError, ServerStatus},
};

use pegboard_hosts::executable::{is_executable, resolve};

use super::{options::size_text, tool_prefix::is_of};
use crate::{
    commands::needed_variables::{self, LastWords},
    settings::Settings,
};

/// What is known about a refused call.
pub(super) struct Situation<'a> {
    pub(super) settings: &'a Settings,
    pub(super) config: &'a Config,
    pub(super) servers: &'a [ServerStatus],
    /// Whether the time of the command is up.
    pub(super) is_late: bool,
    /// Whether the servers run in the daemon, which has an environment of its own.
    pub(super) is_in_daemon: bool,
    /// The last words of the process of the call's server, if it exited by itself.
    pub(super) last_words: Option<LastWords>,
}

/// What replaces the kind, the message and the hint of a refusal.
struct Advice {
    kind: Option<Kind>,
    message: Option<String>,
    hint: Option<String>,
}

impl Advice {
    fn hint(hint: impl Into<String>) -> Self {
        Self {
            kind: None,
            message: None,
            hint: Some(hint.into()),
        }
    }
}

type Row = fn(&Situation<'_>, &Reply, &Failure) -> Option<Advice>;

/// The rows, in their order.
const ROWS: &[Row] = &[
    still_starting,
    all_need_sign_in,
    advise_on_disabled,
    server_in_place_of_tool,
    server_without_tools,
    unusable_server,
    tool_of_demo,
    withheld_variable,
    program_missing_in_daemon,
];

impl Situation<'_> {
    /// Adds the advice to a reply.
    pub(super) fn advise(&self, mut reply: Reply) -> Reply {
        let Outcome::Refused(failure) = &reply.outcome else {
            return reply;
        };
        let advice = ROWS.iter().find_map(|row| row(self, &reply, failure));
        if let (Some(advice), Outcome::Refused(failure)) = (advice, &mut reply.outcome) {
            failure.kind = advice.kind.unwrap_or(failure.kind);
            if let Some(message) = advice.message {
                failure.message = message;
                (failure.advice, failure.for_models) = (None, None);
            }
            failure.hint = advice.hint;
        }
        reply
    }

    /// Says for a person how a result is had that was larger than the limit. The text for models says to ask for less.
    pub(super) fn explain_size(&self, reply: &mut Reply) {
        let server = reply.server.as_ref().and_then(|name| self.config.servers.get(name));
        let (Outcome::Lost(failure), Some(server)) = (&mut reply.outcome, server) else {
            return;
        };
        let is_it = |diagnosis: &Diagnosis| diagnosis.code == Code::AnswerTooLarge;
        if failure.diagnosis.as_deref().is_some_and(is_it) {
            failure.message = format!(
                "the result of {} is larger than {} and was discarded; the call may have run",
                reply.name,
                size_text(server.limits.max_message)
            );
            let name = reply.server.as_ref().map_or("NAME", |name| name.as_str());
            failure.hint = Some(match self.is_in_daemon {
                // The option would start the server a second time beside the daemon's.
                true => format!(
                    "`max_message = \"64MiB\"` of `{name}` in the config takes a larger result: the daemon reads the file again"
                ),
                false => "`--max-bytes 64MiB` takes a larger result, `--out FILE` writes it to a file".to_owned(),
            });
        }
    }

    /// Leaves out for a person when the server is started again: it ends with the command, unless it is in the daemon.
    pub(super) fn leave_out_schedule(&self, reply: &mut Reply) {
        if self.is_in_daemon {
            return;
        }
        let error = self.error_of(reply).map(|error| error.message.clone());
        if let (Some(error), Outcome::Refused(failure)) = (error, &mut reply.outcome)
            && let Some(at) = failure.message.find(&error)
        {
            failure.message.truncate(at + error.len());
        }
    }

    /// The secrets that the server of a call asked for before it ended, with its name.
    pub(super) fn missing_secrets(&self, reply: &Reply) -> Vec<(String, Vec<String>)> {
        let missing = reply.server.as_ref().and_then(|server| {
            let names = needed_variables::missing_secrets(self.config, server, self.last_words.as_ref()?);
            Some((server.to_string(), names))
        });
        missing.into_iter().collect()
    }

    /// The last error of the server that a call was for.
    fn error_of(&self, reply: &Reply) -> Option<&LastError> {
        let name = reply.server.as_ref()?;
        let server = self.servers.iter().find(|server| server.name == *name)?;
        server.last_error.as_ref()
    }
}

/// The deadline passed while servers were starting.
fn still_starting(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let is_without_server = matches!(
        failure.kind,
        Kind::Unavailable | Kind::RestartInProgress | Kind::UnknownTool | Kind::Timeout
    );
    let servers = situation.servers.iter();
    let starting = servers.filter(|server| server.state == State::Connecting);
    let starting: Vec<String> = starting.map(|server| format!("`{}`", server.name)).collect();
    let message = match starting.as_slice() {
        _ if !situation.is_late || !is_without_server => return None,
        [] => return None,
        [one] => format!("server {one} was still starting when the timeout passed"),
        more => format!(
            "servers {} were still starting when the timeout passed",
            more.join(", ")
        ),
    };
    let mut servers = situation.servers.iter();
    let is_named = servers.any(|server| is_of(&reply.asked, server.name.as_str()));
    Some(Advice {
        kind: Some(Kind::Timeout),
        message: Some(message),
        // The server is stopped when the command ends, so its own hint to retry would not help.
        hint: (!is_named).then(|| "name the server, as in `SERVER.TOOL`, so that no other is waited for".to_owned()),
    })
}

/// No tool is known, because every server waits for a sign-in.
fn all_need_sign_in(situation: &Situation<'_>, _: &Reply, failure: &Failure) -> Option<Advice> {
    let mut enabled = situation
        .servers
        .iter()
        .filter(|server| server.state != State::Disabled);
    let is_it = failure.kind == Kind::UnknownTool
        && !situation.servers.is_empty()
        && enabled.all(|server| server.state == State::NeedsAuth);
    is_it.then(|| Advice {
        kind: Some(Kind::NeedsAuth),
        message: None,
        hint: situation
            .servers
            .iter()
            .find_map(|server| server.last_error.as_ref()?.hint.clone()),
    })
}

/// The config disables the server of the call.
fn advise_on_disabled(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let name = reply.server.as_ref()?;
    let is_disabled = !situation.config.servers.get(name)?.enabled;
    (failure.kind == Kind::Unavailable && is_disabled)
        .then(|| Advice::hint(format!("`pegboard enable {name}` enables it")))
}

/// The name says which server has the tool, and that server has none at all.
fn server_without_tools(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let mut servers = situation.servers.iter();
    let server = servers.find(|server| is_of(&reply.asked, server.name.as_str()))?;
    let is_it = failure.kind == Kind::UnknownTool && server.state == State::Ready && server.tools == 0;
    is_it.then(|| Advice {
        kind: None,
        message: Some(format!(
            "there is no tool `{}`: server `{}` offers no tools",
            reply.asked, server.name
        )),
        hint: Some("check its settings: many servers enable tools by arguments or tokens".to_owned()),
    })
}

/// The name of the tool is the name of a server.
fn server_in_place_of_tool(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let name = reply.asked.as_str();
    let is_server = situation.settings.loaded.config.servers.contains_key(name);
    (failure.kind == Kind::UnknownTool && is_server).then(|| Advice {
        kind: None,
        message: Some(format!("`{name}` is a server, not a tool")),
        hint: Some(format!("`pegboard tools {name}` lists its tools")),
    })
}

/// The name of the tool is that of a server that cannot be used.
fn unusable_server(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let name = reply.asked.as_str();
    (failure.kind == Kind::UnknownTool && situation.settings.has(name)).then(|| {
        let complaint = situation.settings.missing_server_complaint(name);
        Advice {
            kind: None,
            message: Some(complaint.message),
            hint: complaint.hint,
        }
    })
}

/// The tool is one of the demo server, which is not used beside others.
fn tool_of_demo(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let hint = situation.settings.demo_hint(&reply.asked)?;
    (failure.kind == Kind::UnknownTool).then(|| Advice::hint(hint))
}

/// The server has ended for lack of a variable that its config does not pass on.
fn withheld_variable(situation: &Situation<'_>, reply: &Reply, _: &Failure) -> Option<Advice> {
    let words = situation.last_words.as_ref()?;
    let advice = needed_variables::advice(situation.config, reply.server.as_ref()?, words)?;
    Some(Advice::hint(advice))
}

/// The daemon does not find the program of a server that the PATH of this command has.
fn program_missing_in_daemon(situation: &Situation<'_>, reply: &Reply, failure: &Failure) -> Option<Advice> {
    let code = failure.diagnosis.as_deref()?.code;
    let server = situation.config.servers.get(reply.server.as_ref()?)?;
    let Transport::Stdio(command) = &server.transport else {
        return None;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = resolve(&command.program, &path, None).filter(|file| is_executable(file))?;
    (situation.is_in_daemon && code == Code::ProgramMissing).then(|| {
        Advice::hint(format!(
            "`pegboard daemon restart` gives the daemon the PATH of this terminal, which has {}",
            found.display()
        ))
    })
}
