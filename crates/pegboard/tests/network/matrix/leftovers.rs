//! Finds the processes, tasks and connections that a board left behind.

use std::{collections::HashSet, net::SocketAddr, path::Path, time::Duration};

use tokio::runtime::Handle;

/// How long after a shutdown they may take to end.
const LIMIT: Duration = Duration::from_secs(5);

/// Waits until nothing is left; describes what is left after the limit.
pub(crate) async fn behind(folder: &Path, servers: &[SocketAddr]) -> Option<String> {
    let began = tokio::time::Instant::now();
    loop {
        let left = now(folder, servers);
        if left.is_none() || began.elapsed() > LIMIT {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn now(folder: &Path, servers: &[SocketAddr]) -> Option<String> {
    let processes = processes_with(folder);
    if !processes.is_empty() {
        return Some(format!("processes {processes:?}"));
    }
    let connections = connections_to(servers);
    if connections > 0 {
        return Some(format!("{connections} connections"));
    }
    // The cell's own future is not a task.
    let tasks = Handle::current().metrics().num_alive_tasks();
    (tasks > 0).then(|| format!("{tasks} tasks"))
}

/// The live processes that have this folder on their command line, or their pid in its `pids` file.
pub(crate) fn processes_with(folder: &Path) -> Vec<u32> {
    let children = pegboard_testkit::read_pids(folder.join("pids"));
    let alive = children.into_iter().filter(|pid| pegboard_testkit::is_alive(*pid));
    crate::support::processes_with(folder)
        .into_iter()
        .chain(alive)
        .collect()
}

/// The number of this process's open connections to these servers. The kernel's table has the connections of all processes, some of which
/// may use the same port numbers.
fn connections_to(servers: &[SocketAddr]) -> usize {
    const ESTABLISHED: &str = "01";
    const CLOSE_WAIT: &str = "08";
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let ports: Vec<_> = servers.iter().map(|server| format!(":{:04X}", server.port())).collect();
    let own = own_sockets();
    let rows = table
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| {
        let [_, _, remote, state, _, _, _, _, _, inode, ..] = row[..] else {
            return false;
        };
        let is_open = state == ESTABLISHED || state == CLOSE_WAIT;
        is_open && own.contains(inode) && ports.iter().any(|port| remote.ends_with(port))
    })
    .count()
}

/// The inodes of the sockets that this process holds.
fn own_sockets() -> HashSet<String> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect()
}

/// The number of open descriptors of this process.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_left_behind_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(now(folder.path(), &[]), None);
        let task = tokio::spawn(std::future::pending::<()>());
        assert_eq!(now(folder.path(), &[]).as_deref(), Some("1 tasks"));
        task.abort();
        assert!(task.await.is_err());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let client = tokio::net::TcpStream::connect(server).await.unwrap();
        assert_eq!(now(folder.path(), &[server]).as_deref(), Some("1 connections"));
        drop(client);
        assert_eq!(now(folder.path(), &[server]), None);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(folder.path().join("pids"), format!("{}\n", child.id())).unwrap();
        assert_eq!(now(folder.path(), &[]), Some(format!("processes [{}]", child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(now(folder.path(), &[]), None);
    }
}
