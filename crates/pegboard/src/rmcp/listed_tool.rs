//! Converts a listed tool to rmcp's type.

use std::borrow::Cow;

use ::rmcp::model;

use crate::toolset::ListedTool;

/// The tool under the name that models see. What is lost is listed at the conversion of [`Tool`](crate::Tool).
impl From<&ListedTool> for model::Tool {
    fn from(listed: &ListedTool) -> Self {
        let mut converted = Self::from(&*listed.tool);
        converted.name = Cow::Owned(listed.name.clone());
        converted
    }
}
