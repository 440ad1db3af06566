//! Tags the processes of a server with a number that they inherit through `fork` and `exec` and keep when they are reparented.
//!
//! The tag is the resource limit on file locks (`RLIMIT_LOCKS`), which no kernel since 2.4.25 enforces: `fork` and `exec` keep it, `/proc`
//! shows it, any process may lower it and only a privileged one may raise it. The guard lowers its own limit by one before each spawn, so
//! that even a daemon can be attributed to its server.

use std::{fs, io, ops::RangeInclusive};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The highest tag, well below the value that means `unlimited`.
const HIGHEST: u64 = 1 << 62;
/// Below this, random tags of two guards could collide.
const LOWEST: u64 = 1 << 32;

/// A random highest tag for a guard, so that no two guards share tags. Returns `None` if the inherited limit is too low, as in deeply nested
/// guards.
pub(super) fn random_highest() -> Option<u64> {
    let inherited = getrlimit(Resource::Locks).maximum;
    let top = inherited.map_or(HIGHEST, |limit| limit.min(HIGHEST));
    if top < LOWEST {
        return None;
    }
    let random = getrandom::u64().ok()?;
    Some(top / 2 + random % (top / 2))
}

/// Sets the tag of this process and of all processes that it spawns from now on. It must be lower than the one before.
pub(super) fn set(tag: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(tag),
        maximum: Some(tag),
    };
    setrlimit(Resource::Locks, limit)?;
    Ok(())
}

/// Whether this process has the tag. Some systems accept a limit without storing it.
pub(super) fn is_set(tag: u64) -> bool {
    read(std::process::id()) == Some(tag)
}

/// Reads the tag of a process.
pub(super) fn read(pid: u32) -> Option<u64> {
    parse(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

/// Whether a process has one of these tags.
pub(super) fn is_among(pid: u32, tags: &RangeInclusive<u64>) -> bool {
    read(pid).is_some_and(|tag| tags.contains(&tag))
}

/// Parses the hard limit on file locks.
fn parse(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_from_the_limits_of_a_process() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max locked memory         8388608              8388608              bytes     \n\
                      Max file locks            4611686018427387     4611686018427388     locks     \n";
        assert_eq!(parse(limits), Some(4_611_686_018_427_388));
        assert_eq!(
            parse("Max file locks            unlimited            unlimited            locks"),
            None
        );
        assert_eq!(parse(""), None);
        assert_eq!(read(u32::MAX), None);
    }

    #[test]
    fn random_tags_are_far_apart_and_leave_room_for_nested_guards() {
        let (one, other) = (random_highest().unwrap(), random_highest().unwrap());
        assert_ne!(one, other);
        assert!((LOWEST / 2..HIGHEST).contains(&one));
    }
}
