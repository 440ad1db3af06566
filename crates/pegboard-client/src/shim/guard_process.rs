//! The main loop of the guard process: it spawns the servers of one program, reaps their orphans, and kills all of them when the program
//! is gone.

use std::{io, process::exit};

use rustix::{
    fs::Mode,
    io::Errno,
    net::RecvFlags,
    process::{Signal, WaitOptions, getpid, umask, wait},
};
use tokio::{
    io::Interest,
    net::UnixStream,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep, sleep_until},
};

use super::{
    guard_protocol,
    guarded_servers::GuardedServers,
    kill_timing::{FIRST_PAUSE, KILL_TIMEOUT, MAX_PAUSE},
    parent_watch::Parent,
    process_table, rlimits, scratch_folder, self_protection,
};

/// The most requests that are handled in one turn, so that exits are noticed however many servers are spawned.
const MAX_REQUESTS: usize = 16;
/// The most children that are reaped in one turn, so that requests are read however many processes exit.
const MAX_REAPED: usize = 256;

/// Guards the servers of `parent` until it is gone, and exits.
pub(super) fn run(parent: u32) -> ! {
    // The program may have called `shim` within a runtime, and a thread cannot enter a second one.
    let ended = if tokio::runtime::Handle::try_current().is_ok() {
        let thread = std::thread::spawn(move || guard(parent));
        thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    } else {
        guard(parent)
    };
    exit(i32::from(ended.is_err()));
}

fn guard(parent: u32) -> io::Result<()> {
    let socket = set_up()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Registered first, so that no exit is missed.
        let mut child = signal(SignalKind::child())?;
        // Signals to a whole process group are meant for the program, which decides about its servers. They are caught and not ignored,
        // because the servers would inherit ignored signals.
        let _caught = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ];
        let socket = UnixStream::from_std(socket)?;
        let parent = Parent::find(parent).ok_or(io::ErrorKind::NotFound)?;
        let mut servers = GuardedServers::default();
        let ended = serve(&socket, &parent, &mut child, &mut servers).await;
        kill_all(&mut child).await;
        drop(servers);
        scratch_folder::wait_for_removals();
        ended
    })
}

/// Makes this process a session leader and a subreaper, and isolates it. Returns the socket to the program, which is passed as stdin.
fn set_up() -> io::Result<std::os::unix::net::UnixStream> {
    close_inherited_files()?;
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // Otherwise process lists show it as `exe`.
    let _ = rustix::thread::set_name(c"pegboard-run");
    // Servers of the same user can kill this process, but must not trace it or take its socket.
    self_protection::protect_this_process();
    // A guard that a server has stopped (SIGSTOP) continues when the program dies, and then kills all servers. The parent here is the
    // thread of the program that reads this guard's reports for as long as both live.
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_no_new_privs(true)?;
    rlimits::set_soft_defaults()?;
    // Files of a server are for its user only.
    umask(Mode::RWXG | Mode::RWXO);
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Closes files that this process inherited by accident. All other open files are close-on-exec, so servers do not inherit them.
fn close_inherited_files() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && is_inherited(*fd))
        .collect();
    for fd in open {
        // The file is open, so this cannot fail.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Whether a server would inherit the file.
fn is_inherited(fd: i32) -> bool {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & CLOSE_ON_EXEC == 0)
}

/// Handles the requests of the program until it is gone. No turn waits for a server, so none can delay another.
async fn serve(
    socket: &UnixStream,
    parent: &Parent,
    child: &mut tokio::signal::unix::Signal,
    servers: &mut GuardedServers,
) -> io::Result<()> {
    loop {
        let deadline = servers.next_deadline();
        tokio::select! {
            biased;
            () = parent.gone() => return Ok(()),
            ready = socket.readable() => {
                ready?;
                for _ in 0..MAX_REQUESTS {
                    let received = socket.try_io(Interest::READABLE, || {
                        guard_protocol::receive(socket, RecvFlags::DONTWAIT)
                    });
                    match received {
                        Ok(Some((request, files))) => {
                            servers.handle(request, files);
                            // The next request may take a while.
                            send_reports(servers, socket)?;
                        }
                        Ok(None) => return Ok(()),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
            }
            _ = child.recv() => {}
            ready = socket.writable(), if servers.has_reports() => ready?,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {}
        }
        reap(servers)?;
        servers.turn();
        send_reports(servers, socket)?;
    }
}

/// Sends queued reports for as long as the socket takes them.
fn send_reports(servers: &mut GuardedServers, socket: &UnixStream) -> io::Result<()> {
    servers.send_reports(|report| socket.try_io(Interest::WRITABLE, || guard_protocol::send(socket, report, &[])))
}

/// Reaps children that have exited.
fn reap(servers: &mut GuardedServers) -> io::Result<()> {
    for _ in 0..MAX_REAPED {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => servers.handle_exit(pid, status),
            Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    // There may be more.
    servers.run_again();
    Ok(())
}

/// Kills all descendants of this process. Processes that are forked meanwhile are found in the next round.
async fn kill_all(child: &mut tokio::signal::unix::Signal) {
    let own = std::process::id();
    let deadline = Instant::now() + KILL_TIMEOUT;
    let mut pause = FIRST_PAUSE;
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
        let descendants = process_table::with_descendants(&process_table::all(), |entry| entry.parent == own);
        process_table::signal(&descendants, Signal::KILL);
        tokio::select! {
            _ = child.recv() => {}
            () = sleep(pause) => pause = MAX_PAUSE.min(pause * 2),
        }
    }
}
