//! The servers below a guard: who belongs to which, and how each is ended with all that came from it.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitStatus},
};
use tokio::time::Instant;

use super::{
    guard::{LAST_WAIT, PAUSES},
    message::{Answer, FILES, Request},
    process_table::{self, ProcessEntry, ProcessTrees},
    process_tag, role,
    spawn_request::SpawnRequest,
};

/// All servers of a guard.
#[derive(Default)]
pub(super) struct GuardedServers {
    servers: BTreeMap<u64, GuardedServer>,
    /// The tags of the orphans that were adopted, until they are reaped. Each is read once: there may be thousands of them.
    tags: HashMap<u32, Option<u64>>,
    /// The killing of orphans that belong to no server.
    strays: Option<Ending>,
    answers: VecDeque<Answer>,
    asked: Vec<u64>,
    /// Whether tags could not be set, so that processes of two servers could not be told apart.
    is_alone: bool,
    /// Whether tags are known to be kept.
    is_proven: bool,
    /// Whether there is more to do at once.
    is_hurried: bool,
    /// When all processes may be looked at again. It takes long where there are many of them.
    next_look: Option<Instant>,
}

/// A server and all that came from it.
struct GuardedServer {
    pid: u32,
    tag: Option<u64>,
    grace: Duration,
    is_buried: bool,
    stage: Stage,
}

enum Stage {
    Running,
    Asked { kill_at: Instant },
    Ending(Ending),
}

/// Rounds of killing.
#[derive(Clone, Copy)]
struct Ending {
    next: Instant,
    pause: Duration,
    give_up: Instant,
}

impl Ending {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            next: now,
            pause: PAUSES[0],
            give_up: now + LAST_WAIT,
        }
    }

    fn has_killed(&mut self, now: Instant) {
        self.next = now + self.pause;
        self.pause = PAUSES[1].min(self.pause * 2);
    }
}

impl GuardedServer {
    fn end(&mut self) {
        if !matches!(self.stage, Stage::Ending(_)) {
            self.stage = Stage::Ending(Ending::begin());
        }
    }
}

impl GuardedServers {
    /// When something is to be done even if nothing happens until then.
    pub(super) fn alarm(&self) -> Option<Instant> {
        if self.is_hurried {
            return Some(Instant::now());
        }
        let look = |ending: Ending| self.next_look.map_or(ending.next, |look| look.max(ending.next));
        let stages = self.servers.values().filter_map(|server| match server.stage {
            Stage::Running => None,
            Stage::Asked { kill_at } => Some(kill_at),
            Stage::Ending(ending) => Some(look(ending)),
        });
        let strays = self.strays.map(look);
        let asked = self.next_look.filter(|_| !self.asked.is_empty());
        stages.chain(strays).chain(asked).min()
    }

