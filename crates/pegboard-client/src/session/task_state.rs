//! The status of a task, as its server reports it.

use serde::{Deserialize, Serialize};

use pegboard_base::label::label;

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskState {
    /// Its status.
    pub status: TaskStatus,
    /// The server's message about the status.
    #[serde(default, alias = "statusMessage")]
    pub message: Option<String>,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// The name on the wire and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns `true` if the status cannot change any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

label!(
    TaskStatus,
    "status of a task",
    [Working, InputRequired, Completed, Failed, Cancelled]
);
