//! The processes of this machine, as /proc shows them.

use std::{fs, path::Path, time::Duration};

use tokio::time::Instant;

/// A process and what started it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    parent: u32,
    /// Its program and arguments.
    pub(crate) words: Vec<String>,
}

/// All processes that are neither zombies nor of the kernel.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| read(&entry.ok()?.path())).collect()
}

/// `None` if this is no process, or it has just ended.
fn read(folder: &Path) -> Option<Process> {
    let pid = folder.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The second field is the name, in parentheses, and may contain anything.
    let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    let words = fs::read(folder.join("cmdline")).ok()?;
    let words: Vec<String> = words
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    (!words[0].is_empty()).then_some(Process { pid, parent, words })
}

/// The processes that a process started, directly or through others.
pub(crate) fn descendants(ancestor: u32) -> Vec<Process> {
    let all = all();
    let mut found = vec![ancestor];
    let mut next = 0;
    while next < found.len() {
        let children = all.iter().filter(|process| process.parent == found[next]);
        let children: Vec<u32> = children.map(|process| process.pid).collect();
        found.extend(children);
        next += 1;
    }
    all.into_iter()
        .filter(|process| found[1..].contains(&process.pid))
        .collect()
}

/// Waits until no process has this environment variable, and returns those that still have it after 10 s. A client may end `pegboard mcp` with
/// a signal that cannot be handled; the guard process then ends the servers.
pub(crate) async fn left_with_variable(name: &str, value: &str) -> Vec<Process> {
    let give_up = Instant::now() + Duration::from_secs(10);
    loop {
        let left = with_variable(name, value);
        if left.is_empty() || Instant::now() > give_up {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The processes whose environment has this variable.
pub(crate) fn with_variable(name: &str, value: &str) -> Vec<Process> {
    let wanted = format!("{name}={value}").into_bytes();
    let mut found = all();
    found.retain(|process| {
        let variables = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == wanted)
    });
    found
}
