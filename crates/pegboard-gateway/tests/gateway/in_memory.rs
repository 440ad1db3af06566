//! The endpoints of a board for clients in the same process, with paused time.

mod built_in;
mod client;
mod earlier_runs;
mod hidden;
mod slow_start;
mod texts;
