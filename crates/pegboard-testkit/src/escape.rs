//! Attempts of a hostile server to leave its sandbox, and the table of what succeeded.
//!
//! [`Answer::Escape`](crate::Answer::Escape) makes all attempts when its tool is called. What they are aimed at is in [`EscapeTargets`], in the file
//! `targets.json` of the working directory.

mod files;
mod kernel;
mod network;
mod processes;

use std::{collections::BTreeMap, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The file with the targets, in the working directory of the server.
const FILE: &str = "targets.json";

/// What the attempts are aimed at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EscapeTargets {
    /// The home directory, with `.ssh/id_test` and `.kube/config`.
    pub home: PathBuf,
    /// A file of another server.
    pub foreign_file: PathBuf,
    /// The program that runs the servers.
    pub program: u32,
    /// Its guard process.
    pub guard: u32,
    /// Another server.
    pub sibling: u32,
    /// A TCP port on 127.0.0.1 that accepts connections.
    pub tcp: u16,
    /// A UDP port on 127.0.0.1.
    pub udp: u16,
    /// The name of an abstract Unix socket that accepts connections.
    pub abstract_socket: String,
    /// A Unix socket in the file system that accepts connections.
    pub socket: PathBuf,
}

/// An attempt: `Ok` if it succeeded, otherwise why it did not.
type Attempt = Result<(), String>;

/// The results by attempt: `allowed`, or why it was denied.
type Table = BTreeMap<&'static str, String>;

/// Makes all attempts. Returns a JSON object with the result of each: `allowed`, or why it failed.
pub(crate) fn attempts() -> Value {
    let targets = std::fs::read_to_string(FILE).map_err(|error| error.to_string());
    let targets = targets.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    let targets: EscapeTargets = match targets {
        Ok(targets) => targets,
        Err(error) => return json!({ "error": format!("{FILE}: {error}") }),
    };
    let mut table = Table::new();
    let mut note = |name: &'static str, attempt: Attempt| {
        table.insert(name, attempt.map_or_else(|why| why, |()| "allowed".to_owned()));
    };
    files::attempt(&targets, &mut note);
    processes::attempt(&targets, &mut note);
    network::attempt(&targets, &mut note);
    kernel::attempt(&targets, &mut note);
    json!(table)
}

fn outcome<T>(result: io::Result<T>) -> Attempt {
    result.map(drop).map_err(|error| error.to_string())
}

/// Succeeds if the condition holds.
fn when(condition: bool, otherwise: impl Into<String>) -> Attempt {
    match condition {
        true => Ok(()),
        false => Err(otherwise.into()),
    }
}
