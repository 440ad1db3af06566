//! What a verification finds, and what it accepts.

use std::{fs, path::PathBuf};

use proptest::prelude::*;

use super::{digest::Digest, log_file, verify::AuditBreakKind as Kind, *};
use pegboard_config::AuditConfig;

/// A log in a folder of its own.
struct Log {
    _folder: tempfile::TempDir,
    config: AuditConfig,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = AuditConfig::new(folder.path().join("audit/calls.jsonl"));
        Self {
            _folder: folder,
            config,
        }
    }

    /// Begins a new file for every batch, and keeps so many.
    fn rotating(max_files: usize) -> Self {
        let mut log = Self::new();
        (log.config.max_size, log.config.max_files) = (1, max_files);
        log
    }

    fn append(&self, records: u64) {
        let mut entries: Vec<AuditEntry> = (1..=records).map(AuditEntry::lost).collect();
        log_file::append(&self.config, &mut entries).unwrap();
    }

    fn verify(&self) -> AuditCheck {
        verify(&self.config.file, None).unwrap()
    }

    fn broken(&self) -> Option<(u64, Kind)> {
        self.verify().broken.map(|broken| (broken.line, broken.kind))
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.config.file).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn rewrite(&self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&self.config.file, text).unwrap();
    }

    fn state(&self) -> PathBuf {
        state_file::path(&self.config.file)
    }
}

#[test]
fn a_log_of_many_batches_verifies() {
    let log = Log::new();
    for records in [1, 3, 2] {
        log.append(records);
    }
    let check = log.verify();
    assert_eq!(check.broken, None);
    // A header and six records, of which each says how many are lost.
    assert_eq!(
        (check.records, check.first, check.last, check.lost),
        (7, 1, 7, 1 + 6 + 3)
    );
    assert!(check.has_state && !check.is_last_torn && check.torn == 0);
    assert_eq!(check.head, Digest::compute(log.lines()[6].as_bytes()).to_string());
}

