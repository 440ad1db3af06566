//! The servers of a guard: which process belongs to which server, and how a server is stopped with its descendants.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::Command,
    time::Duration,
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, Signal, WaitStatus},
};
use tokio::time::Instant;

use super::{
    guard_protocol::{FILES, Report, Request},
    kill_timing::{FIRST_PAUSE, KILL_TIMEOUT, MAX_PAUSE},
    process_role,
    process_table::{self, ProcessEntry, ProcessTrees},
    process_tag, rlimits,
    sandbox::SandboxPlan,
    scratch_folder::ScratchFolder,
    spawn_request::SpawnRequest,
};
use pegboard_config::Rlimits;

/// All servers of a guard.
#[derive(Default)]
pub(super) struct GuardedServers {
    servers: BTreeMap<u64, GuardedServer>,
    /// The tags of adopted orphans, until these are reaped. Each is read only once, because there may be thousands.
    tags: HashMap<u32, Option<u64>>,
    /// The kill rounds for orphans that belong to no server.
    orphans: Option<KillRounds>,
    /// Reports that are not sent yet.
    reports: VecDeque<Report>,
    /// The servers that get SIGTERM in the next turn.
    to_terminate: Vec<u64>,
    /// Whether tags do not work, so that the processes of two servers could not be distinguished.
    is_untagged: bool,
    /// Whether tags were verified to work on this system.
    are_tags_verified: bool,
    /// Whether another turn is needed at once.
    runs_again: bool,
    /// When the process table may be scanned again. A scan is slow if there are many processes.
    next_scan: Option<Instant>,
}

/// A server and its descendants.
struct GuardedServer {
    pid: u32,
    tag: Option<u64>,
    grace: Duration,
    /// Whether its descendants stay when it exits.
    keeps_descendants: bool,
    is_reaped: bool,
    stage: Stage,
    /// Removed with the server.
    _scratch: Option<ScratchFolder>,
}

enum Stage {
    Running,
    /// SIGTERM was sent, or will be in the next turn.
    Terminating {
        kill_at: Instant,
    },
    Killing(KillRounds),
}

/// The schedule of repeated kills.
#[derive(Clone, Copy)]
struct KillRounds {
    next: Instant,
    pause: Duration,
    give_up: Instant,
}

impl KillRounds {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            next: now,
            pause: FIRST_PAUSE,
            give_up: now + KILL_TIMEOUT,
        }
    }

    fn round_done(&mut self, now: Instant) {
        self.next = now + self.pause;
        self.pause = MAX_PAUSE.min(self.pause * 2);
    }
}

impl GuardedServer {
    /// Starts the kill rounds, unless they have begun.
    fn kill(&mut self) {
        if !matches!(self.stage, Stage::Killing(_)) {
            self.stage = Stage::Killing(KillRounds::begin());
        }
    }
}

