//! Sessions with in-process servers: everything about messages and time, on a paused clock.

mod answers;
mod by_hand;
mod cancel;
mod drops;
mod inputs;
mod listing;
mod notifications;
mod reading;
mod scripted;
mod server_requests;
mod task_updates;
mod tasks;
mod time;
