//! Tries an MCP server with faults and protocol cases, and gives it a grade.
//!
//! It speaks over raw connections of its own, because a client would repair or refuse what a case needs to send and see. Of the client it
//! uses the guard of processes and the parser of event streams. Nothing here prints or parses a command line.
//!
//! ```text
//! Target ──▶ run: a survey of the server in each era ──▶ cases: one function each ──▶ CaseResult ──▶ Card
//!                                                          │ Bench: sessions, transcript, advice
//!                                                          ▼
//!                                                        client: requests and answers ──▶ wire: stdio · HTTP
//! ```
//!
//! The rooms, bottom to top: `wire` sends any text and hands out whatever arrives (`stdio` starts a process; `http` posts); `client` knows the handshake of both eras; `bench` is
//! what a case works with; `cases` has one function per case, and `case` what is said about it in a report; `run` runs them; `card` counts.

mod bench;
mod card;
mod case;
mod cases;
mod client;
mod http;
mod incoming;
mod run;
mod sample;
mod stdio;
mod stop;
mod transcript;
mod wire;

pub use card::{Card, CaseResult, Group, Verdict};
pub use cases::case_names;
pub use pegboard_protocol::Era;
pub use run::{Options, Tried, run};
pub use wire::Target;
