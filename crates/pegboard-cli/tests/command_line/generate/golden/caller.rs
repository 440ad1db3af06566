// Made by `pegboard generate rust caller`. Changes are lost when it is made again.
#![allow(dead_code, unused_imports)]

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pegboard_calls::call_tool;
pub use super::pegboard_calls::ToolError;

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
    pub fn throw_1(&self, args: &Throw1Args) -> Result<Value, ToolError> {
        call_tool(&self.program, "caller.*/ throw 1; /*", args)
    }

    /// A scripted tool.
    pub fn a2(&self, args: &A2Args) -> Result<Value, ToolError> {
        call_tool(&self.program, "caller.a2", args)
    }

    /// A scripted tool.
    pub fn a_2_2(&self, args: &A22Args) -> Result<Value, ToolError> {
        call_tool(&self.program, "caller.a_2", args)
    }

    /// A scripted tool.
    pub fn caller(&self, args: &CallerArgs) -> Result<Value, ToolError> {
        call_tool(&self.program, "caller.caller", args)
    }

    /// '''* / throw 1; /* '''
    pub fn use_(&self, args: &UseArgs) -> Result<UseResult, ToolError> {
        call_tool(&self.program, "caller.use", args)
    }

    /// A scripted tool.
    pub fn where_(&self, args: &WhereArgs) -> Result<Value, ToolError> {
        call_tool(&self.program, "caller.where", args)
    }
}
