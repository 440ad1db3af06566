//! Renders pages for people from what a board and its gateway know: the dashboard of a daemon.
//!
//! A [`Dashboard`] is a router of HTML pages. What a visitor sees and may do is what the same token sees and may do over the API, because the pages are made of
//! the API's documents ([`LocalApi`](pegboard_daemon::LocalApi)), and their forms take the API's paths. The pages work without scripts; one small script keeps
//! them up to date. Texts of servers are escaped by maud, and only ever text.

mod assets;
mod dashboard;
mod form;
mod history;
mod json;
mod layout;
mod live;
mod pages;
mod schema;
mod sparkline;
mod text;
mod ui;
mod visitor;
mod who;

pub use dashboard::Dashboard;
pub use ui::{ConfigDocument, ConfigLine, ConfigProblem, ReadConfig, ReadScore, TortureFailure, TortureScore};
