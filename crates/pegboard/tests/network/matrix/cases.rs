//! The cases of the matrix, by the part of a server's life in which the fault happens.
//!
//! Ids that begin with `F` are faults that MCP servers and networks are known to have. Ids that begin with `X` are faults that were invented
//! to break the library. A letter at the end is a variant of the same fault.

mod calls;
mod handshakes;
mod http_bytes;
mod idle;
mod lists;
mod messages;
mod misleading;
mod processes;
mod starts;
mod stops;
mod web;
mod websocket;

use std::sync::OnceLock;

use pegboard_testkit::{Fault, When};
use tokio_tungstenite::tungstenite::Message;

use crate::matrix::{
    case::{Case, How},
    raw::Step,
    stage::Stage,
};

/// All cases.
pub(crate) fn all() -> &'static [Case] {
    static ALL: OnceLock<Vec<Case>> = OnceLock::new();
    ALL.get_or_init(|| {
        let known = [
            starts::cases(),
            handshakes::cases(),
            lists::cases(),
            calls::cases(),
            web::cases(),
            idle::cases(),
            stops::cases(),
        ];
        let invented = [
            messages::cases(),
            processes::cases(),
            http_bytes::cases(),
            websocket::cases(),
            misleading::cases(),
        ];
        let mut invented: Vec<_> = invented.into_iter().flatten().collect();
        invented.sort_by_key(|case| case.id);
        known.into_iter().flatten().chain(invented).collect()
    })
}

/// All wires, for faults that no wire prevents.
const EVERY: &str = "SMH2LW";
/// Wires over HTTP.
const WEB: &str = "H2";
/// Both eras.
const BOTH: &str = "lm";

/// The bound for a call that ends at once, in milliseconds.
const AT_ONCE: u64 = 1_500;
/// The bound for a call that ends at its timeout, in milliseconds.
const AT_LIMIT: u64 = 3_300;

// The outcomes that many cases share: of the call with the fault, and of the next call.
const WELL: &str = "ok, ran 1; then ok, ran 1";
const CUT: &str = "lost transport, may have run, ran 1; then ok, ran 1";
const UNREADABLE: &str = "lost internal, may have run, ran 1; then ok, ran 1";
const TOO_LARGE: &str = "lost limit_exceeded, may have run, ran 1; then ok, ran 1";
const TIMEOUT: &str = "lost timeout, may have run, ran 1; then ok, ran 1";
const DOWN: &str = "refused unavailable, ran 0";

/// A part of the error of a server that is restarted rarely, because somebody has to mend it first.
const RARELY_RETRIED: &str = "next try in 60 s";

/// A case on all wires and in both eras, whose call ends at once.
fn case(id: &'static str, fault: &'static str, must: &'static str, how: How, end: &'static str) -> Case {
    Case {
        id,
        fault,
        must,
        wires: EVERY,
        eras: BOTH,
        bound: AT_ONCE,
        how,
        end,
        exceptions: Vec::new(),
    }
}

/// A case that this test cannot run.
fn cannot_run(id: &'static str, fault: &'static str, must: &'static str, why: &'static str) -> Case {
    case(id, fault, must, How::CannotRun(why), "").on("S").in_era("l")
}

/// The scenario of a case: an async block with the stage.
macro_rules! play {
    (|$stage:ident| $body:expr) => {
        $crate::matrix::case::How::Play(|$stage| Box::pin(async move { $body }))
    };
}
use play;

/// A call of a listed server, then another one.
async fn two_calls(stage: &mut Stage) -> String {
    let first = stage.call().await;
    format!("{first}; {}", stage.next_call().await)
}

/// The fault on the first call, then a call without it.
async fn on_call(stage: &mut Stage, fault: Fault) -> String {
    let fake = stage.faulty(When::tool("pay"), fault);
    stage.open_listed(&fake).await;
    two_calls(stage).await
}

/// The steps of `act` as the HTTP response to the first call, then a call without the fault.
async fn raw_http(stage: &mut Stage, act: fn(&str) -> Vec<Step>) -> String {
    stage.open_raw(act).await;
    stage.until_listed().await;
    two_calls(stage).await
}

/// The messages of `act` as the WebSocket response to the first call, then a call without the fault.
async fn raw_websocket(stage: &mut Stage, act: fn(&str) -> Vec<Message>) -> String {
    stage.open_socket(act).await;
    stage.until_listed().await;
    two_calls(stage).await
}

/// The first call of a server that has this fault at every start. The error must contain `needed`.
async fn at_start(stage: &mut Stage, when: When, fault: Fault, needed: &[&str]) -> String {
    let fake = stage.fake().fault_on(when, fault);
    stage.open(&fake).await;
    diagnosis(stage, needed).await
}

/// The outcome of the first call, and which of the facts that an operator needs are missing in the reply and the status.
async fn diagnosis(stage: &mut Stage, needed: &[&str]) -> String {
    let reply = stage.reply().await;
    let outcome = stage.describe(&reply);
    let status = stage.status();
    let error = status.last_error.map(|error| format!("{error:?}")).unwrap_or_default();
    let all = format!("{} {} {error}", reply.text(), reply.outcome.hint().unwrap_or_default());
    let missing: Vec<_> = needed.iter().filter(|part| !all.contains(**part)).collect();
    if missing.is_empty() {
        outcome
    } else {
        format!("{outcome}; {missing:?} is not told")
    }
}

/// Sends these messages and no answer.
fn only(messages: &[&str]) -> Fault {
    sends(messages, 1, false)
}

/// Sends these messages `times` times, then the answer.
fn before(messages: &[&str], times: u32) -> Fault {
    sends(messages, times, true)
}

fn sends(messages: &[&str], times: u32, then_answer: bool) -> Fault {
    Fault::Says {
        messages: messages.iter().map(|text| (*text).to_owned()).collect(),
        times,
        then_answer,
    }
}

/// An HTTP response with this status and body.
fn status(status: u16, body: &str) -> Fault {
    Fault::Status {
        status,
        headers: Vec::new(),
        body: body.to_owned(),
    }
}
