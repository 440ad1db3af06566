//! The reference model: the state of a board after each step, in the simplest terms.
//!
//! A board has servers; each is one instance that all views share, or a spare and a copy for each view. An instance is off, idle, ready or
//! down. A server remembers the last failure of its instances until one is ready. The model covers exactly what an operator can observe.

mod agents;
mod operators;
mod replacement;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// How long after a loss or a failed start a server is restarted, in milliseconds.
pub(crate) const RESTART: u64 = 1_000;
/// The duration of a slow call, in milliseconds.
pub(crate) const SLOW: u64 = 700;
/// The number of losses that make a crash loop.
const LOOP: usize = 5;
/// The minimum duration of a step, in milliseconds, so that its immediate effects have happened.
const STEP: u64 = 20;
/// No timer may fire this close to the end of a step, because it could fire before or after it.
const NEAR: u64 = 15;

pub(crate) type Name = &'static str;
pub(crate) type ViewId = u32;
pub(crate) type CallId = u32;

/// The endpoint of a server: another one is another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Here,
    There,
}

/// A server's config.
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(crate) struct Settings {
    pub(crate) place: Place,
    pub(crate) per_view: bool,
    pub(crate) lazy: bool,
    pub(crate) required: bool,
    pub(crate) enabled: bool,
    /// Whether the tool `secret` is denied.
    pub(crate) denies: bool,
}

impl fmt::Debug for Settings {
    /// A readable form for the printed sequences.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (true, if self.place == Place::Here { "here" } else { "there" }),
            (true, if self.per_view { "per view" } else { "shared" }),
            (true, if self.lazy { "lazy" } else { "eager" }),
            (self.required, "required"),
            (!self.enabled, "disabled"),
            (self.denies, "denies"),
        ];
        let words: Vec<_> = words
            .iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, word)| *word)
            .collect();
        f.write_str(&words.join(", "))
    }
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Off,
    Idle,
    Ready,
    Down { next: u64, failure: Failure },
    Misconfigured,
}

/// How an instance failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Down,
    CrashLooping,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    id: u32,
    view: Option<ViewId>,
    life: Life,
    /// Whether a start of this instance, or of the one it replaces, has succeeded.
    listed: bool,
    /// Whether its catalog is known.
    known: bool,
    losses: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// `None` while its config is invalid.
    pub(crate) settings: Option<Settings>,
    /// The operator's last enable or disable since the config changed.
    switch: Option<bool>,
    /// The instance that all views share, or the spare for the next view.
    main: Instance,
    copies: Vec<Instance>,
    /// The last failure of an instance, until one is ready. Idle instances show it.
    failure: Option<Failure>,
}

impl Server {
    fn is_per_view(&self) -> bool {
        self.settings.is_some_and(|settings| settings.per_view)
    }

    fn is_enabled(&self) -> bool {
        let by_config = self.settings.is_none_or(|settings| settings.enabled);
        self.switch.unwrap_or(by_config)
    }

    fn starts_unasked(&self) -> bool {
        let is_wanted = |settings: Settings| !settings.lazy || settings.required;
        self.is_enabled() && self.settings.is_some_and(is_wanted)
    }

    fn instances(&mut self) -> impl Iterator<Item = &mut Instance> {
        std::iter::once(&mut self.main).chain(&mut self.copies)
    }

    /// The copies of views, or the main instance if there are none.
    fn in_use(&mut self) -> Vec<&mut Instance> {
        if self.copies.is_empty() {
            vec![&mut self.main]
        } else {
            self.copies.iter_mut().collect()
        }
    }
}

/// A removed instance that still has calls in flight.
#[derive(Debug, Clone)]
struct Draining {
    name: Name,
    place: Place,
    instance: Instance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Hello,
    Fails,
    Slow,
    /// Denied if the settings say so.
    Secret,
    Unknown,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Ok,
    ToolError,
    UnknownTool,
    NotPermitted,
    /// The server is unavailable: the call did not run.
    Unavailable,
    /// The call was in flight and got no response: it may have run.
    Lost,
    Cancelled,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) id: CallId,
    instance: u32,
    ends: u64,
}

