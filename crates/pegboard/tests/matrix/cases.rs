//! The faults, phase by phase, each with what must come of it.

mod calls;
mod idle;
mod lies;
mod lists;
mod odd;
mod starts;
mod stops;
mod web;

use std::sync::OnceLock;

use pegboard_testkit::{Fault, When};

use crate::{
    case::{Case, How},
    stage::Stage,
};

/// All cases.
pub(crate) fn all() -> &'static [Case] {
    static ALL: OnceLock<Vec<Case>> = OnceLock::new();
    ALL.get_or_init(|| {
        let phases = [
            starts::cases(),
            lists::cases(),
            calls::cases(),
            web::cases(),
            idle::cases(),
            stops::cases(),
            odd::cases(),
            lies::cases(),
        ];
        phases.into_iter().flatten().collect()
    })
}

/// All wires, for faults that no wire prevents.
const EVERY: &str = "SMH2LW";
/// Wires over HTTP.
const WEB: &str = "H2";
/// Both eras.
const BOTH: &str = "lm";

/// The endings that many cases share.
const WELL: &str = "ok, ran 1; then ok, ran 1";
const CUT: &str = "lost transport, may have run, ran 1; then ok, ran 1";
const UNREADABLE: &str = "lost internal, may have run, ran 1; then ok, ran 1";
const TIMEOUT: &str = "lost timeout, may have run, ran 1; then ok, ran 1";
const DOWN: &str = "refused unavailable, ran 0";

/// What the cells of a case do: an async block with the stage.
macro_rules! play {
    (|$stage:ident| $body:expr) => {
        $crate::case::How::Play(|$stage| Box::pin(async move { $body }))
    };
}
use play;

/// The fault on the first call, then a call without it.
async fn on_call(stage: &mut Stage, fault: Fault) -> String {
    on(stage, When::tool("pay"), fault).await
}

/// The fault on the first such request of a server that was listed, then a call without it.
async fn on(stage: &mut Stage, when: When, fault: Fault) -> String {
    let fake = stage.faulty(when, fault);
    stage.open(&fake).await;
    stage.warm().await;
    let first = stage.call().await;
    format!("{first}; {}", stage.then().await)
}

/// The first call of a server that has this fault at every start.
async fn at_start(stage: &mut Stage, when: When, fault: Fault, words: &[&str]) -> String {
    let fake = stage.fake().fault_on(when, fault);
    stage.open(&fake).await;
    told(stage, words).await
}

/// The first call, and which of the words that an operator needs are missing in what is told.
async fn told(stage: &mut Stage, words: &[&str]) -> String {
    let reply = stage.reply().await;
    let word = stage.word(&reply);
    let status = stage.status();
    let error = status.last_error.map(|error| format!("{error:?}")).unwrap_or_default();
    let all = format!("{} {} {error}", reply.text(), reply.outcome.hint().unwrap_or_default());
    let missing: Vec<_> = words.iter().filter(|word| !all.contains(**word)).collect();
    if missing.is_empty() {
        word
    } else {
        format!("{word}; {missing:?} is not told")
    }
}

/// A case that nothing here can play.
fn cannot_run(id: &'static str, fault: &'static str, must: &'static str, why: &'static str) -> Case {
    Case {
        id,
        fault,
        must,
        wires: "S",
        eras: "l",
        bound: 0,
        how: How::CannotRun(why),
        ends: &[],
    }
}
