//! What a host reads on stdout about a call that `pegboard mcp` has read, alone and through a daemon: the result, or whether the call may have
//! run. No answer makes a tool run twice.
//!
//! The host of each cell sends a call again if it is told that the call has not run. The server writes down every call that reaches it.

use std::{process::Command, thread, time::Duration};

use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
    mcp::Mcp,
};

/// How many cells run at once.
const AT_ONCE: usize = 6;

/// The ids of the call in question, of the same call sent again, and of the one that it waits for.
const CALL: u64 = 10;
const AGAIN: u64 = 11;
const HOLD: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    Alone,
    Daemon,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// `pegboard mcp` gets SIGTERM.
    HostStops,
    /// The host closes stdin.
    InputEnds,
    /// The process of the server is killed.
    ServerDies,
    /// The daemon gets SIGTERM.
    DaemonStops,
    /// The daemon is killed.
    DaemonDies,
}

/// How far the call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It waits in the queue of its server.
    NotBegun,
    Running,
    Done,
}

/// What the host must read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Result,
    /// It may have run.
    Lost,
    /// It has not run.
    NotRun,
}

type Cell = (Setup, Place, Era, Progress);

impl Place {
    /// What the host may read. There are two where the moment decides, or where only the daemon knows that a call has not begun.
    fn fates(self, setup: Setup, progress: Progress) -> &'static [Fate] {
        match (self, progress) {
            (_, Progress::Done) => &[Fate::Result],
            (_, Progress::Running) => &[Fate::Lost],
            // The next process of the server gets it.
            (Self::ServerDies, Progress::NotBegun) => &[Fate::Result],
            (Self::DaemonDies, Progress::NotBegun) => &[Fate::Lost],
            (Self::HostStops | Self::InputEnds, Progress::NotBegun) if setup == Setup::Daemon => &[Fate::Lost],
            (Self::HostStops | Self::InputEnds | Self::DaemonStops, Progress::NotBegun) => &[Fate::NotRun],
        }
    }
}

/// The processes of one cell.
struct World {
    home: Home,
    daemon: Option<Served>,
    host: Mcp,
    /// The host whose call the one in question waits for.
    holder: Option<Mcp>,
    era: Era,
}

fn meta(era: Era) -> Value {
    match era {
        Era::Legacy => json!({}),
        Era::Modern => json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}),
    }
}

fn call(host: &mut Mcp, id: u64, tool: &str, era: Era) {
    let params = json!({"name": tool, "arguments": {}, "_meta": meta(era)});
    host.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
}

fn host(home: &Home, era: Era) -> Mcp {
    match era {
        Era::Legacy => Mcp::start(home, &[]).0,
        Era::Modern => Mcp::spawn(home, &[]),
    }
}

impl World {
    fn new(setup: Setup, era: Era) -> Self {
        let home = Home::new();
        let stuck = |name| Tool::new(name).after(Duration::from_secs(600));
        let fake = FakeServer::new("fx")
            .tool(Tool::new("act").answers_text("done"))
            .tool(stuck("stuck"))
            .tool(stuck("hold"));
        home.config(&home.entry("fx", fake, "stop_timeout = '200ms'\nmax_in_flight = 1"));
        let daemon = (setup == Setup::Daemon).then(|| Served::start(&home, &[]));
        let mut host = host(&home, era);
        host.ready_for(&meta(era));
        Self {
            home,
            daemon,
            host,
            holder: None,
            era,
        }
    }

    /// How many calls of the tools in question the server has had.
    fn runs(&self) -> usize {
        self.count("act") + self.count("stuck")
    }

    fn count(&self, tool: &str) -> usize {
        let log = self.home.log("fx").requests;
        let calls = log.iter().filter(|received| received.method == "tools/call");
        calls.filter(|call| call.tool() == Some(tool)).count()
    }

    fn begin(&mut self, progress: Progress) {
        match progress {
            Progress::NotBegun => self.queue(),
            Progress::Running => {
                call(&mut self.host, CALL, "fx__stuck", self.era);
                until("the server has the call", || self.runs() == 1);
            }
            Progress::Done => call(&mut self.host, CALL, "fx__act", self.era),
        }
    }