/// One step of an agent, an operator, a server or the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    OpenView,
    CloseView(ViewId),
    Call(ViewId, Name, Tool),
    Cancel(CallId),
    List(ViewId),
    Apply(Name, Settings),
    ApplyWithout(Name),
    ApplyMisconfigured(Name),
    Connect(Name, Settings),
    Disconnect(Name),
    Enable(Name),
    Disable(Name),
    Reconnect(Name),
    Crash(Name, Place),
    RefuseStarts(Name, Place),
    AcceptStarts(Name, Place),
    Wait { ms: u64 },
    Drain,
    Shutdown,
}

/// A row of the status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) view: Option<String>,
    pub(crate) draining: bool,
    pub(crate) state: &'static str,
    pub(crate) in_flight: usize,
}

/// The whole board.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    /// Milliseconds since the board was opened.
    pub(crate) now: u64,
    pub(crate) servers: BTreeMap<Name, Server>,
    pub(crate) views: BTreeSet<ViewId>,
    draining: Vec<Draining>,
    pub(crate) in_flight: Vec<InFlight>,
    /// All calls that have ended, by id.
    pub(crate) ended: BTreeMap<CallId, Ending>,
    pub(crate) refusing: BTreeSet<(Name, Place)>,
    pub(crate) closing: bool,
    pub(crate) closed: bool,
    /// The return value of the last step, if it returns whether it changed anything.
    pub(crate) returned: Option<bool>,
    /// The last listing: servers, and whether their tool `secret` is listed.
    pub(crate) listed: Option<Vec<(Name, bool)>>,
    made: u32,
    opened: u32,
    calls: u32,
}

impl Board {
    /// The id of the newest call.
    pub(crate) fn last_call(&self) -> CallId {
        self.calls
    }

    /// The id of the newest view.
    pub(crate) fn last_view(&self) -> ViewId {
        self.opened
    }

    /// Applies one step.
    pub(crate) fn take(&mut self, step: Step) {
        (self.returned, self.listed) = (None, None);
        match step {
            Step::OpenView => self.open_view(),
            Step::CloseView(view) => self.close_view(view),
            Step::Call(view, name, tool) => self.call(view, name, tool),
            Step::Cancel(id) => self.end_calls(Ending::Cancelled, |call| call.id == id),
            Step::List(view) => self.list(view),
            Step::Apply(name, settings) => self.apply(name, settings),
            Step::ApplyWithout(name) => {
                if !self.closing {
                    self.remove(name);
                }
            }
            Step::ApplyMisconfigured(name) => self.misconfigure(name),
            Step::Connect(name, settings) => self.connect(name, settings),
            Step::Disconnect(name) => {
                self.returned = Some(self.servers.contains_key(name));
                self.remove(name);
            }
            Step::Enable(name) => self.enable(name),
            Step::Disable(name) => self.disable(name),
            Step::Reconnect(name) => self.reconnect(name),
            Step::Crash(name, place) => self.crash(name, place),
            Step::RefuseStarts(name, place) => drop(self.refusing.insert((name, place))),
            Step::AcceptStarts(name, place) => drop(self.refusing.remove(&(name, place))),
            Step::Wait { ms } => self.pass(ms),
            Step::Drain => {
                self.closing = true;
                self.returned = Some(self.in_flight.is_empty());
            }
            Step::Shutdown => self.shut_down(),
        }
        self.pass(STEP);
    }

    /// Advances the clock, and a little more if a timer would fire too close to the end.
    fn pass(&mut self, ms: u64) {
        let mut end = self.now + ms;
        loop {
            let next = self.next_timer();
            match next {
                Some(at) if at <= end + NEAR => {
                    self.now = at;
                    self.ring(at);
                    end = end.max(at + NEAR + 1);
                }
                _ => break,
            }
        }
        self.now = end;
        self.forget_drained();
    }

    fn next_timer(&self) -> Option<u64> {
        let calls = self.in_flight.iter().map(|call| call.ends);
        let instances = self
            .servers
            .values()
            .flat_map(|server| std::iter::once(&server.main).chain(&server.copies));
        let starts = instances.filter_map(|instance| match instance.life {
            Life::Down { next, .. } if !self.closed => Some(next),
            _ => None,
        });
        calls.chain(starts).min()
    }

    fn ring(&mut self, at: u64) {
        self.end_calls(Ending::Ok, |call| call.ends == at);
        let (now, refusing) = (self.now, self.refusing.clone());
        for (name, server) in &mut self.servers {
            let is_due = |instance: &Instance| matches!(instance.life, Life::Down { next, .. } if next == at);
            server.start(name, now, &refusing, is_due);
        }
    }
}
