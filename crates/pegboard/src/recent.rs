//! The last calls of a board with their arguments and results, and the questions that wait, for people who watch it. No call is kept until a program asks for it.

mod recent_call;
mod recent_calls;
mod waiting_approvals;

pub use recent_call::{CallParts, RecentCall};
pub use recent_calls::RecentCalls;
pub(crate) use recent_calls::Recording;
pub use waiting_approvals::{ApprovalAnswer, WaitingApproval, WaitingApprovals};
