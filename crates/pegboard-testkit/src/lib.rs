//! Fake MCP servers for tests.

mod answer;
mod fake;
mod fault;
mod history;
mod log;
mod play;
mod process;
mod program;
mod script;
mod server;
mod wire;

pub use answer::{META_CAPABILITIES, META_CLIENT, META_SUBSCRIPTION, META_VERSION};
pub use fake::{Control, FakeServer, MemoryHandle, fake_server_binary};
pub use fault::{Bomb, Child, Fault, Rule, When};
pub use history::{ErrorClass, History, Summary, Violation};
pub use log::{LogFile, Received, read_log};
pub use process::{is_alive, kill, read_pids};
pub use program::main;
pub use script::{Answer, Ask, Block, Era, HttpStyle, LEGACY_VERSIONS, Later, MODERN_VERSION, Refusal, Script, Tool};
pub use wire::net::{NetHandle, Wire, refused_address, stalled_listener};
