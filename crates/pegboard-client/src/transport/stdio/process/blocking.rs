//! Runs the blocking steps of a spawn off the async threads.

use super::spawn_error::SpawnError;
use pegboard_config::Command;

/// Runs `work`, which reads files or spawns processes, on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    command: &Command,
    work: impl FnOnce() -> Result<T, SpawnError> + Send + 'static,
) -> Result<T, SpawnError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| SpawnError::Failed {
            program: command.program.clone(),
            why: error.to_string(),
        })?
}
