//! The program's side: one guard for all its stdio servers, and a handle to each server below it.

use std::{
    collections::HashMap,
    io,
    ops::RangeInclusive,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    process::{Child, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair},
    process::Signal,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{
    guard::{LAST_WAIT, PAUSES},
    message::{self, Answer, Request},
    process_table::{self, ProcessEntry},
    process_tag, role,
    spawn_request::SpawnRequest,
};

/// How long a guard may be silent while something is wanted of it. Then servers that are started later get another one.
const ANSWER: Duration = Duration::from_secs(5);

/// How long the end of one server's processes may take while the guard ends others.
const CLEARED: Duration = Duration::from_secs(60);

/// The guard that takes the next server. Boards share it, as they share this process; it ends with its last server.
static CURRENT: Mutex<Weak<Guard>> = Mutex::new(Weak::new());

/// Whether processes cannot be told apart by tags on this system, so that each server needs a guard of its own.
static ARE_ALONE: AtomicBool = AtomicBool::new(false);

/// Why a server was not started.
#[derive(Debug)]
pub(crate) enum NotStarted {
    /// The system said so.
    Failed(io::Error),
    /// The guard did not start it, or did not say so.
    Unguarded(String),
}

/// A server below a guard. It is killed with all that came from it when this is dropped before it has ended.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Arc<Guard>,
    id: u64,
    state: watch::Receiver<State>,
}

/// What a guard has told of a server.
#[derive(Debug, Clone, Default)]
struct State {
    answer: Option<Answer>,
    /// How it ended, or why that is not known.
    exit: Option<Result<i32, Arc<str>>>,
    is_cleared: bool,
}

impl Guarded {
    /// Orders a server to be started with these streams, which the caller keeps until [`started`](Self::started) returns.
    ///
    /// It waits only while many orders are on their way, and never longer than a guard may be silent.
    pub(crate) fn order(order: &SpawnRequest, streams: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let file = order.write()?;
        let [stdin, stdout, stderr] = streams;
        let files = [file.as_fd(), stdin, stdout, stderr];
        loop {
            let guard = Guard::current()?;
            if let Some((id, state)) = guard.order(&files)? {
                return Ok(Self { guard, id, state });
            }
        }
    }

    /// Waits until the server is started, and returns its process. `Ok(None)` means that this guard takes no more servers
    /// and the order is to be given again.
    pub(crate) async fn started(&mut self) -> Result<Option<ProcessEntry>, NotStarted> {
        let mut heard = self.guard.shared.heard.load(Ordering::Relaxed);
        let state = loop {
            let answered = self
                .state
                .wait_for(|state| state.answer.is_some() || state.exit.is_some());
            match timeout(ANSWER, answered).await {
                Ok(Ok(state)) => break state.clone(),
                Ok(Err(_)) => return Err(NotStarted::Unguarded("its guard is gone".to_owned())),
                Err(_) => {}
            }
            // It may be busy with others.
            let now = self.guard.shared.heard.load(Ordering::Relaxed);
            if now == heard {
                self.guard.give_up();
                return Err(NotStarted::Unguarded("its guard does not answer".to_owned()));
            }
            heard = now;
        };
        match (state.answer, state.exit) {
            (
                Some(Answer::Started {
                    pid, start, is_tagged, ..
                }),
                _,
            ) => {
                if !is_tagged {
                    ARE_ALONE.store(true, Ordering::Relaxed);
                    self.guard.retire();
                }
                Ok(Some(ProcessEntry::new(pid, start)))
            }
            (Some(Answer::Failed { errno, .. }), _) => Err(NotStarted::Failed(io::Error::from_raw_os_error(errno))),
            (Some(_), _) => {
                self.guard.retire();
                Ok(None)
            }
            (None, Some(Err(why))) => Err(NotStarted::Unguarded(why.to_string())),
            (None, _) => Err(NotStarted::Unguarded("its guard is confused".to_owned())),
        }
    }

