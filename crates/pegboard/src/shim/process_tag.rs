//! A number that every process of a server inherits through `fork` and `exec`, also after it has been reparented.
//!
//! It is the limit on file locks, which no kernel since 2.4.25 heeds: `fork` and `exec` keep it, `/proc` shows it, anybody
//! may lower it and only the privileged may raise it. So the guard lowers its own limit by one before each start, and
//! what a daemon left behind can be told to be that server's.

use std::{fs, io, ops::RangeInclusive};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The highest tag. Far from what the system writes as `unlimited`.
const HIGHEST: u64 = 1 << 62;
/// Below this there is too little room for numbers that no other program draws.
const LOWEST: u64 = 1 << 32;

/// The first of a guard's tags, drawn so that no other guard has them. None where the limit is too low already, as far
/// inside of guards that run below guards.
pub(super) fn draw() -> Option<u64> {
    let inherited = getrlimit(Resource::Locks).maximum;
    let top = inherited.map_or(HIGHEST, |limit| limit.min(HIGHEST));
    if top < LOWEST {
        return None;
    }
    let random = getrandom::u64().ok()?;
    Some(top / 2 + random % (top / 2))
}

/// Gives this process and all that it starts from now on a tag, which must be lower than the one before.
pub(super) fn wear(tag: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(tag),
        maximum: Some(tag),
    };
    setrlimit(Resource::Locks, limit)?;
    Ok(())
}

/// Whether this process has the tag that it was given. Some systems accept what they do not keep.
pub(super) fn is_worn(tag: u64) -> bool {
    of(std::process::id()) == Some(tag)
}

/// The tag of a process.
pub(super) fn of(pid: u32) -> Option<u64> {
    parse(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

/// Whether a process has one of these tags.
pub(super) fn is_among(pid: u32, tags: &RangeInclusive<u64>) -> bool {
    of(pid).is_some_and(|tag| tags.contains(&tag))
}

/// The hard limit on file locks.
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
        assert_eq!(of(u32::MAX), None);
    }

    #[test]
    fn tags_are_drawn_far_apart_and_leave_room_for_guards_below() {
        let (one, other) = (draw().unwrap(), draw().unwrap());
        assert_ne!(one, other);
        assert!((LOWEST / 2..HIGHEST).contains(&one));
    }
}
