//! Tries an MCP server with faults and protocol cases, and gives it a grade.
//!
//! It speaks over raw connections of its own, because a client would repair or refuse what a case needs to send and see. Nothing here prints
//! or parses a command line.
//!
//! ```text
//! Target ──▶ run: a survey of the server in each era ──▶ cases: one function each ──▶ CaseResult ──▶ Card
//!                                                          │ Bench: sessions, transcript, advice
//!                                                          ▼
//!                                                        client: requests and answers ──▶ wire: stdio · HTTP
//! ```
//!
//! The rooms, bottom to top: `wire` sends any text and hands out whatever arrives (`stdio` starts a process in a group of its own, which
//! `guard` and `process_mark` kill even if this program was killed; `http` posts); `client` knows the handshake of both eras; `bench` is
//! what a case works with; `cases` has one function per case, and `case` what is said about it in a report; `run` runs them; `card` counts.

mod bench;
mod card;
mod case;
mod cases;
mod client;
#[cfg(target_os = "linux")]
mod guard;
mod http;
mod incoming;
mod process_mark;
mod run;
mod sample;
mod stdio;
mod stop;
mod transcript;
mod wire;

pub use card::{Card, CaseResult, Group, Verdict};
pub use cases::case_names;
#[cfg(target_os = "linux")]
pub use guard::is_guard;
pub use pegboard_protocol::Era;
pub use run::{Options, Tried, run};
pub use wire::Target;
