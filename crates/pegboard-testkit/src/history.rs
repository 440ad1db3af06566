//! A history checker: compares the outcomes that the client saw with the calls that the server executed.

use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
    path::Path,
    sync::{Arc, Mutex},
};

use crate::server::lock;

/// The outcomes of calls as the client saw them. Clones share their records.
#[derive(Debug, Clone, Default)]
pub struct History {
    calls: Arc<Mutex<BTreeMap<String, Call>>>,
}

#[derive(Debug, Default)]
struct Call {
    invoked: u32,
    /// Whether the call may be executed more than once.
    is_repeatable: bool,
    completions: Vec<Completion>,
}

#[derive(Debug)]
enum Completion {
    Ok(String),
    Error(ErrorClass),
    Unknown,
}

/// What an error tells about execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The request never left the client: not executed.
    NotSent,
    /// The server refused it before execution: not executed.
    Rejected,
    /// The server responded with an error: executed at most once.
    Other,
}

impl History {
    /// An empty history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn call(&self, nonce: impl Into<String>, change: impl FnOnce(&mut Call)) {
        change(lock(&self.calls).entry(nonce.into()).or_default());
    }

    /// Records the start of a call.
    pub fn invoke(&self, nonce: impl Into<String>) {
        self.call(nonce, |call| call.invoked += 1);
    }

    /// Records the start of a call that may be executed more than once.
    pub fn invoke_repeatable(&self, nonce: impl Into<String>) {
        self.call(nonce, |call| {
            call.invoked += 1;
            call.is_repeatable = true;
        });
    }

    /// Records a result, with the nonce that it contains.
    pub fn ok(&self, nonce: impl Into<String>, answered: impl Into<String>) {
        let answered = answered.into();
        self.call(nonce, |call| call.completions.push(Completion::Ok(answered)));
    }

    /// Records an error.
    pub fn error(&self, nonce: impl Into<String>, class: ErrorClass) {
        self.call(nonce, |call| call.completions.push(Completion::Error(class)));
    }

    /// Records an outcome that leaves open whether the call was executed.
    pub fn unknown(&self, nonce: impl Into<String>) {
        self.call(nonce, |call| call.completions.push(Completion::Unknown));
    }

    /// Compares the history with the ledger of the server. A missing file means that nothing was executed.
    ///
    /// # Errors
    /// All contradictions, ordered by nonce.
    pub fn check(&self, ledger: impl AsRef<Path>) -> Result<Summary, Vec<Violation>> {
        let ledger = match std::fs::read_to_string(ledger.as_ref()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(vec![Violation::Ledger(error.to_string())]),
        };
        self.check_text(&ledger)
    }

    fn check_text(&self, ledger: &str) -> Result<Summary, Vec<Violation>> {
        let mut executed: HashMap<&str, u32> = HashMap::new();
        for nonce in ledger.lines().filter_map(|line| line.strip_prefix("executed ")) {
            *executed.entry(nonce).or_default() += 1;
        }
        let calls = lock(&self.calls);
        let mut summary = Summary::default();
        let mut violations = Vec::new();
        for (nonce, call) in calls.iter() {
            let times = executed.remove(nonce.as_str()).unwrap_or(0);
            summary.executed += u64::from(times);
            summary.repeated += u64::from(call.is_repeatable && times > 1);
            judge(nonce, call, times, &mut summary, &mut violations);
        }
        let mut uninvoked: Vec<&str> = executed.into_keys().collect();
        uninvoked.sort_unstable();
        violations.extend(uninvoked.into_iter().map(|nonce| Violation::NeverInvoked(nonce.into())));
        if violations.is_empty() {
            Ok(summary)
        } else {
            Err(violations)
        }
    }
}

fn judge(nonce: &str, call: &Call, executed: u32, summary: &mut Summary, violations: &mut Vec<Violation>) {
    let nonce = || nonce.to_owned();
    summary.invoked += 1;
    if call.invoked != 1 {
        violations.push(Violation::InvokedNotOnce {
            nonce: nonce(),
            times: call.invoked,
        });
    }
    let completion = match &call.completions[..] {
        [] => return violations.push(Violation::Lost(nonce())),
        [completion] => completion,
        several => {
            return violations.push(Violation::CompletedTwice {
                nonce: nonce(),
                times: several.len(),
            });
        }
    };
    let most = if call.is_repeatable { u32::MAX } else { 1 };
    let (range, seen) = match completion {
        Completion::Ok(answered) => {
            summary.ok += 1;
            if *answered != nonce() {
                violations.push(Violation::Crossed {
                    nonce: nonce(),
                    answered: answered.clone(),
                });
            }
            (1..=most, "ok")
        }
        Completion::Error(ErrorClass::NotSent) => (0..=0, "not sent"),
        Completion::Error(ErrorClass::Rejected) => (0..=0, "rejected"),
        Completion::Error(ErrorClass::Other) => (0..=most, "an error"),
        Completion::Unknown => (0..=most, "unknown"),
    };
    match completion {
        Completion::Ok(_) => {}
        Completion::Error(_) => summary.errors += 1,
        Completion::Unknown => summary.unknown += 1,
    }
    if !range.contains(&executed) {
        violations.push(Violation::Executed {
            nonce: nonce(),
            times: executed,
            seen,
        });
    }
}