impl GuardedServers {
    /// When the next turn is due, even if no event comes before.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.runs_again {
            return Some(Instant::now());
        }
        let next_kill = |rounds: KillRounds| self.next_scan.map_or(rounds.next, |scan| scan.max(rounds.next));
        let stages = self.servers.values().filter_map(|server| match server.stage {
            Stage::Running => None,
            Stage::Terminating { kill_at } => Some(kill_at),
            Stage::Killing(rounds) => Some(next_kill(rounds)),
        });
        let orphans = self.orphans.map(next_kill);
        let to_terminate = self.next_scan.filter(|_| !self.to_terminate.is_empty());
        stages.chain(orphans).chain(to_terminate).min()
    }

    /// Requests another turn at once.
    pub(super) fn run_again(&mut self) {
        self.runs_again = true;
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Sends queued reports until `send` would block.
    pub(super) fn send_reports(&mut self, send: impl Fn(&Report) -> io::Result<()>) -> io::Result<()> {
        while let Some(report) = self.reports.front() {
            match send(report) {
                Ok(()) => drop(self.reports.pop_front()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn handle(&mut self, request: Request, files: Vec<OwnedFd>) {
        match request {
            Request::Start { id, tag } => {
                let report = self.start(id, tag, files);
                self.reports.push_back(report);
            }
            Request::Stop { id } => {
                if let Some(server) = self.servers.get_mut(&id)
                    && matches!(server.stage, Stage::Running)
                {
                    server.stage = Stage::Terminating {
                        kill_at: Instant::now() + server.grace,
                    };
                    self.to_terminate.push(id);
                }
            }
            Request::Kill { id } => {
                if let Some(server) = self.servers.get_mut(&id) {
                    server.kill();
                }
            }
        }
    }

    fn start(&mut self, id: u64, tag: u64, files: Vec<OwnedFd>) -> Report {
        let is_tagged = !self.is_untagged && self.set_tag(tag);
        self.is_untagged = !is_tagged;
        if !is_tagged && !self.servers.is_empty() {
            return Report::Refused { id };
        }
        match spawn(files) {
            Ok(SpawnedServer {
                process,
                grace,
                keeps_descendants,
                scratch,
            }) => {
                let server = GuardedServer {
                    pid: process.pid,
                    tag: is_tagged.then_some(tag),
                    grace,
                    keeps_descendants,
                    is_reaped: false,
                    stage: Stage::Running,
                    _scratch: scratch,
                };
                self.servers.insert(id, server);
                Report::Started {
                    id,
                    pid: process.pid,
                    start: process.start,
                    is_tagged,
                }
            }
            Err(error) => Report::Failed {
                id,
                errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()),
            },
        }
    }

    /// Sets the tag of the server that is spawned next. Verifies the first time that tags work on this system.
    fn set_tag(&mut self, tag: u64) -> bool {
        let is_set = tag > 0 && process_tag::set(tag).is_ok() && (self.are_tags_verified || process_tag::is_set(tag));
        self.are_tags_verified = is_set;
        is_set
    }

    /// Handles the exit of a child. If it was a server, its descendants are killed, unless they are to stay.
    pub(super) fn handle_exit(&mut self, pid: Pid, status: WaitStatus) {
        let pid = pid.as_raw_nonzero().get().cast_unsigned();
        self.tags.remove(&pid);
        let server = self
            .servers
            .iter_mut()
            .find(|(_, server)| server.pid == pid && !server.is_reaped);
        if let Some((id, server)) = server {
            server.is_reaped = true;
            if !server.keeps_descendants {
                server.kill();
            }
            self.reports.push_back(Report::Exited {
                id: *id,
                status: status.as_raw(),
            });
        }
    }

    /// Kills the servers whose grace period has passed, reports those that are gone, and sends the signals that are due.
    pub(super) fn turn(&mut self) {
        self.runs_again = false;
        let now = Instant::now();
        for server in self.servers.values_mut() {
            if matches!(server.stage, Stage::Terminating { kill_at } if kill_at <= now) {
                server.kill();
            }
        }
        let is_killing = |server: &GuardedServer| matches!(server.stage, Stage::Killing(_));
        if self.orphans.is_some() || self.servers.values().any(is_killing) {
            self.report_cleared(now);
        }
        if self.next_scan.is_none_or(|scan| scan <= now) {
            self.send_signals(now);
        }
    }

    /// Removes and reports the servers that have no processes left, or whose processes could not be killed in time.
    fn report_cleared(&mut self, now: Instant) {
        let remaining: HashSet<Owner> = process_table::children(std::process::id())
            .into_iter()
            .map(|pid| self.owner(pid))
            .collect();
        let mut cleared = Vec::new();
        for (id, server) in &self.servers {
            let Stage::Killing(rounds) = server.stage else { continue };
            let is_clear = server.is_reaped && !remaining.contains(&Owner::Server(*id));
            if is_clear || rounds.give_up <= now {
                cleared.push(*id);
            }
        }
        for id in cleared {
            self.servers.remove(&id);
            self.reports.push_back(Report::Cleared { id });
        }
        let has_orphans = remaining.contains(&Owner::None);
        let rounds = self.orphans.unwrap_or_else(KillRounds::begin);
        self.orphans = (has_orphans && rounds.give_up > now).then_some(rounds);
    }

    /// Signals all servers that are due for SIGTERM or SIGKILL, with one scan of the process table.
    fn send_signals(&mut self, now: Instant) {
        let mut due = Vec::new();
        for id in std::mem::take(&mut self.to_terminate) {
            due.push((Owner::Server(id), Signal::TERM));
        }
        for (id, server) in &mut self.servers {
            if let Stage::Killing(rounds) = &mut server.stage
                && rounds.next <= now
            {
                rounds.round_done(now);
                due.push((Owner::Server(*id), Signal::KILL));
            }
        }
        if let Some(rounds) = &mut self.orphans
            && rounds.next <= now
        {
            rounds.round_done(now);
            due.push((Owner::None, Signal::KILL));
        }
        if due.is_empty() {
            return;
        }
        let own = std::process::id();
        let all = process_table::all();
        let trees = ProcessTrees::new(&all);
        let mut roots: HashMap<Owner, Vec<ProcessEntry>> = HashMap::new();
        for child in trees.children(own) {
            roots.entry(self.owner(child.pid)).or_default().push(*child);
        }
        for (owner, signal) in due {
            let roots = roots.remove(&owner).unwrap_or_default();
            process_table::signal(&trees.with_descendants(roots), signal);
        }
        // Scans take at most a third of the time.
        let done = Instant::now();
        self.next_scan = Some(done + 2 * (done - now));
    }

    /// The server that a child of this process belongs to.
    fn owner(&mut self, pid: u32) -> Owner {
        let server = self
            .servers
            .iter()
            .find(|(_, server)| server.pid == pid && !server.is_reaped);
        if let Some((id, _)) = server {
            return Owner::Server(*id);
        }
        let tag = *self.tags.entry(pid).or_insert_with(|| process_tag::read(pid));
        // A server without a tag is the only server.
        let server = self
            .servers
            .iter()
            .find(|(_, server)| server.tag.is_none() || server.tag == tag);
        server.map_or(Owner::None, |(id, _)| Owner::Server(*id))
    }
}

/// The owner of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Server(u64),
    /// Its server is gone, or it belonged to a nested guard that is gone.
    None,
}

/// A server that was just spawned.
struct SpawnedServer {
    process: ProcessEntry,
    grace: Duration,
    keeps_descendants: bool,
    scratch: Option<ScratchFolder>,
}

/// Spawns a server in a process group of its own, so that a signal to its group does not reach us.
fn spawn(files: Vec<OwnedFd>) -> io::Result<SpawnedServer> {
    let files: [OwnedFd; FILES] = files.try_into().map_err(|_| Errno::BADF)?;
    let [file, stdin, stdout, stderr] = files;
    let file = File::from(file);
    let request = SpawnRequest::read(&file)?;
    let scratch = request.sandbox.as_ref().and_then(SandboxPlan::scratch_base);
    scratch.iter().for_each(|base| ScratchFolder::remove_stale(base));
    let scratch = scratch.map(ScratchFolder::create).transpose()?;
    let mut command = if request.needs_launcher() {
        // This process spawns one server at a time, so no other server inherits the file.
        fcntl_setfd(&file, FdFlags::empty())?;
        process_role::launcher_command(file.as_raw_fd(), scratch.as_ref().map(ScratchFolder::path))
    } else {
        let mut command = Command::new(&request.program);
        command
            .args(&request.args)
            .env_clear()
            .envs(request.env.iter().cloned());
        command
    };
    if let Some(cwd) = &request.cwd {
        command.current_dir(cwd);
    }
    let mut server = command
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()?;
    if !request.needs_launcher() {
        seal_limits(&mut server)?;
    }
    // It is not reaped yet, so it is in the process table even if it has exited.
    let process = ProcessEntry::find(server.id()).ok_or(Errno::SRCH)?;
    Ok(SpawnedServer {
        process,
        grace: request.grace,
        keeps_descendants: request.keeps_descendants,
        scratch,
    })
}

/// Makes the default limits, which the server inherited from this process, final. A server that cannot be limited does not run.
fn seal_limits(server: &mut std::process::Child) -> io::Result<()> {
    match rlimits::set_for(server.id(), &Rlimits::DEFAULT) {
        Err(error) if error.raw_os_error() != Some(Errno::SRCH.raw_os_error()) => {
            let _ = server.kill();
            Err(error)
        }
        _ => Ok(()),
    }
}
