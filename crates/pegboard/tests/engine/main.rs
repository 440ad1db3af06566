//! Whole boards, mostly over servers in this process and with paused time: sessions, calls, views, settings, presets.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]
#![expect(
    clippy::field_reassign_with_default,
    reason = "a test names what it changes, line by line"
)]

#[path = "../support/mod.rs"]
mod support;

mod arguments;
mod audit;
mod drops;
mod everyday;
mod forward;
mod hosts;
mod life;
mod lifecycle;
mod line_server;
mod logs;
mod masking;
mod model;
mod naming;
mod overload;
mod pins;
mod policy;
mod presets;
mod races;
mod results;
#[cfg(feature = "rmcp")]
mod rmcp;
mod session;
mod settings;
mod toolset;
mod watching;