    /// Lets the call wait for another one: in this process, or in the daemon.
    fn queue(&mut self) {
        let era = self.era;
        let Some(daemon) = &self.daemon else {
            call(&mut self.host, HOLD, "fx__hold", era);
            until("the server has the other call", || self.count("hold") == 1);
            call(&mut self.host, CALL, "fx__act", era);
            self.host.ask("tools/list", &json!({"_meta": meta(era)}));
            return;
        };
        let mut holder = host(&self.home, era);
        holder.ready_for(&meta(era));
        call(&mut holder, HOLD, "fx__hold", era);
        until("the server has the other call", || self.count("hold") == 1);
        call(&mut self.host, CALL, "fx__act", era);
        until("the daemon has queued the call", || {
            let metrics = daemon.send("GET", "/metrics", &[], "").body;
            metrics.contains("pegboard_calls_queued{server=\"fx\"} 1")
        });
        self.holder = Some(holder);
    }

    fn happen(&mut self, place: Place) {
        match place {
            Place::HostStops => signal("TERM", self.host.pid()),
            Place::InputEnds => self.host.close_input(),
            Place::ServerDies => signal("KILL", *self.home.log("fx").spawned.last().unwrap()),
            Place::DaemonStops => self.daemon.as_ref().unwrap().signal("TERM"),
            Place::DaemonDies => self.daemon.as_ref().unwrap().signal("KILL"),
        }
    }

    /// Sends the call again, to a new process if the first one ends.
    fn send_again(&mut self, place: Place) -> Fate {
        if matches!(place, Place::HostStops | Place::InputEnds) {
            self.host = host(&self.home, self.era);
        }
        if let Some(daemon) = self.daemon.take_if(|_| place == Place::DaemonStops) {
            assert_eq!(daemon.code(), Some(0));
            self.daemon = Some(Served::start(&self.home, &[]));
        }
        call(&mut self.host, AGAIN, "fx__act", self.era);
        fate_of(&self.host.answer_to(AGAIN))
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// What a host reads in an answer.
fn fate_of(answer: &Value) -> Fate {
    let result = &answer["result"];
    let said = [
        &answer["error"]["data"]["may_have_executed"],
        &result["_meta"]["pegboard/may_have_executed"],
    ];
    match said.into_iter().find_map(Value::as_bool) {
        Some(true) => Fate::Lost,
        Some(false) => Fate::NotRun,
        None => {
            assert_eq!(result["content"][0]["text"], "done", "{answer}");
            Fate::Result
        }
    }
}

/// Whether an answer invites its reader to send the call again.
fn invites(answer: &Value) -> bool {
    !answer["error"]["data"]["retry_after"].is_null()
}

fn check((setup, place, era, progress): Cell) {
    let mut world = World::new(setup, era);
    world.begin(progress);
    let early = (progress == Progress::Done).then(|| world.host.answer_to(CALL));
    world.happen(place);
    let answer = early.unwrap_or_else(|| world.host.answer_to(CALL));
    let (fate, ran) = (fate_of(&answer), world.runs());
    assert!(place.fates(setup, progress).contains(&fate), "{fate:?}: {answer}");
    match fate {
        Fate::Result => assert_eq!(ran, 1),
        Fate::Lost => assert!(!invites(&answer), "{answer}"),
        Fate::NotRun => {
            assert_eq!(ran, 0, "{answer}");
            assert_eq!(world.send_again(place), Fate::Result, "{answer}");
        }
    }
    assert!(world.runs() <= 1, "the tool has run {} times", world.runs());
}

/// Checks the cells of a table in a few threads.
fn check_all(setup: Setup, places: &[Place]) {
    let mut cells = Vec::new();
    for place in places {
        for era in [Era::Legacy, Era::Modern] {
            for progress in [Progress::NotBegun, Progress::Running, Progress::Done] {
                cells.push((setup, *place, era, progress));
            }
        }
    }
    let (queue, failures) = (Mutex::new(cells), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(cell) = queue.lock().pop() else {
                        return;
                    };
                    // In a thread of its own, so that a failure names its cell.
                    let thread = thread::Builder::new().name(format!("{cell:?}"));
                    if thread.spawn(move || check(cell)).unwrap().join().is_err() {
                        failures.lock().push(cell);
                    }
                }
            });
        }
    });
    assert_eq!(failures.into_inner(), [], "their messages are above");
}

#[test]
fn a_host_is_told_of_every_call_whether_it_may_have_run() {
    check_all(Setup::Alone, &[Place::HostStops, Place::InputEnds, Place::ServerDies]);
}

#[test]
fn a_host_that_uses_a_daemon_is_told_of_every_call_whether_it_may_have_run() {
    let places = [
        Place::HostStops,
        Place::InputEnds,
        Place::ServerDies,
        Place::DaemonStops,
        Place::DaemonDies,
    ];
    check_all(Setup::Daemon, &places);
}