/// The counts of a history without violations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Started calls.
    pub invoked: u64,
    /// Calls with a result.
    pub ok: u64,
    /// Calls that ended in an error.
    pub errors: u64,
    /// Calls with an unknown outcome.
    pub unknown: u64,
    /// Executions of these calls in the ledger.
    pub executed: u64,
    /// Repeatable calls that were executed more than once.
    pub repeated: u64,
}

/// A contradiction between the history and the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the line of each variant explains its fields")]
pub enum Violation {
    /// The ledger could not be read.
    Ledger(String),
    /// A nonce was used for several calls, or completed without one.
    InvokedNotOnce { nonce: String, times: u32 },
    /// A call never ended.
    Lost(String),
    /// A call ended more than once.
    CompletedTwice { nonce: String, times: usize },
    /// A call got the result of another.
    Crossed { nonce: String, answered: String },
    /// The number of executions contradicts the outcome that the client saw.
    Executed {
        nonce: String,
        times: u32,
        seen: &'static str,
    },
    /// The server executed a call that was not invoked.
    NeverInvoked(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger(error) => write!(out, "the ledger cannot be read: {error}"),
            Self::InvokedNotOnce { nonce, times } => write!(out, "call {nonce} was begun {times} times"),
            Self::Lost(nonce) => write!(out, "call {nonce} never ended"),
            Self::CompletedTwice { nonce, times } => write!(out, "call {nonce} ended {times} times"),
            Self::Crossed { nonce, answered } => write!(out, "call {nonce} got the answer of {answered}"),
            Self::Executed { nonce, times, seen } => {
                write!(
                    out,
                    "call {nonce} was executed {times} times, but the client saw: {seen}"
                )
            }
            Self::NeverInvoked(nonce) => write!(out, "call {nonce} was executed, but nobody made it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(record: impl FnOnce(&History), ledger: &str) -> Result<Summary, Vec<Violation>> {
        let history = History::new();
        record(&history);
        history.check_text(ledger)
    }

    #[test]
    fn a_history_that_fits_is_summed_up() {
        let record = |history: &History| {
            for nonce in ["a", "b", "c", "d"] {
                history.invoke(nonce);
            }
            history.ok("a", "a");
            history.unknown("b");
            history.unknown("c");
            history.error("d", ErrorClass::NotSent);
        };
        let summary = check(record, "executed a\nexecuted c\n").unwrap();
        assert_eq!(
            summary,
            Summary {
                invoked: 4,
                ok: 1,
                errors: 1,
                unknown: 2,
                executed: 2,
                repeated: 0,
            }
        );
    }

    #[test]
    fn a_call_that_may_be_repeated_may_run_twice_unless_it_is_told_as_not_run() {
        let ledger = "executed a\nexecuted a\n";
        let answered = |history: &History| {
            history.invoke_repeatable("a");
            history.ok("a", "a");
        };
        assert_eq!(check(answered, ledger).unwrap().repeated, 1);
        let refused = |history: &History| {
            history.invoke_repeatable("a");
            history.error("a", ErrorClass::NotSent);
        };
        assert!(matches!(
            &check(refused, ledger).unwrap_err()[..],
            [Violation::Executed { times: 2, .. }]
        ));
    }

    #[test]
    fn every_kind_of_violation_is_found() {
        let nonce = || "a".to_owned();
        let invoked = |finish: fn(&History)| {
            move |history: &History| {
                history.invoke("a");
                finish(history);
            }
        };
        let found = |finish, ledger| check(invoked(finish), ledger).unwrap_err();
        assert_eq!(found(|_| {}, ""), [Violation::Lost(nonce())]);
        let twice = |history: &History| {
            history.ok("a", "a");
            history.unknown("a");
        };
        assert_eq!(
            found(twice, "executed a"),
            [Violation::CompletedTwice {
                nonce: nonce(),
                times: 2
            }]
        );
        let crossed = Violation::Crossed {
            nonce: nonce(),
            answered: "b".into(),
        };
        assert_eq!(found(|history| history.ok("a", "b"), "executed a"), [crossed]);
        let unexecuted = Violation::Executed {
            nonce: nonce(),
            times: 0,
            seen: "ok",
        };
        assert_eq!(found(|history| history.ok("a", "a"), ""), [unexecuted]);
        let repeated = Violation::Executed {
            nonce: nonce(),
            times: 2,
            seen: "unknown",
        };
        assert_eq!(
            found(|history| history.unknown("a"), "executed a\nexecuted a"),
            [repeated]
        );
        let rejected = Violation::Executed {
            nonce: nonce(),
            times: 1,
            seen: "rejected",
        };
        assert_eq!(
            found(|history| history.error("a", ErrorClass::Rejected), "executed a"),
            [rejected]
        );
        assert_eq!(
            check(|_| {}, "executed z").unwrap_err(),
            [Violation::NeverInvoked("z".into())]
        );
    }
}
