//! The shim's own process: it starts the server, adopts whatever the server's processes leave behind, and ends after all
//! of them, in the way the server ended.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Command, exit},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep, sleep_until},
};

use super::{order::Order, parent::Parent, rlimits, tree};

/// How long killed processes are waited for. Only one that hangs in the kernel takes longer, and nobody can help that.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// The first and the longest pause between two rounds of killing.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];
/// The exit code of a shim that could not start its server, as shells use it.
const NOT_STARTED: i32 = 127;

/// Carries the order out and ends this process.
pub(super) fn run(order: Order) -> ! {
    // A program may have called us within its runtime, and there is no second one in the same thread.
    let ended = if tokio::runtime::Handle::try_current().is_ok() {
        let thread = std::thread::spawn(move || guard(&order));
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the shim panicked")))
    } else {
        guard(&order)
    };
    match ended {
        Ok(status) => end_like(status),
        Err(error) => {
            // This goes where the server's own last words go. If nobody reads it, the exit code remains.
            let _ = writeln!(io::stderr(), "pegboard: {error}");
            exit(NOT_STARTED);
        }
    }
}

fn guard(order: &Order) -> io::Result<WaitStatus> {
    settle(order)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Listening comes first, so that nothing is missed that happens right after the start.
        let mut watch = Watch {
            parent: Parent::find(order.parent)
                .ok_or_else(|| io::Error::other("the program that wanted the server is gone"))?,
            grace: order.grace,
            ask: signal(SignalKind::terminate())?,
            child: signal(SignalKind::child())?,
        };
        let server = start(order)?;
        let ended = match release_streams() {
            Ok(()) => watch.server(server).await,
            Err(error) => Err(error),
        };
        watch.sweep(server).await;
        ended
    })
}

/// Makes this process the root of a tree of its own.
fn settle(order: &Order) -> io::Result<()> {
    close_strays()?;
    // Lists of processes would call it `exe`. If this fails, they do.
    let _ = rustix::thread::set_name(c"pegboard-run");
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_no_new_privs(true)?;
    rlimits::set(None, &order.rlimits)
}

/// Closes what the program that started us has left open without meaning to. Everything else that is open is marked to be
/// closed when the server starts.
fn close_strays() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && is_inherited(*fd))
        .collect();
    for fd in open {
        // It is open, so this does not fail, and if it did there would be nothing to do.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Whether the server would inherit it.
fn is_inherited(fd: i32) -> bool {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & CLOSE_ON_EXEC == 0)
}

/// Starts the server in a group of its own, so that one that signals its whole group does not hit us.
fn start(order: &Order) -> io::Result<Pid> {
    let mut command = Command::new(&order.program);
    let server = command.args(&order.args).process_group(0).spawn().map_err(|error| {
        let program = order.program.display();
        io::Error::new(error.kind(), format!("`{program}` could not be started: {error}"))
    })?;
    i32::try_from(server.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the server has no process id"))
}

/// Lets go of the server's streams. The other end must see when the server closes them.
fn release_streams() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// What a shim waits for.
struct Watch {
    parent: Parent,
    grace: Duration,
    ask: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
}

impl Watch {
    /// Waits for the end of the server, and brings it about when asked to or when the parent is gone.
    async fn server(&mut self, server: Pid) -> io::Result<WaitStatus> {
        let mut kill_at = None;
        loop {
            match reap(server)? {
                Reaped {
                    ended: Some(status), ..
                } => return Ok(status),
                Reaped { more: false, .. } => return Err(io::Error::other("the server was lost")),
                Reaped { .. } => {}
            }
            tokio::select! {
                biased;
                () = self.parent.gone() => break,
                _ = self.child.recv() => {}
                Some(()) = self.ask.recv(), if kill_at.is_none() => {
                    kill_at = Some(Instant::now() + self.grace);
                    signal_tree(Signal::TERM);
                }
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => break,
            }
        }
        self.sweep(server)
            .await
            .ok_or_else(|| io::Error::other("the server cannot be killed"))
    }

    /// Kills everything that is left, and says how the server ended if it was among it. Whatever was forked meanwhile is
    /// found in the next round.
    async fn sweep(&mut self, server: Pid) -> Option<WaitStatus> {
        let deadline = Instant::now() + LAST_WAIT;
        let mut pause = PAUSES[0];
        let mut status = None;
        while let Ok(Reaped { ended, more }) = reap(server) {
            status = status.or(ended);
            if !more || Instant::now() > deadline {
                break;
            }
            signal_tree(Signal::KILL);
            tokio::select! {
                _ = self.child.recv() => {}
                () = sleep(pause) => pause = PAUSES[1].min(pause * 2),
            }
        }
        status
    }
}

/// What became of our children. All processes below us are our children in the end, because we adopt orphans.
struct Reaped {
    /// How the server ended, if it did.
    ended: Option<WaitStatus>,
    /// Whether any child is left.
    more: bool,
}

/// Buries all children that have ended.
fn reap(server: Pid) -> io::Result<Reaped> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == server => ended = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(Reaped { ended, more: true }),
            Err(Errno::CHILD) => return Ok(Reaped { ended, more: false }),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Signals every process below us, children before their parents, so that no parent replaces a child that ended.
fn signal_tree(signal: Signal) {
    let own = std::process::id();
    for process in tree::families(&tree::all(), |seen| seen.parent == own).iter().rev() {
        process.signal(signal);
    }
}

/// Ends this process in the way the server ended.
fn end_like(status: WaitStatus) -> ! {
    let Some(signal) = status.terminating_signal() else {
        exit(status.exit_status().unwrap_or(NOT_STARTED));
    };
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Twice, because the first one only removes the handler that Rust has set for some of them.
        let _ = kill_process(getpid(), signal);
        let _ = kill_process(getpid(), signal);
    }
    // It is one of those that this process catches or ignores. A shell in its place does not.
    let script = "kill -$0 $$";
    let _ = Command::new("/bin/sh")
        .env_clear()
        .args(["-c", script, &signal.to_string()])
        .exec();
    exit(128 + signal);
}