    /// Waits for the end of the server's own process, and says how it ended, or why that is not known.
    pub(crate) async fn exited(&mut self) -> Result<ExitStatus, Arc<str>> {
        match self.state.wait_for(|state| state.exit.is_some()).await {
            Ok(state) => match &state.exit {
                Some(Ok(status)) => Ok(ExitStatus::from_raw(*status)),
                Some(Err(why)) => Err(why.clone()),
                None => Err("it is not known how it ended".into()),
            },
            Err(_) => Err("its guard is gone".into()),
        }
    }

    /// Waits until nothing is left of it. Returns `false` if the guard does not say so in time, and says nothing of others either.
    pub(crate) async fn cleared(&mut self) -> bool {
        let mut heard = self.guard.shared.heard.load(Ordering::Relaxed);
        let deadline = Instant::now() + CLEARED;
        loop {
            let cleared = self.state.wait_for(|state| state.is_cleared);
            if timeout(LAST_WAIT + ANSWER, cleared).await.is_ok() {
                return true;
            }
            let now = self.guard.shared.heard.load(Ordering::Relaxed);
            if now == heard || Instant::now() > deadline {
                return false;
            }
            heard = now;
        }
    }

    /// Asks it to end with all that came from it. What is left after its grace period is killed.
    pub(crate) fn stop(&self) {
        // A guard that does not read is noticed by the time limit of the wait for the exit status.
        let _ = self.guard.send(&Request::Stop { id: self.id });
    }

    /// What is needed to kill it without its guard.
    pub(crate) fn hunt(&self) -> OrphanKill {
        self.guard.give_up();
        OrphanKill {
            shared: self.guard.shared.clone(),
            id: self.id,
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if !self.state.borrow().is_cleared && self.guard.send(&Request::Kill { id: self.id }).is_err() {
            self.hunt().kill();
        }
    }
}

/// A server whose guard does not do its work.
pub(crate) struct OrphanKill {
    shared: Arc<Shared>,
    id: u64,
}

impl OrphanKill {
    /// Kills it with all of its processes that can be found. This looks at many processes.
    pub(crate) fn kill(&self) -> bool {
        let ours = self.shared.entries().get(&self.id).map(|entry| {
            let server = entry.server();
            (entry.tag.map(|tag| tag..=tag), server.into_iter().collect::<Vec<_>>())
        });
        ours.is_none_or(|(tags, servers)| self.shared.kill(tags.as_ref(), &servers))
    }
}

/// A guard process, for as long as it has servers.
#[derive(Debug)]
struct Guard {
    shared: Arc<Shared>,
    /// Held while an order is sent: each tag must be lower than the one before.
    ordering: Mutex<()>,
    /// Whether it takes no more servers.
    is_retired: AtomicBool,
    /// Whether it was waited for in vain.
    is_silent: AtomicBool,
}

/// State shared between the thread that reads a guard's answers and the handles that send requests to it.
#[derive(Debug)]
struct Shared {
    line: OwnedFd,
    /// The guard's own process, once it is started.
    process: OnceLock<ProcessEntry>,
    /// The highest of its tags; none where there are none.
    highest: Option<u64>,
    /// How many servers it was told to start. Each has a tag of its own.
    count: AtomicU64,
    /// How many answers it has given.
    heard: AtomicU64,
    is_gone: AtomicBool,
    entries: Mutex<HashMap<u64, Entry>>,
}

/// A server of which something may be left.
#[derive(Debug)]
struct Entry {
    tag: Option<u64>,
    state: watch::Sender<State>,
}

impl Entry {
    fn server(&self) -> Option<ProcessEntry> {
        match self.state.borrow().answer {
            Some(Answer::Started { pid, start, .. }) => Some(ProcessEntry::new(pid, start)),
            _ => None,
        }
    }
}

impl Guard {
    /// The guard for the next server.
    fn current() -> io::Result<Arc<Self>> {
        if ARE_ALONE.load(Ordering::Relaxed) {
            return Self::launch();
        }
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guard) = current.upgrade()
            && guard.takes_more()
        {
            return Ok(guard);
        }
        let guard = Self::launch()?;
        *current = Arc::downgrade(&guard);
        Ok(guard)
    }

