//! The targets.

mod arguments;
mod config;
mod framing;
mod json_rpc;
mod masker;
mod schema;
mod sse;
mod terminal_text;

pub use arguments::arguments;
pub use config::config;
pub use framing::framing;
pub use json_rpc::json_rpc;
pub use masker::masker;
pub use schema::schema;
pub use sse::sse;
pub use terminal_text::terminal_text;
