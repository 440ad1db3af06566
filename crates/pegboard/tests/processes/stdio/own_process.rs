//! Runs one test in its own process, for what concerns the whole process: its memory, its environment, its descriptors.

use std::process::Command;

const MARK: &str = "PEGBOARD_TEST_APART";

/// Returns `true` in the child process that was started for this test; elsewhere it starts that process, which must succeed.
pub(crate) fn in_own_process(test: &str, environment: &[(&str, &str)]) -> bool {
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
