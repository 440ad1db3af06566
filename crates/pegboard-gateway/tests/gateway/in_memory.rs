//! The endpoints of a board for clients in the same process, with paused time.

mod built_in;
mod client;
mod hidden;
mod slow_start;
mod texts;
