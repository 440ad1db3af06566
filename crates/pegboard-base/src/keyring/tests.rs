//! Keyrings: that of the kernel, and programs that stand in for those of a desktop.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use tempfile::TempDir;
use tokio::time::Instant;

use super::{entry::TIMEOUT, *};

const ENTRY: KeyringEntry<'static> = KeyringEntry {
    service: "pegboard-test",
    user: "someone",
};

/// A program that behaves as a script says.
fn program(folder: &TempDir, script: &str) -> PathBuf {
    let path = folder.path().join("program");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_keeps_a_secret() {
    let user = format!("someone-{}", std::process::id());
    let entry = KeyringEntry { user: &user, ..ENTRY };
    match Keyring::Kernel.read(entry) {
        // A container may forbid the system calls.
        Err(KeyringError::NoKeyring) => return,
        found => assert_eq!(found, Err(KeyringError::NoEntry)),
    }
    for secret in ["f1rst", "s3cond"] {
        Keyring::Kernel.store(entry, &Secret::new(secret)).unwrap();
        assert_eq!(find_in(&[Keyring::Kernel], entry).unwrap().expose(), secret);
    }
    Keyring::Kernel.remove(entry).unwrap();
    assert_eq!(Keyring::Kernel.remove(entry), Err(KeyringError::NoEntry));
}

#[test]
fn a_desktops_keyring_is_asked_through_its_program() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("kept");
    let script = format!(
        "case \"$*\" in\n'lookup service pegboard-test username someone') test -f {0} || exit 1; cat {0};;\n'store --label=pegboard-test service pegboard-test username someone') cat > {0};;\n'clear service pegboard-test username someone') rm {0};;\n*) exit 9;;\nesac",
        kept.display()
    );
    let keyring = Keyring::SecretService(program(&folder, &script));
    assert_eq!(keyring.read(ENTRY), Err(KeyringError::NoEntry));
    keyring.store(ENTRY, &Secret::new("s3cret")).unwrap();
    assert_eq!(keyring.read(ENTRY).unwrap().expose(), "s3cret");
    keyring.remove(ENTRY).unwrap();
    assert_eq!(keyring.remove(ENTRY), Err(KeyringError::NoEntry));
}

#[test]
fn a_failure_says_what_failed_and_what_to_do() {
    let folder = TempDir::new().unwrap();
    let keyring = Keyring::SecretService(program(&folder, "echo 'Cannot autolaunch D-Bus' >&2; exit 1"));
    let error = keyring.read(ENTRY).unwrap_err();
    assert_eq!(error.to_string(), "the Secret Service failed: Cannot autolaunch D-Bus");
    assert!(error.hint(ENTRY).contains("in this session"));
    let missing = Keyring::SecretService(folder.path().join("missing"))
        .read(ENTRY)
        .unwrap_err();
    assert!(missing.to_string().contains("cannot be started"), "{missing}");
    // The first failure is told, if no other keyring has the entry.
    let empty = Keyring::Keychain(program(&folder, "exit 44"));
    assert_eq!(empty.read(ENTRY), Err(KeyringError::NoEntry));
    assert_eq!(find_in(&[], ENTRY), Err(KeyringError::NoKeyring));
    assert!(KeyringError::NoEntry.hint(ENTRY).contains("pegboard-test"));
}

#[test]
fn a_keyring_that_waits_for_a_person_is_given_up() {
    let folder = TempDir::new().unwrap();
    let program = program(&folder, "exec sleep 1000");
    let started = Instant::now();
    let limit = Duration::from_millis(50);
    let error = program::run("the Secret Service", &program, &[], None, limit).err();
    assert_eq!(error, Some(KeyringError::NoAnswer("the Secret Service")));
    assert!(started.elapsed() < TIMEOUT);
}
