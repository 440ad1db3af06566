//! One tool as its server defines it.

pub(super) mod fast_parse;
pub(super) mod parse;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    argument_order::ArgumentOrder,
    definition_hash::{CachedHash, DefinitionHash},
    other_fields::mask_more,
    removed_text::RemovedText,
    schema::Schema,
};
use crate::args::LazyValidator;
use pegboard_base::{
    label::label,
    name::{self, ServerName},
};
use pegboard_mask::Masker;

/// The `_meta` key in which a server declares how large the results of a tool may be, in characters.
pub const MAX_RESULT_SIZE: &str = "anthropic/maxResultSizeChars";
/// One tool as its server defines it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The server that offers it.
    pub server: ServerName,
    /// The name that its server uses.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, whose root is an object.
    pub input_schema: Schema,
    /// The order in which its server lists the arguments.
    pub(crate) order: ArgumentOrder,
    /// The JSON Schema of its structured result.
    pub output_schema: Option<Schema>,
    /// The server's annotations on its effects. Hints, not promises.
    pub annotations: Option<Map<String, Value>>,
    /// The size of a result in characters that the server declares.
    #[doc(hidden)]
    pub max_result: Option<usize>,
    /// Whether a call of it may, must or must not run as a task.
    pub task_support: TaskSupport,
    /// Arguments mirrored into HTTP headers: the path of properties, and the header's name after `Mcp-Param-`.
    #[doc(hidden)]
    pub mirrored: Vec<(Vec<String>, String)>,
    /// Whether a model may see it. Some tools are only for a server's own UI.
    #[doc(hidden)]
    pub for_model: bool,
    /// All other fields of the definition (icons, `_meta`, …) as JSON. They are part of its hash.
    #[doc(hidden)]
    pub more: Option<Box<str>>,
    /// The invisible characters that were removed from its texts.
    pub(super) removed: Vec<RemovedText>,
    pub(super) hash: CachedHash,
    /// The validators of its input and output schemas, compiled on first use.
    #[doc(hidden)]
    pub checks: Checks,
}

/// The tool's compiled schema validators.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checks {
    pub input: LazyValidator,
    pub output: LazyValidator,
}

/// Whether a tool runs as a task: the server returns a task at once, and the result is fetched later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// If the caller requests it.
    Optional,
    /// Always.
    Required,
}

impl TaskSupport {
    /// The name in definitions of tools.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

label!(TaskSupport, "support of tasks", [Forbidden, Optional, Required]);

impl Tool {
    /// The arguments that its schema mirrors into HTTP headers with `x-mcp-header`: the path of properties of each, and the name of its header
    /// after `Mcp-Param-`.
    pub fn mirrored_arguments(&self) -> &[(Vec<String>, String)] {
        &self.mirrored
    }

    /// The name for people: `server.tool`.
    pub fn dotted_name(&self) -> String {
        name::format_dotted(self.server.as_str(), &self.name)
    }

    /// Why a schema cannot be used for validation. `None` until a call has tried to compile it.
    #[doc(hidden)]
    pub fn unchecked_warning(&self) -> Option<String> {
        let input = self.checks.input.unusable().map(|why| ("arguments", why));
        let output = || Some(("answers", self.checks.output.unusable()?));
        let (what, why) = input.or_else(output)?;
        Some(format!(
            "the {what} of tool `{}` are not checked: its schema cannot be used: {why}",
            self.name
        ))
    }

    /// The hash of its definition, computed once.
    pub fn definition_hash(&self) -> DefinitionHash {
        self.hash
            .get_or_init(|| DefinitionHash::compute_from(|write| self.write_definition(write)))
    }

    /// The definition as JSON with sorted keys. The same definition always has the same text.
    #[doc(hidden)]
    pub fn definition_text(&self) -> String {
        let mut text = String::with_capacity(self.definition_length_hint());
        self.write_definition(&mut |part| text.push_str(part));
        text
    }

    /// About how long the text of the definition is.
    #[doc(hidden)]
    pub fn definition_length_hint(&self) -> usize {
        let schemas = self.input_schema.as_str().len() + self.output_schema.as_ref().map_or(0, |s| s.as_str().len());
        let words = self.description.as_ref().map_or(0, String::len);
        schemas + words + 256
    }

    /// Writes the text of the definition in parts.
    fn write_definition(&self, write: &mut dyn FnMut(&str)) {
        // Schemas are canonical text already; parsing them again would cost most of the time.
        let text = |text: &Option<String>| text.as_ref().map_or(Cow::Borrowed("null"), |text| json(text).into());
        let annotations = self
            .annotations
            .as_ref()
            .map_or(Cow::Borrowed("null"), |annotations| json(annotations).into());
        write("{\"annotations\":");
        write(&annotations);
        write(",\"description\":");
        write(&text(&self.description));
        write(",\"inputSchema\":");
        write(self.input_schema.as_str());
        write(",\"more\":");
        write(self.more.as_deref().unwrap_or("null"));
        write(",\"name\":");
        write(&json(&self.name));
        write(",\"outputSchema\":");
        write(self.output_schema.as_ref().map_or("null", Schema::as_str));
        write(",\"title\":");
        write(&text(&self.title));
        write("}");
    }

    /// Masks secrets in the fields that only the hash and a comparison of definitions use.
    pub(super) fn mask_more(&mut self, masker: &Masker) {
        mask_more(&mut self.more, masker);
    }

    /// Returns whether both tools have the same definition, apart from their names.
    pub(super) fn differs_only_in_name(&self, other: &Self) -> bool {
        self.title == other.title
            && self.description == other.description
            && self.input_schema == other.input_schema
            && self.output_schema == other.output_schema
            && self.annotations == other.annotations
            && self.more == other.more
    }
}

/// A field as JSON.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