#[test]
fn each_kind_of_change_is_named() {
    let original = Log::new();
    original.append(5);
    let lines = original.lines();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut changed = lines.clone();
        change(&mut changed);
        original.rewrite(&changed);
        original.broken()
    };
    assert_eq!(with(&|_| {}), None);
    assert_eq!(with(&|lines| drop(lines.remove(2))), Some((3, Kind::Missing)));
    assert_eq!(with(&|lines| lines.swap(2, 3)), Some((3, Kind::Missing)));
    assert_eq!(with(&|lines| lines.insert(3, lines[2].clone())), Some((4, Kind::Moved)));
    assert_eq!(
        with(&|lines| lines[2] = lines[2].replace("\"records\":2", "\"records\":1")),
        Some((4, Kind::Changed))
    );
    assert_eq!(with(&|lines| lines[2].truncate(20)), Some((3, Kind::Unreadable)));
    assert_eq!(with(&|lines| drop(lines.pop())), Some((0, Kind::EndMissing)));
    let changed_last = |lines: &mut Vec<String>| lines[5] = lines[5].replace("\"records\":5", "\"records\":1");
    assert_eq!(with(&changed_last), Some((6, Kind::EndMissing)));
    assert_eq!(with(&|lines| drop(lines.remove(0))), Some((0, Kind::StartMissing)));
    assert_eq!(with(&Vec::clear), Some((0, Kind::StartMissing)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_line_is_removed_moved_copied_or_changed_unseen(
        batches in prop::collection::vec(1..4_u64, 1..5),
        kind in 0..4,
        at in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
    ) {
        let log = Log::new();
        batches.iter().for_each(|records| log.append(*records));
        prop_assert_eq!(log.broken(), None);
        let before = log.lines();
        let mut lines = before.clone();
        let (at, to) = (at.index(lines.len()), to.index(lines.len()));
        match kind {
            0 => drop(lines.remove(at)),
            1 => lines.swap(at, to),
            2 => lines.insert(to, lines[at].clone()),
            _ => {
                let mut bytes = lines[at].clone().into_bytes();
                let byte = byte.index(bytes.len());
                bytes[byte] = if bytes[byte] == b'7' { b'8' } else { b'7' };
                lines[at] = String::from_utf8(bytes).unwrap();
            }
        }
        log.rewrite(&lines);
        prop_assert_eq!(log.broken().is_some(), lines != before);
        // A log that goes on does not cover it up.
        if lines != before && lines.first() == before.first() {
            log.append(1);
            prop_assert!(log.broken().is_some());
        }
    }

    #[test]
    fn a_crash_at_any_byte_leaves_a_log_that_verifies_and_goes_on(cut in any::<prop::sample::Index>()) {
        let log = Log::new();
        log.append(1);
        let state = fs::read(log.state()).unwrap();
        let before = fs::metadata(&log.config.file).unwrap().len();
        log.append(3);
        let after = fs::metadata(&log.config.file).unwrap().len();
        let length = before + cut.index(usize::try_from(after - before).unwrap()) as u64;
        // The records are written before the end of the chain is stored.
        fs::write(log.state(), state).unwrap();
        fs::OpenOptions::new().write(true).open(&log.config.file).unwrap().set_len(length).unwrap();
        let check = log.verify();
        prop_assert_eq!(&check.broken, &None);
        let is_torn = !fs::read(&log.config.file).unwrap().ends_with(b"\n");
        prop_assert_eq!(check.is_last_torn, is_torn);
        log.append(1);
        let check = log.verify();
        prop_assert_eq!(&check.broken, &None);
        prop_assert_eq!((check.is_last_torn, check.torn), (false, u64::from(is_torn)));
    }
}

#[test]
fn a_header_that_a_crash_has_cut_is_written_again() {
    let log = Log::new();
    log.append(1);
    fs::remove_file(log.state()).unwrap();
    for length in [1, 5, 11, 40] {
        fs::OpenOptions::new()
            .write(true)
            .open(&log.config.file)
            .unwrap()
            .set_len(length)
            .unwrap();
        let _ = fs::remove_file(log.state());
        log.append(1);
        assert_eq!(log.broken(), None, "{length}");
        assert_eq!(log.verify().first, 1);
    }
}

#[test]
fn the_chain_goes_on_over_files_and_only_the_newest_are_kept() {
    let log = Log::rotating(3);
    for _ in 0..6 {
        log.append(2);
    }
    let check = log.verify();
    assert_eq!(check.broken, None);
    // Six files of a header and two records each, of which the last three are there.
    assert_eq!((check.files.len(), check.first, check.last), (3, 10, 18));
    let folder = log.config.file.parent().unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 4, "with the state file");

    let other = Log::rotating(9);
    (0..4).for_each(|_| other.append(2));
    let files = other.verify().files;
    for (file, expected) in [(1, Kind::Missing), (0, Kind::StartMissing)] {
        let aside = files[file].with_extension("aside");
        fs::rename(&files[file], &aside).unwrap();
        assert_eq!(other.broken().unwrap().1, expected);
        fs::rename(&aside, &files[file]).unwrap();
    }
}

#[test]
fn a_crash_between_two_files_loses_nothing() {
    let log = Log::rotating(9);
    log.append(2);
    fs::rename(&log.config.file, log.config.file.with_extension("jsonl.000000000001")).unwrap();
    log.append(2);
    let check = log.verify();
    assert_eq!((check.broken, check.files.len(), check.last), (None, 2, 6));
}

#[test]
fn a_log_that_a_crash_has_left_between_two_files_verifies() {
    let log = Log::rotating(9);
    log.append(2);
    fs::rename(&log.config.file, log.config.file.with_extension("jsonl.000000000001")).unwrap();
    let check = log.verify();
    assert_eq!((check.broken, check.last), (None, 3));
}

