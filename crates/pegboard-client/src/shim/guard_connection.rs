//! The connection to one guard process: the socket, the thread that reads reports, and the state of each server. If the guard dies, the thread
//! kills all processes that the guard was responsible for.

use std::{
    collections::HashMap,
    io,
    ops::RangeInclusive,
    os::fd::{BorrowedFd, OwnedFd},
    process::{Child, ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard_base::sync::Mutex;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair},
    process::Signal,
};
use tokio::{sync::watch, time::Instant};

use super::{
    guard_protocol::{self, Report, Request},
    kill_timing::{FIRST_PAUSE, KILL_TIMEOUT, MAX_PAUSE},
    process_role,
    process_table::{self, ProcessEntry},
    process_tag,
};

/// How long a guard may take to respond. After that, later servers get another guard.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection to a guard, shared by its handles and the thread that reads its reports.
#[derive(Debug)]
pub(super) struct GuardConnection {
    socket: OwnedFd,
    /// The process of the guard itself, once it is started.
    process: OnceLock<ProcessEntry>,
    /// The highest tag of its servers; `None` if tags do not work on this system.
    highest_tag: Option<u64>,
    /// How many servers were registered. Each has its own tag, counted down from the highest.
    server_count: AtomicU64,
    /// How many reports were received.
    report_count: AtomicU64,
    /// Whether the guard has only one server, because tags do not work on this system.
    has_one_server: AtomicBool,
    is_gone: AtomicBool,
    /// The servers that may have processes left.
    servers: Mutex<HashMap<u64, ServerRecord>>,
}

#[derive(Debug)]
struct ServerRecord {
    tag: Option<u64>,
    state: watch::Sender<ServerState>,
}

/// What a guard has reported about a server.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerState {
    /// The result of the spawn request, once it is known.
    pub(super) spawned: Option<Spawned>,
    /// Its wait status or why that is unknown, once it has exited.
    pub(super) exit: Option<Result<i32, Arc<str>>>,
    /// Whether all its processes are gone, or the guard gave up on them.
    pub(super) is_cleared: bool,
}

/// The result of a spawn request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spawned {
    Started {
        process: ProcessEntry,
        is_tagged: bool,
    },
    Failed {
        errno: i32,
    },
    /// The guard accepts no second server.
    Refused,
}

impl ServerRecord {
    fn process(&self) -> Option<ProcessEntry> {
        match self.state.borrow().spawned {
            Some(Spawned::Started { process, .. }) => Some(process),
            _ => None,
        }
    }
}

impl GuardConnection {
    /// Starts a guard and a thread that reads its reports.
    pub(super) fn open(has_one_server: bool) -> io::Result<Arc<Self>> {
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let connection = Arc::new(Self {
            socket,
            process: OnceLock::new(),
            highest_tag: process_tag::random_highest(),
            server_count: AtomicU64::new(0),
            report_count: AtomicU64::new(0),
            has_one_server: AtomicBool::new(has_one_server),
            is_gone: AtomicBool::new(false),
            servers: Mutex::default(),
        });
        let reading = connection.clone();
        // A thread and not a task, because the guard serves boards of any runtime and outlives each of them.
        std::thread::Builder::new()
            .name("pegboard-guard".to_owned())
            .spawn(move || reading.run(theirs))?;
        Ok(connection)
    }

    /// Registers a server. Returns its id, its tag (zero for none) and a receiver of its state.
    pub(super) fn register(&self) -> (u64, u64, watch::Receiver<ServerState>) {
        let id = self.server_count.fetch_add(1, Ordering::Relaxed);
        let (state, receiver) = watch::channel(ServerState::default());
        let tag = self.highest_tag.and_then(|highest| highest.checked_sub(id));
        self.servers.lock().insert(id, ServerRecord { tag, state });
        (id, tag.unwrap_or_default(), receiver)
    }

    /// Removes a server whose spawn request was not sent.
    pub(super) fn unregister(&self, id: u64) {
        self.servers.lock().remove(&id);
    }

    /// Sends a request. Fails with `WouldBlock` if the guard does not read.
    pub(super) fn send(&self, request: &Request, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        guard_protocol::send(&self.socket, request, files)
    }

