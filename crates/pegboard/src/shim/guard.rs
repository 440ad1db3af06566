//! The guard's own process: it starts the servers of one program, adopts whatever their processes leave behind, and ends
//! all of them when the program is gone.

use std::{io, process::exit, time::Duration};

use rustix::{
    io::Errno,
    net::RecvFlags,
    process::{DumpableBehavior, Signal, WaitOptions, getpid, wait},
};
use tokio::{
    io::Interest,
    net::UnixStream,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep, sleep_until},
};

use super::{guarded_servers::GuardedServers, message, parent_watch::Parent, process_table, rlimits};
use crate::config::Rlimits;

/// How long killed processes are waited for. Only one that hangs in the kernel takes longer, and nobody can help that.
pub(super) const LAST_WAIT: Duration = Duration::from_secs(5);
/// The first and the longest pause between two rounds of killing.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];
/// Requests that are taken in one turn, so that the ends of servers are seen however many are started.
const REQUESTS: usize = 16;
/// Children that are buried in one turn, so that requests are read however many processes end.
const BURIED: usize = 256;

/// Guards the servers of `parent` to its end, and ends this process.
pub(super) fn run(parent: u32) -> ! {
    // A program may have called us within its runtime, and there is no second one in the same thread.
    let ended = if tokio::runtime::Handle::try_current().is_ok() {
        let thread = std::thread::spawn(move || guard(parent));
        thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    } else {
        guard(parent)
    };
    exit(i32::from(ended.is_err()));
}

fn guard(parent: u32) -> io::Result<()> {
    let line = settle()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Listening comes first, so that nothing is missed that happens right after a start.
        let mut child = signal(SignalKind::child())?;
        // Whoever ends a whole group of processes means the program, and the program decides about its servers. These are
        // caught and not ignored, because the servers would ignore them too.
        let _caught = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ];
        let line = UnixStream::from_std(line)?;
        let parent = Parent::find(parent).ok_or(io::ErrorKind::NotFound)?;
        let ended = serve(&line, &parent, &mut child).await;
        sweep(&mut child).await;
        ended
    })
}

/// Makes this process the root of a tree of its own. Returns the socket to the program, which was its input.
fn settle() -> io::Result<std::os::unix::net::UnixStream> {
    close_strays()?;
    let line = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // Lists of processes would call it `exe`. If this fails, they do.
    let _ = rustix::thread::set_name(c"pegboard-run");
    // Servers of the same user can kill this process, but they shall not trace it or take its socket.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // A guard that a server has stopped (SIGSTOP) goes on when the program dies, and then ends all servers. The parent here is the thread
    // of the program that listens to this guard for as long as both live.
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_no_new_privs(true)?;
    rlimits::set(None, &Rlimits::default())?;
    let line = std::os::unix::net::UnixStream::from(line);
    line.set_nonblocking(true)?;
    Ok(line)
}

/// Closes what the program that started us has left open without meaning to. Everything else that is open is marked to be
/// closed when a server starts.
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

/// Whether a server would inherit it.
fn is_inherited(fd: i32) -> bool {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & CLOSE_ON_EXEC == 0)
}

/// Does what the program asks for until it is gone. No turn waits for a server, so none can hold up another.
async fn serve(line: &UnixStream, parent: &Parent, child: &mut tokio::signal::unix::Signal) -> io::Result<()> {
    let mut servers = GuardedServers::default();
    loop {
        let alarm = servers.alarm();
        tokio::select! {
            biased;
            () = parent.gone() => return Ok(()),
            ready = line.readable() => {
                ready?;
                for _ in 0..REQUESTS {
                    let received = line.try_io(Interest::READABLE, || message::receive(line, RecvFlags::DONTWAIT));
                    match received {
                        Ok(Some((request, files))) => {
                            servers.handle(request, files);
                            // The next request may take a while.
                            answer(&mut servers, line)?;
                        }
                        Ok(None) => return Ok(()),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
            }
            _ = child.recv() => {}
            ready = line.writable(), if servers.has_answers() => ready?,
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {}
        }
        reap(&mut servers)?;
        servers.turn();
        answer(&mut servers, line)?;
    }
}

/// Sends what is to be told.
fn answer(servers: &mut GuardedServers, line: &UnixStream) -> io::Result<()> {
    servers.answer(|answer| line.try_io(Interest::WRITABLE, || message::send(line, answer, &[])))
}

/// Buries children that have ended.
fn reap(servers: &mut GuardedServers) -> io::Result<()> {
    for _ in 0..BURIED {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => servers.ended(pid, status),
            Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    servers.hurry();
    Ok(())
}

/// Kills everything below this process. Whatever was forked meanwhile is found in the next round.
async fn sweep(child: &mut tokio::signal::unix::Signal) {
    let own = std::process::id();
    let deadline = Instant::now() + LAST_WAIT;
    let mut pause = PAUSES[0];
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if Instant::now() > deadline {
            return;
        }
        let below = process_table::families(&process_table::all(), |seen| seen.parent == own);
        process_table::signal(&below, Signal::KILL);
        tokio::select! {
            _ = child.recv() => {}
            () = sleep(pause) => pause = PAUSES[1].min(pause * 2),
        }
    }
}
