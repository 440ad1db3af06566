//! The configuration as it is meant: complete, checked, with no "use the default" left in it.
//!
//! `file` and its neighbours read what people wrote; this file and [`server`], [`transport`], [`limits`] hold what it means.

mod limits;
mod server;
mod transport;

pub use limits::Limits;
pub use server::{EraChoice, ServerConfig, Start};
pub use transport::{Auth, ClientCert, Command, Endpoint, EnvPolicy, Tls, Transport};

use std::collections::BTreeMap;

use crate::name::ServerName;

/// Everything a board needs to know: the servers, by name.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The configured servers. One that could not be read is not among them.
    pub servers: BTreeMap<ServerName, ServerConfig>,
}
