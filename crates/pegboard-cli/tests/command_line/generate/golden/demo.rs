// Made by `pegboard generate rust demo`. Changes are lost when it is made again.
#![allow(dead_code, unused_imports)]

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pegboard_calls::call_tool;
pub use super::pegboard_calls::ToolError;

/// A part of `calculate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalculateArgs {
    /// For example (2 + 3) * 4 or sqrt(2) ^ 2
    #[serde(rename = "expression")]
    pub expression: String,
}

/// A part of `calculate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalculateResult {
    /// The value of the expression
    #[serde(rename = "value")]
    pub value: f64,
}

/// A part of `count_slowly`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CountSlowlyArgs {
    /// The pause before each step, in milliseconds
    #[serde(rename = "delay_ms", default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<i64>,
    /// How many steps to count
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub n: Option<i64>,
}

/// A word of `draw`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DrawArgsShape {
    /// rectangle
    #[serde(rename = "rectangle")]
    Rectangle,
    /// ellipse
    #[serde(rename = "ellipse")]
    Ellipse,
}

/// A part of `draw`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DrawArgs {
    /// #rrggbb, or black, white, gray, red, orange, yellow, green, blue or purple
    #[serde(rename = "color", default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Height in pixels
    #[serde(rename = "height", default, skip_serializing_if = "Option::is_none")]
    pub height: Option<i64>,
    /// What to draw; it fills the picture
    #[serde(rename = "shape", default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<DrawArgsShape>,
    /// Width in pixels
    #[serde(rename = "width", default, skip_serializing_if = "Option::is_none")]
    pub width: Option<i64>,
}

/// A part of `echo`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EchoArgs {
    /// Any JSON value
    #[serde(rename = "json", default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Any text
    #[serde(rename = "text", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A part of `echo`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EchoResult {
    /// The JSON value that was given
    #[serde(rename = "json", default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The text that was given
    #[serde(rename = "text", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A part of `fail`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FailArgs {
    /// What the failure says
    #[serde(rename = "message", default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A part of `now`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NowArgs {
    /// An IANA name such as Europe/Berlin, an offset such as +05:30, or UTC
    #[serde(rename = "timezone", default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// A part of `now`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NowResult {
    /// RFC 3339 with milliseconds and the zone's offset
    #[serde(rename = "iso")]
    pub iso: String,
    /// The zone that `iso` is written in
    #[serde(rename = "timezone")]
    pub timezone: String,
    /// Milliseconds since 1970-01-01T00:00:00Z
    #[serde(rename = "unix_ms")]
    pub unix_ms: i64,
}

/// A part of `search_text`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchTextArgs {
    /// The text to look for, within one line
    #[serde(rename = "query")]
    pub query: String,
    /// Whether upper and lower case are the same
    #[serde(rename = "ignore_case", default, skip_serializing_if = "Option::is_none")]
    pub ignore_case: Option<bool>,
    /// Stop after this many matching lines
    #[serde(rename = "max_matches", default, skip_serializing_if = "Option::is_none")]
    pub max_matches: Option<i64>,
}

/// The tools of the server `demo`.
#[derive(Debug, Clone)]
pub struct Demo {
    program: String,
}

impl Demo {
    /// Calls tools by this program: `pegboard`, or the path of it.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into() }
    }

    /// Works out an arithmetic expression: + - * / % ^, parentheses, unary minus, and the functions sqrt(x), abs(x), round(x), min(a, b, …) and max(a, b, …). Numbers are doubles. ^ binds tightest and to the right, so -2^2 is -4; % is the remainder and has the sign of its left side.
    pub fn calculate(&self, args: &CalculateArgs) -> Result<CalculateResult, ToolError> {
        call_tool(&self.program, "demo.calculate", args)
    }

    /// Counts from 1 to n with a pause before each step. Reports progress after every step if the caller asked for progress, and stops at once when it is cancelled. Use it to try out slow calls.
    pub fn count_slowly(&self, args: &CountSlowlyArgs) -> Result<Value, ToolError> {
        call_tool(&self.program, "demo.count_slowly", args)
    }

    /// Draws a PNG picture of one shape in one colour on white.
    pub fn draw(&self, args: &DrawArgs) -> Result<Value, ToolError> {
        call_tool(&self.program, "demo.draw", args)
    }

    /// Gives back the text and the JSON value it is given, unchanged. At least one of the two is needed.
    pub fn echo(&self, args: &EchoArgs) -> Result<EchoResult, ToolError> {
        call_tool(&self.program, "demo.echo", args)
    }

    /// Always fails, with the message it is given. Use it to see how a failed call is shown.
    pub fn fail(&self, args: &FailArgs) -> Result<Value, ToolError> {
        call_tool(&self.program, "demo.fail", args)
    }

    /// Tells the current date and time, in UTC or in a time zone of your choice. Use it whenever the answer depends on today's date.
    pub fn now(&self, args: &NowArgs) -> Result<NowResult, ToolError> {
        call_tool(&self.program, "demo.now", args)
    }

    /// Finds the lines that contain a piece of text in the files of the server's folder and its subfolders. The text is taken literally, not as a pattern. Gives `path:line: text` for each matching line. Skips hidden files, symbolic links, node_modules, target, binary files and files over 1 MiB.
    pub fn search_text(&self, args: &SearchTextArgs) -> Result<Value, ToolError> {
        call_tool(&self.program, "demo.search_text", args)
    }
}
