//! Tells who is at the other end of a connection on this machine: a server of a board, or a process of a user.
//!
//! Servers run as the user of this program, so the user's id alone does not keep them from what is meant for the user.

use std::net::SocketAddr;

/// The other end of a connection on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocalPeer {
    /// A server that this program has started, or a process that such a server has started.
    Server,
    /// A server of another program that uses Pegboard, or a process that such a server has started.
    ServerOfAnother,
    /// Another process of the user with this id.
    User(u32),
    /// It cannot be told.
    Unknown,
}

impl LocalPeer {
    /// The process with this id, of the user with the id `uid`, as the kernel names them at the end of a Unix socket. It cannot be told for
    /// a process that has ended.
    pub fn look_up_process(pid: u32, uid: u32) -> Self {
        #[cfg(target_os = "linux")]
        return linux::find_process(pid, uid);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = pid;
            Self::User(uid)
        }
    }

    /// The process at `peer` of a TCP connection to `local`, an address of this process. It reads `/proc`, so it may take milliseconds.
    ///
    /// Servers are told from the user only while there may be one with a sandbox: others have all rights of the user.
    pub fn look_up_connection(peer: SocketAddr, local: SocketAddr) -> Self {
        #[cfg(target_os = "linux")]
        return linux::find_connection(peer, local);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (peer, local);
            Self::Unknown
        }
    }

    /// The id of the user whose socket is at `peer` of a TCP connection to `local`; `None` if it is not on this machine or cannot be told.
    pub fn user_of_connection(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        #[cfg(target_os = "linux")]
        return super::socket_table::find(peer, local).map(|socket| socket.uid);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (peer, local);
            None
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{ffi::OsStr, fs, net::SocketAddr, os::unix::ffi::OsStrExt as _, time::Duration};

    use pegboard_base::sync::Mutex;
    use rustix::{
        io::Errno,
        process::{Pid, WaitId, WaitIdOptions, test_kill_process, waitid},
    };
    use tokio::time::Instant;

    use super::{
        super::{
            process_role,
            process_table::{ProcessEntry, all},
            sandboxed_servers, socket_table,
        },
        LocalPeer,
    };

    /// The most ancestors of a process that are looked at. Nobody nests shells this deep.
    const MAX_ANCESTORS: usize = 1000;
    /// How often the ancestors are read again because one of them ended meanwhile.
    const MAX_ATTEMPTS: usize = 20;
    /// How long it is remembered that there is no guard of another program. To look costs as much as many requests. Shorter than the start of a
    /// guard and its server.
    const NO_GUARD_FOR: Duration = Duration::from_millis(20);

    pub(super) fn find_process(pid: u32, uid: u32) -> LocalPeer {
        // A process that this namespace does not show is not below this one.
        if pid == 0 || pid == std::process::id() {
            return LocalPeer::User(uid);
        }
        let found = (0..MAX_ATTEMPTS).find_map(|_| place_in_tree(pid));
        match found {
            Some(ProcessPosition::BelowThis) => LocalPeer::Server,
            Some(ProcessPosition::BelowAnother) => LocalPeer::ServerOfAnother,
            Some(ProcessPosition::Elsewhere) => LocalPeer::User(uid),
            None => LocalPeer::Unknown,
        }
    }

    /// Where a process is in the tree of processes.
    enum ProcessPosition {
        BelowThis,
        BelowAnother,
        Elsewhere,
    }

    /// Where a process is; `None` if its ancestors change meanwhile.
    ///
    /// A guard adopts the orphans of its servers, so a process cannot leave the tree below it.
    fn place_in_tree(pid: u32) -> Option<ProcessPosition> {
        let Some(mut entry) = ProcessEntry::find(pid) else {
            return place_of_hidden(pid);
        };
        let mut place = ProcessPosition::Elsewhere;
        for _ in 0..MAX_ANCESTORS {
            if entry.parent == std::process::id() {
                return Some(ProcessPosition::BelowThis);
            }
            // This program itself may run below another guard.
            if process_role::is_guard(entry.pid) {
                place = ProcessPosition::BelowAnother;
            }
            if entry.parent == 0 {
                return Some(place);
            }
            let Some(parent) = ProcessEntry::find(entry.parent) else {
                return place_of_hidden(entry.parent);
            };
            // Another process has the id of the parent now.
            if parent.start > entry.start {
                return None;
            }
            entry = parent;
        }
        None
    }

    /// The place of a process that `/proc` does not show; `None` if it has ended. Some systems hide the processes of the same user too, if those
    /// protect their memory.
    fn place_of_hidden(pid: u32) -> Option<ProcessPosition> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return None;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Some(match waitid(WaitId::Pid(pid), look) {
            Ok(_) => ProcessPosition::BelowThis,
            Err(_) => ProcessPosition::Elsewhere,
        })
    }

    pub(super) fn find_connection(peer: SocketAddr, local: SocketAddr) -> LocalPeer {
        let Some(socket) = socket_table::find(peer, local) else {
            return LocalPeer::Unknown;
        };
        if !sandboxed_servers::were_started() && !has_other_guard() {
            return LocalPeer::User(socket.uid);
        }
        let link = format!("socket:[{}]", socket.inode);
        let link = OsStr::from_bytes(link.as_bytes());
        match all().iter().find(|process| holds(process.pid, link)) {
            Some(holder) => find_process(holder.pid, socket.uid),
            // The files of the process are hidden, or a server has put its socket into a message to itself, where no process has it open.
            None => LocalPeer::Unknown,
        }
    }

    /// Whether another program has a guard, and so may have a server with a sandbox. Of many connections that come at once, one looks, and the
    /// others wait for what it finds.
    fn has_other_guard() -> bool {
        static NONE_AT: Mutex<Option<Instant>> = Mutex::new(None);
        let asked = Instant::now();
        let mut none_at = NONE_AT.lock();
        if none_at.is_some_and(|at| at + NO_GUARD_FOR > asked) {
            return false;
        }
        let (own, now) = (std::process::id(), Instant::now());
        let is_other = |entry: &ProcessEntry| entry.parent != own && process_role::is_guard(entry.pid);
        let found = all().iter().any(is_other);
        *none_at = (!found).then_some(now);
        found
    }

    /// Whether a process has the file open that this link of `/proc` names; `false` if its files are hidden.
    fn holds(pid: u32, link: &OsStr) -> bool {
        let Ok(folder) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        folder
            .flatten()
            .any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == link))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        process::{Command, Stdio},
    };

    use super::*;

    const USER: u32 = 12_345;

    #[test]
    fn children_of_this_process_are_servers_also_when_their_parent_has_ended() {
        assert_eq!(
            LocalPeer::look_up_process(std::process::id(), USER),
            LocalPeer::User(USER)
        );
        let parent = std::os::unix::process::parent_id();
        assert_eq!(LocalPeer::look_up_process(parent, USER), LocalPeer::User(USER));
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        assert_eq!(LocalPeer::look_up_process(child.id(), USER), LocalPeer::Server);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(LocalPeer::look_up_process(child.id(), USER), LocalPeer::Unknown);
    }

    #[test]
    fn the_owner_of_a_connection_is_the_process_that_has_it_open() {
        let user = rustix::process::geteuid().as_raw();
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            assert_eq!(LocalPeer::user_of_connection(peer, local), Some(user));
            assert_eq!(LocalPeer::look_up_connection(peer, local), LocalPeer::User(user));
        }
    }
}
