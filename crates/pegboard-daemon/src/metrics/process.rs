//! What the system says of this process.

/// The resident memory in bytes; `None` where the system does not say.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The number of open files; `None` where the system does not say.
pub(super) fn open_files() -> Option<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    // The folder itself is open while it is read.
    Some((entries.count() as u64).saturating_sub(1))
}

/// The most open files; `None` where the system does not say, or has no limit.
pub(super) fn max_open_files() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_something_sensible() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(open_files().unwrap() >= 3);
        assert!(max_open_files().unwrap() >= open_files().unwrap());
    }
}
