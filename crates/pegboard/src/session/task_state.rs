//! The status of a task, as its server reports it.

use serde::{Deserialize, Serialize};

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskState {
    /// Its status.
    pub status: TaskStatus,
    /// The server's message about the status.
    #[serde(default, rename(deserialize = "statusMessage"))]
    pub message: Option<String>,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The server is working on it.
    Working,
    /// The server needs input first.
    InputRequired,
    /// Its result is available.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns `true` if the status cannot change any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
