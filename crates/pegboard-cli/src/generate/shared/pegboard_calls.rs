// Made by `pegboard generate rust`. Changes are lost when it is made again.
//! Calls tools with `pegboard call`, for all wrappers beside this module.

use std::{fmt, io::Write as _, process::{Command, Stdio}};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a call has not succeeded.
#[derive(Debug)]
pub enum ToolError {
    /// The program could not be run, or printed no JSON.
    Program(String),
    /// The record of a call that failed, as `pegboard call -o json` prints it.
    Tool(Value),
    /// The result does not fit its type.
    Result(serde_json::Error),
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(message) => f.write_str(message),
            Self::Tool(record) => f.write_str(record["text"].as_str().unwrap_or_default()),
            Self::Result(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ToolError {}

/// Calls a tool by its full name, with the program `pegboard`.
pub fn call_tool<T: for<'a> Deserialize<'a>>(program: &str, name: &str, arguments: &impl Serialize) -> Result<T, ToolError> {
    let failed = |error: &dyn fmt::Display| ToolError::Program(format!("{program}: {error}"));
    let arguments = serde_json::to_vec(arguments).map_err(|error| failed(&error))?;
    let mut child = Command::new(program)
        .args(["call", name, "--json", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&arguments).map_err(|error| failed(&error))?;
    }
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    let mut record: Value = serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))?;
    if record["status"] != "done" || record["is_error"] == true {
        return Err(ToolError::Tool(record));
    }
    let result = match record["structured"].take() {
        Value::Null => record["text"].take(),
        structured => structured,
    };
    serde_json::from_value(result).map_err(ToolError::Result)
}
