//! Many principals on one board: none ever uses the token, the answer or the output of another.

mod fixtures;
mod history;
mod isolation;
mod session_cleanup;
mod templates;
