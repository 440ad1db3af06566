//! Runs one test in a process of its own, for what concerns the whole process: its memory, its environment, its files.

use std::process::Command;

const MARK: &str = "PEGBOARD_TEST_APART";

/// `true` in the process that was started for this test; elsewhere that process is started and must succeed.
pub(crate) fn is_apart(test: &str, environment: &[(&str, &str)]) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no test is called {test}: {text}");
    false
}