    /// Starts a guard. It is not waited for: what is sent to it meanwhile it reads when it is there.
    fn launch() -> io::Result<Arc<Self>> {
        let (line, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let shared = Arc::new(Shared {
            line,
            process: OnceLock::new(),
            highest: process_tag::draw(),
            count: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            entries: Mutex::default(),
        });
        let listening = shared.clone();
        // A thread and not a task, because the guard serves boards of any runtime and outlives each of them.
        std::thread::Builder::new()
            .name("pegboard-guard".to_owned())
            .spawn(move || listening.run(theirs))?;
        Ok(Arc::new(Self {
            shared,
            ordering: Mutex::default(),
            is_retired: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
        }))
    }

    /// Sends a message, unless the guard does not read.
    fn send(&self, request: &Request) -> io::Result<()> {
        message::send(&self.shared.line, request, &[])
    }

    /// Orders a server to be started. Returns none if this guard takes no more of them.
    fn order(&self, files: &[BorrowedFd<'_>]) -> io::Result<Option<(u64, watch::Receiver<State>)>> {
        let _one_by_one = self.ordering.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.takes_more() {
            return Ok(None);
        }
        let (id, tag, state) = self.shared.enter();
        let sent = self.send_patiently(&Request::Start { id, tag }, files);
        if sent.is_err() {
            self.shared.entries().remove(&id);
        }
        match sent {
            // It is gone, or about to be found so.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.retire();
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.give_up();
                Err(io::Error::new(io::ErrorKind::TimedOut, "its guard does not answer"))
            }
            sent => sent.map(|()| Some((id, state))),
        }
    }

    /// Sends a message, and waits while the guard has too many others to read.
    fn send_patiently(&self, request: &Request, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let deadline = Instant::now() + ANSWER;
        loop {
            match message::send(&self.shared.line, request, files) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {}
                sent => return sent,
            }
            let mut line = [PollFd::new(&self.shared.line, PollFlags::OUT)];
            let wait = Timespec::try_from(PAUSES[1]).map_err(io::Error::other)?;
            poll(&mut line, Some(&wait))?;
        }
    }

    fn takes_more(&self) -> bool {
        !self.shared.is_gone.load(Ordering::Relaxed) && !self.is_retired.load(Ordering::Relaxed)
    }

    /// Has servers that are started later get another guard.
    fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Does so because this one does not do its work.
    fn give_up(&self) {
        self.retire();
        self.is_silent.store(true, Ordering::Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It reads this as the end of the program, and ends with all that may be left.
        let _ = shutdown(&self.shared.line, Shutdown::Write);
        // It may have been stopped. It is not killed: it may only be slow, and ends what is left even after the program.
        if self.is_silent.load(Ordering::Relaxed)
            && let Some(guard) = self.shared.process.get()
        {
            guard.signal(Signal::CONT);
        }
    }
}

impl Shared {
    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for another server. Returns its id, its tag and what will be told of it.
    fn enter(&self) -> (u64, u64, watch::Receiver<State>) {
        let id = self.count.fetch_add(1, Ordering::Relaxed);
        let (state, receiver) = watch::channel(State::default());
        let tag = self.highest.and_then(|highest| highest.checked_sub(id));
        self.entries().insert(id, Entry { tag, state });
        (id, tag.unwrap_or_default(), receiver)
    }

    /// Starts the guard, listens to it for as long as it lives, and does its work if it did not.
    fn run(&self, theirs: OwnedFd) {
        let child = role::guard()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let why = match child {
            Ok(child) => self.listen(child),
            Err(error) => Some(format!("this program could not be started again to guard it: {error}")),
        };
        self.is_gone.store(true, Ordering::Relaxed);
        if why.is_some() {
            self.kill_orphans();
        }
        let why: Arc<str> = why.unwrap_or_else(|| "it was killed".to_owned()).into();
        for (_, entry) in self.entries().drain() {
            entry.state.send_modify(|state| {
                state.exit.get_or_insert_with(|| Err(why.clone()));
                state.is_cleared = true;
            });
        }
    }

