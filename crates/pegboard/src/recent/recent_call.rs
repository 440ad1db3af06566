//! [`RecentCall`]: one call that has ended, as a person is shown it.

use std::time::Duration;

use pegboard_base::{caller::Principal, name::ServerName, timestamp::Timestamp};
use pegboard_tools::outcome::{Answer, Kind, Outcome, Reply};
use pegboard_tools::tool_call::CallTimes;

/// The most bytes of a result that are kept, and of arguments.
const MAX_TEXT: usize = 8 * 1024;

/// One call that has ended. Its texts are masked and cut.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RecentCall {
    /// Its number among the recorded calls of the board. It names the call, because ids of callers need not be unique.
    pub number: u64,
    /// The caller's id for it.
    pub id: String,
    /// `server.tool`, or the name as written if it is unknown.
    pub name: String,
    /// The server.
    pub server: Option<ServerName>,
    /// The tool as its server calls it.
    pub tool: Option<String>,
    /// The view that made it.
    pub view: Option<String>,
    /// The principal that it was made for.
    pub principal: Option<Principal>,
    /// When it began.
    pub at: Timestamp,
    /// How it ended.
    pub kind: Kind,
    /// `done`, `tool_failed`, `refused` or `lost`.
    pub status: &'static str,
    /// Whether the caller sees it as an error.
    pub is_error: bool,
    /// How often it was sent to the server.
    pub attempts: u32,
    /// How many secrets were masked in the result.
    pub masked: usize,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Whether the result may come from a server that the config does not trust.
    pub untrusted: bool,
    /// The size of the result's payload in bytes, as the server sent it.
    pub original_bytes: usize,
    /// Where the time went.
    pub parts: CallParts,
    /// The arguments as JSON; empty if they are not kept, because the tool is not known or they are too long.
    pub arguments: String,
    /// How many bytes the arguments have.
    pub argument_bytes: usize,
    /// The result as text, or what went wrong.
    pub result: String,
    /// Whether the result is cut here.
    pub is_cut: bool,
    /// What the operator can do about a failure.
    pub hint: Option<String>,
    /// Changes of the arguments and problems of the result.
    pub warnings: Vec<String>,
}

/// Where the time of a call went. The parts follow each other; what is left of the total is that of retries, starts and hooks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallParts {
    /// Arguments, policy and approval, before the queue.
    pub prepared: Duration,
    /// The wait in the queue.
    pub queued: Duration,
    /// From the request to the server until its response, over all attempts.
    pub served: Duration,
    /// Sanitizing, masking and shortening of the result.
    pub presented: Duration,
    /// From the call to the reply.
    pub total: Duration,
}

impl RecentCall {
    /// The record of a call that ended with a reply.
    pub(super) fn from_reply(reply: &Reply, begun: Begun, times: &CallTimes) -> Self {
        let (result, is_cut) = cut(result_text(&reply.outcome));
        Self {
            number: 0,
            id: reply.id.clone(),
            name: bounded(&reply.name),
            server: reply.server.clone(),
            tool: reply.tool.clone(),
            view: begun.view,
            principal: begun.principal,
            at: begun.at,
            kind: reply.outcome.kind(),
            status: reply.outcome.status(),
            is_error: reply.is_error(),
            attempts: reply.attempts,
            masked: reply.masked,
            cached: reply.cached,
            untrusted: reply.untrusted,
            original_bytes: reply.original_bytes,
            parts: CallParts {
                prepared: times.prepared(),
                queued: reply.queued.max(times.queued()),
                served: times.served(),
                presented: times.presented(),
                total: reply.latency,
            },
            arguments: begun.arguments,
            argument_bytes: begun.argument_bytes,
            result,
            is_cut,
            hint: reply.outcome.hint().map(str::to_owned),
            warnings: reply.warnings.clone(),
        }
    }

    /// The record of a call whose future was dropped.
    pub(super) fn cancelled(id: String, name: &str, begun: Begun, times: &CallTimes, took: Duration) -> Self {
        let words = "the caller has gone away before the call ended";
        let outcome = Outcome::Lost(pegboard_tools::outcome::Failure::new(Kind::Cancelled, words));
        let reply = Reply::unanswered(id, name, outcome, took);
        let server = begun.server.clone();
        Self {
            server,
            ..Self::from_reply(&reply, begun, times)
        }
    }

    /// About how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        let warnings: usize = self.warnings.iter().map(String::len).sum();
        size_of::<Self>() + self.id.len() + self.name.len() + self.arguments.len() + self.result.len() + warnings
    }
}

/// What is noted when a call begins.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) at: Timestamp,
    pub(super) server: Option<ServerName>,
    pub(super) view: Option<String>,
    pub(super) principal: Option<Principal>,
    pub(super) arguments: String,
    pub(super) argument_bytes: usize,
}

/// The text of an outcome, which is masked already.
fn result_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Answer { raw: Some(raw), .. }) | Outcome::ToolFailed(Answer { raw: Some(raw), .. }) => {
            let json = raw.json();
            let kept = &json[..json.len().min(2 * MAX_TEXT)];
            let whole = (kept.len() == json.len())
                .then(|| serde_json::from_slice::<serde_json::Value>(kept).ok())
                .flatten();
            whole.map_or_else(
                || String::from_utf8_lossy(kept).into_owned(),
                |value| content_of(&value),
            )
        }
        Outcome::Done(answer) | Outcome::ToolFailed(answer) => answer.text(),
        Outcome::Refused(failure) | Outcome::Lost(failure) => failure.message.clone(),
    }
}

/// The texts of a result that was passed on, or all of it if it is something else.
fn content_of(result: &serde_json::Value) -> String {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    match texts.len() == blocks.len() && !texts.is_empty() {
        true => texts.join("\n"),
        false => result.to_string(),
    }
}

/// A text, cut at a character. Returns whether it was.
fn cut(mut text: String) -> (String, bool) {
    let is_long = text.len() > MAX_TEXT;
    if is_long {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.shrink_to_fit();
    }
    (text, is_long)
}

/// A name, which a model may have made arbitrarily long.
fn bounded(name: &str) -> String {
    name[..name.floor_char_boundary(512)].to_owned()
}

/// Whether arguments of this length are kept. Longer ones are not: masking them takes time, and a part of them could end in half a secret.
pub(super) fn keeps_arguments(bytes: usize) -> bool {
    bytes <= MAX_TEXT
}