/// Numbers that a record cannot follow.
#[test]
fn a_forged_number_breaks_the_chain_and_not_the_program() {
    for seq in [0, 1, u64::MAX] {
        let log = Log::new();
        log.append(1);
        let mut lines = log.lines();
        lines.push(format!(r#"{{"seq":{seq},"at":"","prev":"","event":"call"}}"#));
        log.rewrite(&lines);
        log.append(1);
        assert!(log.broken().is_some(), "{seq}");
    }
}

#[test]
fn a_log_that_was_removed_is_missed() {
    let log = Log::new();
    log.append(2);
    fs::remove_file(&log.config.file).unwrap();
    assert!(verify(&log.config.file, None).is_err());
    log.append(2);
    assert_eq!(log.broken(), Some((0, Kind::StartMissing)));
}

#[test]
fn a_hash_that_was_kept_elsewhere_reveals_a_log_that_was_written_anew() {
    let log = Log::new();
    log.append(2);
    let head = log.verify().head;
    log.append(2);
    let check = |log: &Log| verify(&log.config.file, Some(&head)).unwrap().broken;
    assert_eq!(check(&log), None);
    fs::remove_dir_all(log.config.file.parent().unwrap()).unwrap();
    log.append(4);
    assert_eq!(log.broken(), None);
    assert_eq!(check(&log).map(|broken| broken.kind), Some(Kind::HeadMissing));
    assert!(verify(&log.config.file, Some("no hash")).unwrap().broken.is_some());
}

#[test]
fn a_damaged_state_file_is_a_problem_and_a_missing_one_is_said() {
    let log = Log::new();
    log.append(2);
    fs::write(log.state(), "{}").unwrap();
    assert_eq!(log.broken(), Some((0, Kind::BadState)));
    fs::remove_file(log.state()).unwrap();
    let check = log.verify();
    assert_eq!((check.broken, check.has_state), (None, false));
    log.append(1);
    assert_eq!(log.broken(), None);
}

#[test]
fn a_writer_that_is_killed_before_it_stores_the_first_end_of_the_chain_leaves_a_log_that_verifies() {
    let log = Log::new();
    log.append(2);
    // The line with the key.
    let key: Vec<u8> = fs::read(log.state()).unwrap().into_iter().take(128).collect();
    fs::write(log.state(), key).unwrap();
    let check = log.verify();
    assert_eq!((check.broken, check.has_state), (None, false));
    log.append(1);
    let check = log.verify();
    assert_eq!((check.broken, check.has_state), (None, true));
}

#[test]
fn another_file_is_not_written_to() {
    let log = Log::new();
    log.append(1);
    fs::write(&log.config.file, "export PATH=/bin\n").unwrap();
    let refused = log_file::append(&log.config, &mut [AuditEntry::lost(1)]).unwrap_err();
    assert_eq!(refused.to_string(), "it is no audit log");
    assert_eq!(fs::read_to_string(&log.config.file).unwrap(), "export PATH=/bin\n");
}

#[cfg(unix)]
#[test]
fn links_and_files_that_others_may_write_are_refused() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    let refused = |log: &Log| log_file::append(&log.config, &mut [AuditEntry::lost(1)]).is_err();
    for which in [0, 1] {
        let path = |log: &Log| [log.config.file.clone(), log.state()][which].clone();
        let log = Log::new();
        log.append(1);
        assert_eq!(fs::metadata(path(&log)).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(path(&log), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(refused(&log), "0666");
        fs::set_permissions(path(&log), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!refused(&log));
        // Only root can give a file away.
        if chown(path(&log), Some(65534), None).is_ok() {
            assert!(refused(&log), "another user's");
        }
        let log = Log::new();
        log.append(1);
        let victim = log.config.file.with_file_name("victim");
        fs::rename(path(&log), &victim).unwrap();
        symlink(&victim, path(&log)).unwrap();
        let before = fs::read(&victim).unwrap();
        assert!(refused(&log), "a link");
        assert_eq!(fs::read(&victim).unwrap(), before);
    }
}

#[cfg(unix)]
#[test]
fn a_writer_does_not_wait_for_long_for_a_lock_that_is_never_released() {
    let log = Log::new();
    log.append(1);
    let _lock = state_file::StateFile::lock(&log.config.file).unwrap();
    let refused = log_file::append(&log.config, &mut [AuditEntry::lost(1)]).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::TimedOut);
}