    /// Listens to the guard to its end. Returns why its servers are not cleared, if they are not.
    fn listen(&self, mut child: Child) -> Option<String> {
        if let Some(seen) = ProcessEntry::find(child.id()) {
            let _ = self.process.set(seen);
        }
        while let Ok(Some((answer, _))) = message::receive(&self.line, RecvFlags::empty()) {
            self.hear(answer);
        }
        self.is_gone.store(true, Ordering::Relaxed);
        // It has closed its end, so it has ended, or it talks nonsense.
        let status = match child.try_wait() {
            Ok(None) => wait_shortly(&mut child),
            status => status,
        };
        match status {
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(format!("its guard ended by {status}, so it was killed")),
            Ok(None) | Err(_) => Some("its guard is lost, so it was killed".to_owned()),
        }
    }

    fn hear(&self, answer: Answer) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries();
        let (id, is_last) = match answer {
            Answer::Failed { id, .. } | Answer::Refused { id } | Answer::Cleared { id } => (id, true),
            Answer::Started { id, .. } | Answer::Exited { id, .. } => (id, false),
        };
        let Some(entry) = entries.get(&id) else { return };
        entry.state.send_modify(|state| match answer {
            Answer::Started { .. } => state.answer = Some(answer),
            Answer::Failed { .. } | Answer::Refused { .. } => {
                state.answer = Some(answer);
                state.is_cleared = true;
            }
            Answer::Exited { status, .. } => state.exit = Some(Ok(status)),
            Answer::Cleared { .. } => {
                state.exit.get_or_insert_with(|| Err("it could not be killed".into()));
                state.is_cleared = true;
            }
        });
        if is_last {
            entries.remove(&id);
        }
    }

    /// Kills everything that a dead guard has left behind.
    fn kill_orphans(&self) {
        let count = self.count.load(Ordering::Relaxed);
        let tags = self.highest.map(|highest| highest.saturating_sub(count)..=highest);
        let servers: Vec<ProcessEntry> = self.entries().values().filter_map(Entry::server).collect();
        self.kill(tags.as_ref(), &servers);
    }

    /// Kills these servers, all below them, and all processes with these tags, until there are none. Returns whether it
    /// was done in time.
    fn kill(&self, tags: Option<&RangeInclusive<u64>>, servers: &[ProcessEntry]) -> bool {
        // The guard itself has the tag of the server that it started last.
        let guard = self.process.get();
        // Without tags it has only one server, and all below it is that server's.
        let is_below = |seen: &ProcessEntry| {
            ARE_ALONE.load(Ordering::Relaxed)
                && guard.is_some_and(|guard| seen.parent == guard.pid && !guard.is_ending())
        };
        let is_tagged = |seen: &ProcessEntry| {
            let is_guard = guard.is_some_and(|guard| guard.is(seen));
            !is_guard && tags.is_some_and(|tags| process_tag::is_among(seen.pid, tags))
        };
        let is_ours =
            |seen: &ProcessEntry| servers.iter().any(|server| server.is(seen)) || is_below(seen) || is_tagged(seen);
        let deadline = Instant::now() + LAST_WAIT;
        let mut pause = PAUSES[0];
        loop {
            let found = process_table::families(&process_table::all(), is_ours);
            if found.is_empty() {
                return true;
            }
            process_table::signal(&found, Signal::KILL);
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = PAUSES[1].min(pause * 2);
        }
    }
}

/// Waits for a process that should have ended, and kills it if it has not.
fn wait_shortly(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + LAST_WAIT + ANSWER;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(PAUSES[0]);
    }
    child.kill()?;
    child.wait().map(Some)
}