    /// Asks for another turn at once.
    pub(super) fn hurry(&mut self) {
        self.is_hurried = true;
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Sends what is to be told, for as long as the other side takes it.
    pub(super) fn answer(&mut self, send: impl Fn(&Answer) -> io::Result<()>) -> io::Result<()> {
        while let Some(answer) = self.answers.front() {
            match send(answer) {
                Ok(()) => drop(self.answers.pop_front()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn handle(&mut self, request: Request, files: Vec<OwnedFd>) {
        match request {
            Request::Start { id, tag } => {
                let answer = self.start(id, tag, files);
                self.answers.push_back(answer);
            }
            Request::Stop { id } => {
                if let Some(server) = self.servers.get_mut(&id)
                    && matches!(server.stage, Stage::Running)
                {
                    server.stage = Stage::Asked {
                        kill_at: Instant::now() + server.grace,
                    };
                    self.asked.push(id);
                }
            }
            Request::Kill { id } => {
                if let Some(server) = self.servers.get_mut(&id) {
                    server.end();
                }
            }
        }
    }

    fn start(&mut self, id: u64, tag: u64, files: Vec<OwnedFd>) -> Answer {
        let is_tagged = !self.is_alone && self.wear(tag);
        self.is_alone = !is_tagged;
        if !is_tagged && !self.servers.is_empty() {
            return Answer::Refused { id };
        }
        match spawn(files) {
            Ok((seen, grace)) => {
                let server = GuardedServer {
                    pid: seen.pid,
                    tag: is_tagged.then_some(tag),
                    grace,
                    is_buried: false,
                    stage: Stage::Running,
                };
                self.servers.insert(id, server);
                Answer::Started {
                    id,
                    pid: seen.pid,
                    start: seen.start,
                    is_tagged,
                }
            }
            Err(error) => Answer::Failed {
                id,
                errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()),
            },
        }
    }

    /// Gives what is started next a tag, and looks the first time whether that works here.
    fn wear(&mut self, tag: u64) -> bool {
        let is_worn = tag > 0 && process_tag::wear(tag).is_ok() && (self.is_proven || process_tag::is_worn(tag));
        self.is_proven = is_worn;
        is_worn
    }

    /// Notes that a child has ended. What a server has left behind is killed then.
    pub(super) fn ended(&mut self, pid: Pid, status: WaitStatus) {
        let pid = pid.as_raw_nonzero().get().cast_unsigned();
        self.tags.remove(&pid);
        let server = self
            .servers
            .iter_mut()
            .find(|(_, server)| server.pid == pid && !server.is_buried);
        if let Some((id, server)) = server {
            server.is_buried = true;
            server.end();
            self.answers.push_back(Answer::Exited {
                id: *id,
                status: status.as_raw(),
            });
        }
    }

    /// Does what is due.
    pub(super) fn turn(&mut self) {
        self.is_hurried = false;
        let now = Instant::now();
        for server in self.servers.values_mut() {
            if matches!(server.stage, Stage::Asked { kill_at } if kill_at <= now) {
                server.end();
            }
        }
        let is_ending = |server: &GuardedServer| matches!(server.stage, Stage::Ending(_));
        if self.strays.is_some() || self.servers.values().any(is_ending) {
            self.clear(now);
        }
        if self.next_look.is_none_or(|look| look <= now) {
            self.signal(now);
        }
    }

    /// Lets go of the servers of which nothing is left.
    fn clear(&mut self, now: Instant) {
        let left: HashSet<Owner> = process_table::children(std::process::id())
            .into_iter()
            .map(|pid| self.owner(pid))
            .collect();
        let mut cleared = Vec::new();
        for (id, server) in &self.servers {
            let Stage::Ending(ending) = server.stage else { continue };
            let is_clear = server.is_buried && !left.contains(&Owner::Server(*id));
            if is_clear || ending.give_up <= now {
                cleared.push(*id);
            }
        }
        for id in cleared {
            self.servers.remove(&id);
            self.answers.push_back(Answer::Cleared { id });
        }
        let has_strays = left.contains(&Owner::Nobody);
        let strays = self.strays.unwrap_or_else(Ending::begin);
        self.strays = (has_strays && strays.give_up > now).then_some(strays);
    }

    /// Signals all servers that are to be asked or killed now, after one look at all processes.
    fn signal(&mut self, now: Instant) {
        let mut due = Vec::new();
        for id in std::mem::take(&mut self.asked) {
            due.push((Owner::Server(id), Signal::TERM));
        }
        for (id, server) in &mut self.servers {
            if let Stage::Ending(ending) = &mut server.stage
                && ending.next <= now
            {
                ending.has_killed(now);
                due.push((Owner::Server(*id), Signal::KILL));
            }
        }
        if let Some(strays) = &mut self.strays
            && strays.next <= now
        {
            strays.has_killed(now);
            due.push((Owner::Nobody, Signal::KILL));
        }
        if due.is_empty() {
            return;
        }
        let own = std::process::id();
        let all = process_table::all();
        let forest = ProcessTrees::new(&all);
        let mut roots: HashMap<Owner, Vec<ProcessEntry>> = HashMap::new();
        for child in forest.children(own) {
            roots.entry(self.owner(child.pid)).or_default().push(*child);
        }
        for (owner, signal) in due {
            let roots = roots.remove(&owner).unwrap_or_default();
            process_table::signal(&forest.families(roots), signal);
        }
        // Twice as long is left to others.
        let done = Instant::now();
        self.next_look = Some(done + 2 * (done - now));
    }

    /// To whom a child of this process belongs.
    fn owner(&mut self, pid: u32) -> Owner {
        let server = self
            .servers
            .iter()
            .find(|(_, server)| server.pid == pid && !server.is_buried);
        if let Some((id, _)) = server {
            return Owner::Server(*id);
        }
        let tag = *self.tags.entry(pid).or_insert_with(|| process_tag::of(pid));
        // A server without a tag is the only one.
        let server = self
            .servers
            .iter()
            .find(|(_, server)| server.tag.is_none() || server.tag == tag);
        server.map_or(Owner::Nobody, |(id, _)| Owner::Server(*id))
    }
}

/// To whom a process belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Server(u64),
    /// To a server that is gone, or to a guard below a server that is gone.
    Nobody,
}

/// Starts a server in a group of its own, so that one that signals its whole group does not hit us.
fn spawn(files: Vec<OwnedFd>) -> io::Result<(ProcessEntry, Duration)> {
    let files: [OwnedFd; FILES] = files.try_into().map_err(|_| Errno::BADF)?;
    let [order, stdin, stdout, stderr] = files;
    let order = SpawnRequest::read(File::from(order))?;
    let mut command = role::server(&order);
    if let Some(cwd) = &order.cwd {
        command.current_dir(cwd);
    }
    let server = command
        .env_clear()
        .envs(order.env)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()?;
    // It was not waited for, so it is there even if it has ended.
    let seen = ProcessEntry::find(server.id()).ok_or(Errno::SRCH)?;
    Ok((seen, order.grace))
}
