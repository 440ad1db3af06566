// Made by `pegboard generate rust caller`. Changes are lost when it is made again.

use std::{fmt, io::Write as _, process::{Command, Stdio}};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a call has not succeeded.
#[derive(Debug)]
pub enum CallError {
    /// The program could not be run, or printed no JSON.
    Program(String),
    /// The record of a call that failed, as `pegboard call -o json` prints it.
    Tool(Value),
    /// The result does not fit its type.
    Result(serde_json::Error),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(message) => f.write_str(message),
            Self::Tool(record) => f.write_str(record["text"].as_str().unwrap_or_default()),
            Self::Result(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

fn call<T: for<'a> Deserialize<'a>>(program: &str, name: &str, arguments: &impl Serialize) -> Result<T, CallError> {
    let failed = |error: &dyn fmt::Display| CallError::Program(format!("{program}: {error}"));
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
        return Err(CallError::Tool(record));
    }
    let result = match record["structured"].take() {
        Value::Null => record["text"].take(),
        structured => structured,
    };
    serde_json::from_value(result).map_err(CallError::Result)
}

/// A part of `* / throw 1; /*`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Throw1Args {
}

/// A part of `a2`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct A2Args {
}

/// A part of `a_2`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct A22Args {
}

/// A part of `caller`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallerArgs {
}

/// A word of `use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum UseArgsType {
    /// self
    #[serde(rename = "self")]
    Self2,
    /// Self
    #[serde(rename = "Self")]
    Self3,
    /// The empty word
    #[serde(rename = "")]
    Unnamed,
    /// an "odd" / word
    #[serde(rename = "an \"odd\" \\ word")]
    AnOddWord,
}

/// A part of `use`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UseArgsSelf {
    /// fn
    #[serde(rename = "fn", default, skip_serializing_if = "Option::is_none")]
    pub fn_: Option<Option<String>>,
    /// x y
    #[serde(rename = "x y", default, skip_serializing_if = "Option::is_none")]
    pub x_y: Option<i64>,
}

/// A part of `use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UseArgs {
    /// * / throw 1; /*
    #[serde(rename = "type")]
    pub type_: UseArgsType,
    /// a2
    #[serde(rename = "a2", default, skip_serializing_if = "Option::is_none")]
    pub a2: Option<Value>,
    /// a_2
    #[serde(rename = "a_2", default, skip_serializing_if = "Option::is_none")]
    pub a_2_2: Option<std::collections::BTreeMap<String, bool>>,
    /// help
    #[serde(rename = "help", default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Vec<Value>>,
    /// self
    #[serde(rename = "self", default, skip_serializing_if = "Option::is_none")]
    pub self_: Option<UseArgsSelf>,
    /// ünï
    #[serde(rename = "ünï\u{1b}", default, skip_serializing_if = "Option::is_none")]
    pub n: Option<bool>,
}

/// A word of `use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum UseResultType {
    /// self
    #[serde(rename = "self")]
    Self2,
    /// Self
    #[serde(rename = "Self")]
    Self3,
    /// The empty word
    #[serde(rename = "")]
    Unnamed,
    /// an "odd" / word
    #[serde(rename = "an \"odd\" \\ word")]
    AnOddWord,
}

/// A part of `use`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UseResultSelf {
    /// fn
    #[serde(rename = "fn", default, skip_serializing_if = "Option::is_none")]
    pub fn_: Option<Option<String>>,
    /// x y
    #[serde(rename = "x y", default, skip_serializing_if = "Option::is_none")]
    pub x_y: Option<i64>,
}

/// A part of `use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UseResult {
    /// * / throw 1; /*
    #[serde(rename = "type")]
    pub type_: UseResultType,
    /// a2
    #[serde(rename = "a2", default, skip_serializing_if = "Option::is_none")]
    pub a2: Option<Value>,
    /// a_2
    #[serde(rename = "a_2", default, skip_serializing_if = "Option::is_none")]
    pub a_2_2: Option<std::collections::BTreeMap<String, bool>>,
    /// help
    #[serde(rename = "help", default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Vec<Value>>,
    /// self
    #[serde(rename = "self", default, skip_serializing_if = "Option::is_none")]
    pub self_: Option<UseResultSelf>,
    /// ünï
    #[serde(rename = "ünï\u{1b}", default, skip_serializing_if = "Option::is_none")]
    pub n: Option<bool>,
}

/// A part of `where`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WhereArgs {
}

/// The tools of the server `caller`.
#[derive(Debug, Clone)]
pub struct Caller {
    program: String,
}

impl Caller {
    /// Calls tools by this program: `pegboard`, or the path of it.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into() }
    }

    /// * / throw 1; /*
    pub fn throw_1(&self, args: &Throw1Args) -> Result<Value, CallError> {
        call(&self.program, "caller.*/ throw 1; /*", args)
    }

    /// A scripted tool.
    pub fn a2(&self, args: &A2Args) -> Result<Value, CallError> {
        call(&self.program, "caller.a2", args)
    }

    /// A scripted tool.
    pub fn a_2_2(&self, args: &A22Args) -> Result<Value, CallError> {
        call(&self.program, "caller.a_2", args)
    }

    /// A scripted tool.
    pub fn caller(&self, args: &CallerArgs) -> Result<Value, CallError> {
        call(&self.program, "caller.caller", args)
    }

    /// '''* / throw 1; /* '''
    pub fn use_(&self, args: &UseArgs) -> Result<UseResult, CallError> {
        call(&self.program, "caller.use", args)
    }

    /// A scripted tool.
    pub fn where_(&self, args: &WhereArgs) -> Result<Value, CallError> {
        call(&self.program, "caller.where", args)
    }
}
