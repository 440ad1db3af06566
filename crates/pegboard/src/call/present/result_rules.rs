//! The settings under which one result is presented.

use std::borrow::Cow;

use crate::call::result_options::ResultOptions;
use pegboard_base::{caller::Caller, deadline::Deadline, name::format_dotted};
use pegboard_config::{Results, Summarise};

/// The settings for one result.
pub(super) struct ResultRules<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    /// The name of the tool that the reader of the result knows. Otherwise it is `server.tool`.
    pub(super) listed: Option<&'a str>,
    /// The conversation that led to the call.
    pub(super) context: Option<&'a str>,
    pub(super) caller: Caller<'a>,
    pub(super) results: Results,
    /// The result size that the server declares for the tool.
    pub(super) hint: Option<usize>,
    pub(super) summarise: Option<&'a Summarise>,
    pub(super) options: &'a ResultOptions,
    /// The deadline of the call.
    pub(super) deadline: Deadline,
}

impl ResultRules<'_> {
    /// The name of the tool in texts.
    pub(super) fn tool_name(&self) -> Cow<'_, str> {
        match self.listed {
            Some(listed) => Cow::Borrowed(listed),
            None => Cow::Owned(format_dotted(self.server, self.tool)),
        }
    }
}
