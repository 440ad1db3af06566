//! The catalog of one server: its tools, resources and prompts, as an immutable value. Its listings are parsed item by item, so that an
//! invalid item does not affect the others.

mod argument_order;
mod confusables;
mod definition;
mod definition_hash;
mod removed_text;
mod risk;
pub mod sanitize;
mod schema;
mod tool;

// From listings to a catalog.
mod assemble;
mod config_defined_tools;
mod header_arguments;
mod list_warning;
mod listing_item;
mod mask;
mod other_fields;
mod parse_listings;
pub mod store;

// Derived from a catalog.
pub mod diff;
mod former_names;
mod instructions;
mod scan;
mod tool_shadowing;
mod uri_template;

pub use definition_hash::DefinitionHash;
pub use diff::{CatalogDiff, Changed, Changes};
pub use former_names::FormerNames;
pub use header_arguments::HeaderRule;
pub use instructions::{InstructionFormat, Instructions, ServerWords};
pub use instructions::{Section, ToolText, render};
pub use list_warning::ListWarning;
pub use listing_item::Item;
pub use parse_listings::ListedTools;
pub use risk::{Risk, ToolKind};
pub use scan::scan_text;
pub use scan::{Finding, FindingSeverity};
pub use schema::Schema;
pub use tool::MAX_RESULT_SIZE;
pub use tool::{TaskSupport, Tool};
pub use tool_shadowing::shadows;
pub use uri_template::{TemplateError, UriTemplate};

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use pegboard_base::{name::ServerName, secret::Secret};

/// A snapshot of what one server offers.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Catalog {
    /// Its tools, sorted by name.
    pub tools: Vec<Arc<Tool>>,
    /// Its resources, sorted by URI.
    pub resources: Vec<Resource>,
    /// Its resource templates, sorted by URI template.
    pub templates: Vec<Resource>,
    /// Its prompts, sorted by name.
    pub prompts: Vec<Prompt>,
    /// Problems found in its listings.
    pub warnings: Vec<ListWarning>,
    /// URIs that contain secrets, by the masked form that is shown.
    hidden: BTreeMap<String, Secret>,
}

/// A resource or resource template as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// The server that offers it.
    pub server: ServerName,
    /// Its URI or URI template.
    pub uri: String,
    /// Its name.
    pub name: Option<String>,
    /// The display name.
    pub title: Option<String>,
    /// What it contains.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes, if the server knows it.
    pub size: Option<u64>,
    /// All other fields of the definition as JSON.
    #[serde(skip)]
    pub(crate) more: Option<Box<str>>,
}

/// A prompt as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prompt {
    /// The server that offers it.
    pub server: ServerName,
    /// Its name.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments as the server lists them: `name`, `title`, `description`, `required`.
    pub arguments: Vec<Value>,
    /// All other fields of the definition as JSON.
    #[serde(skip)]
    #[doc(hidden)]
    pub more: Option<Box<str>>,
}

impl Catalog {
    /// Returns whether it has no tools, resources, templates and prompts.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.resources.is_empty() && self.templates.is_empty() && self.prompts.is_empty()
    }

    /// A copy of the catalog under another server's name.
    #[doc(hidden)]
    pub fn under(&self, server: &ServerName) -> Self {
        let mut catalog = self.clone();
        for tool in &mut catalog.tools {
            Arc::make_mut(tool).server = server.clone();
        }
        for resource in catalog.resources.iter_mut().chain(&mut catalog.templates) {
            resource.server = server.clone();
        }
        for prompt in &mut catalog.prompts {
            prompt.server = server.clone();
        }
        catalog
    }

    /// Returns the tool that its server calls `name`.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools
            .binary_search_by(|tool| tool.name.as_str().cmp(name))
            .ok()
            .map(|at| &self.tools[at])
    }
}