    /// Sends a request, and blocks for up to [`RESPONSE_TIMEOUT`] while the socket is full.
    pub(super) fn send_blocking(&self, request: &Request, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        loop {
            match self.send(request, files) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {}
                sent => return sent,
            }
            let mut socket = [PollFd::new(&self.socket, PollFlags::OUT)];
            let wait = Timespec::try_from(MAX_PAUSE).map_err(io::Error::other)?;
            poll(&mut socket, Some(&wait))?;
        }
    }

    /// How many reports were received. While it grows, the guard is alive.
    pub(super) fn report_count(&self) -> u64 {
        self.report_count.load(Ordering::Relaxed)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Shuts down the write half of the socket. The guard treats that as the end of the program: it kills all remaining processes and exits.
    pub(super) fn shut_down(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Sends SIGCONT to a guard that SIGSTOP has stopped.
    pub(super) fn resume_guard(&self) {
        if let Some(guard) = self.process.get() {
            guard.signal(Signal::CONT);
        }
    }

    /// Kills a server and its descendants without the guard. Returns whether all are gone.
    pub(super) fn kill_server(&self, id: u64) -> bool {
        self.kill(&self.server(id))
    }

    /// The processes of a server that are running: its own and its descendants.
    pub(super) fn server_processes(&self, id: u64) -> Vec<ProcessEntry> {
        self.find(&self.server(id))
    }

    /// What the processes of a server have in common. Nothing has it once the guard has reported that they are gone.
    fn server(&self, id: u64) -> Family {
        let servers = self.servers.lock();
        let record = servers.get(&id);
        Family {
            tags: record.and_then(|record| record.tag).map(|tag| tag..=tag),
            processes: record.and_then(ServerRecord::process).into_iter().collect(),
            is_empty: record.is_none(),
        }
    }

    /// Starts the guard, reads its reports until it exits, and kills its servers if the guard has not cleared them.
    fn run(&self, theirs: OwnedFd) {
        let child = process_role::guard_command()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let why = match child {
            Ok(child) => self.read_reports(child),
            Err(error) => Some(format!("this program could not be started again to guard it: {error}")),
        };
        self.is_gone.store(true, Ordering::Relaxed);
        if why.is_some() {
            self.kill_orphans();
        }
        let why: Arc<str> = why.unwrap_or_else(|| "it was killed".to_owned()).into();
        for (_, record) in self.servers.lock().drain() {
            record.state.send_modify(|state| {
                state.exit.get_or_insert_with(|| Err(why.clone()));
                state.is_cleared = true;
            });
        }
    }

    /// Reads reports until the guard exits. Returns the reason if it exited without clearing its servers.
    fn read_reports(&self, mut child: Child) -> Option<String> {
        if let Some(process) = ProcessEntry::find(child.id()) {
            let _ = self.process.set(process);
        }
        while let Ok(Some((report, _))) = guard_protocol::receive(&self.socket, RecvFlags::empty()) {
            self.handle(report);
        }
        self.is_gone.store(true, Ordering::Relaxed);
        // The guard has closed the socket, so it has exited, or it sent an invalid report.
        let status = match child.try_wait() {
            Ok(None) => wait_or_kill(&mut child),
            status => status,
        };
        match status {
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(format!("its guard ended by {status}, so it was killed")),
            Ok(None) | Err(_) => Some("its guard is lost, so it was killed".to_owned()),
        }
    }

    fn handle(&self, report: Report) {
        self.report_count.fetch_add(1, Ordering::Relaxed);
        let mut servers = self.servers.lock();
        let (id, is_last) = match report {
            Report::Failed { id, .. } | Report::Refused { id } | Report::Cleared { id } => (id, true),
            Report::Started { id, .. } | Report::Exited { id, .. } => (id, false),
        };
        let Some(record) = servers.get(&id) else { return };
        record.state.send_modify(|state| match report {
            Report::Started {
                pid, start, is_tagged, ..
            } => {
                if !is_tagged {
                    self.has_one_server.store(true, Ordering::Relaxed);
                }
                let process = ProcessEntry::new(pid, start);
                state.spawned = Some(Spawned::Started { process, is_tagged });
            }
            Report::Failed { errno, .. } => {
                state.spawned = Some(Spawned::Failed { errno });
                state.is_cleared = true;
            }
            Report::Refused { .. } => {
                state.spawned = Some(Spawned::Refused);
                state.is_cleared = true;
            }
            Report::Exited { status, .. } => state.exit = Some(Ok(status)),
            Report::Cleared { .. } => {
                state.exit.get_or_insert_with(|| Err("it could not be killed".into()));
                state.is_cleared = true;
            }
        });
        if is_last {
            servers.remove(&id);
        }
    }

    /// Kills all processes that a dead guard has left behind.
    fn kill_orphans(&self) {
        let count = self.server_count.load(Ordering::Relaxed);
        let tags = self.highest_tag.map(|highest| highest.saturating_sub(count)..=highest);
        let processes: Vec<ProcessEntry> = self.servers.lock().values().filter_map(ServerRecord::process).collect();
        self.kill(&Family {
            tags,
            processes,
            is_empty: false,
        });
    }

    /// Kills the processes of a family until there are none. Returns `false` if that takes too long.
    fn kill(&self, family: &Family) -> bool {
        let deadline = Instant::now() + KILL_TIMEOUT;
        let mut pause = FIRST_PAUSE;
        loop {
            let found = self.find(family);
            if found.is_empty() {
                return true;
            }
            process_table::signal(&found, Signal::KILL);
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = MAX_PAUSE.min(pause * 2);
        }
    }

    /// The running processes of a family. Scans the process table.
    fn find(&self, family: &Family) -> Vec<ProcessEntry> {
        if family.is_empty {
            return Vec::new();
        }
        let guard = self.process.get();
        // Without tags the guard has only one server, so all its children belong to that server.
        let is_child_of_guard = |entry: &ProcessEntry| {
            self.has_one_server.load(Ordering::Relaxed)
                && guard.is_some_and(|guard| entry.parent == guard.pid && !guard.is_exiting())
        };
        let is_tagged = |entry: &ProcessEntry| {
            // The guard itself has the tag of the server that it spawned last.
            let is_guard = guard.is_some_and(|guard| guard.is_same(entry));
            let tags = family.tags.as_ref();
            !is_guard && tags.is_some_and(|tags| process_tag::is_among(entry.pid, tags))
        };
        process_table::with_descendants(&process_table::all(), |entry| {
            let mut known = family.processes.iter();
            known.any(|process| process.is_same(entry)) || is_child_of_guard(entry) || is_tagged(entry)
        })
    }
}

/// How processes that belong together are found: these, their descendants, and all processes with these tags.
struct Family {
    tags: Option<RangeInclusive<u64>>,
    processes: Vec<ProcessEntry>,
    /// Whether it is known to have no process.
    is_empty: bool,
}

/// Waits for a process that should have exited, and kills it if it has not.
fn wait_or_kill(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + KILL_TIMEOUT + RESPONSE_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(FIRST_PAUSE);
    }
    child.kill()?;
    child.wait().map(Some)
}
