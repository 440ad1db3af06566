//! The file format of a stored catalog.

use std::{sync::Arc, time::Duration};

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::stored::{CacheScope, Freshness, MAX_TTL, Stored};
use crate::catalog::{
    Catalog, Prompt, Resource,
    argument_order::ArgumentOrder,
    definition_hash::CachedHash,
    list_warning::ListWarning,
    removed_text::RemovedText,
    schema::Schema,
    tool::{TaskSupport, Tool},
};
use pegboard_base::name::ServerName;

/// Incremented when the file format changes. Files of other versions are ignored.
const VERSION: u32 = 4;

#[derive(Serialize, Deserialize)]
pub(super) struct CatalogFile {
    version: u32,
    fingerprint: String,
    saved_at: Timestamp,
    ttl_ms: Option<u64>,
    cache_scope: CacheScope,
    tools: Vec<ToolRecord>,
    resources: Vec<ResourceRecord>,
    templates: Vec<ResourceRecord>,
    prompts: Vec<PromptRecord>,
    warnings: Vec<ListWarning>,
}

#[derive(Serialize, Deserialize)]
struct ToolRecord {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Schema,
    #[serde(default)]
    order: ArgumentOrder,
    output_schema: Option<Schema>,
    annotations: Option<Map<String, Value>>,
    mirrored: Vec<(Vec<String>, String)>,
    #[serde(default)]
    task_support: TaskSupport,
    for_model: bool,
    #[serde(default)]
    max_result: Option<usize>,
    #[serde(default)]
    more: Option<Box<str>>,
    #[serde(default)]
    removed: Vec<RemovedText>,
}

#[derive(Serialize, Deserialize)]
struct ResourceRecord {
    uri: String,
    name: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    more: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
struct PromptRecord {
    name: String,
    description: Option<String>,
    arguments: Vec<Value>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    more: Option<Box<str>>,
}

impl CatalogFile {
    pub(super) fn new(fingerprint: &str, stored: &Stored) -> Self {
        let catalog = &stored.catalog;
        let ttl = stored.freshness.ttl.map(|ttl| ttl.min(MAX_TTL));
        Self {
            version: VERSION,
            fingerprint: fingerprint.to_owned(),
            saved_at: stored.saved_at,
            // At most a day, so the cast is lossless.
            ttl_ms: ttl.map(|ttl| ttl.as_millis() as u64),
            cache_scope: stored.freshness.scope,
            tools: catalog.tools.iter().map(|tool| ToolRecord::new(tool)).collect(),
            resources: catalog.resources.iter().map(ResourceRecord::new).collect(),
            templates: catalog.templates.iter().map(ResourceRecord::new).collect(),
            prompts: catalog.prompts.iter().map(PromptRecord::new).collect(),
            warnings: catalog.warnings.clone(),
        }
    }

    /// Returns the catalog, unless the version or the fingerprint differs.
    pub(super) fn into_stored(self, server: &ServerName, fingerprint: &str) -> Option<Stored> {
        if self.version != VERSION || self.fingerprint != fingerprint {
            return None;
        }
        let resources = |records: Vec<ResourceRecord>| records.into_iter().map(|record| record.into_resource(server));
        let mut catalog = Catalog {
            tools: self
                .tools
                .into_iter()
                .map(|record| Arc::new(record.into_tool(server)))
                .collect(),
            resources: resources(self.resources).collect(),
            templates: resources(self.templates).collect(),
            prompts: self
                .prompts
                .into_iter()
                .map(|record| record.into_prompt(server))
                .collect(),
            warnings: self.warnings,
            ..Catalog::default()
        };
        // Tools are found by binary search, and the file may have been edited.
        catalog.tools.sort_by(|a, b| a.name.cmp(&b.name));
        Some(Stored {
            catalog,
            freshness: Freshness {
                ttl: self.ttl_ms.map(|millis| Duration::from_millis(millis).min(MAX_TTL)),
                scope: self.cache_scope,
            },
            saved_at: self.saved_at,
        })
    }
}

impl ToolRecord {
    fn new(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            order: tool.order.clone(),
            output_schema: tool.output_schema.clone(),
            annotations: tool.annotations.clone(),
            mirrored: tool.mirrored.clone(),
            task_support: tool.task_support,
            for_model: tool.for_model,
            max_result: tool.max_result,
            more: tool.more.clone(),
            removed: tool.removed.clone(),
        }
    }

    fn into_tool(self, server: &ServerName) -> Tool {
        Tool {
            server: server.clone(),
            name: self.name,
            title: self.title,
            description: self.description,
            input_schema: self.input_schema,
            order: self.order,
            output_schema: self.output_schema,
            annotations: self.annotations,
            mirrored: self.mirrored,
            task_support: self.task_support,
            checks: Default::default(),
            for_model: self.for_model,
            hash: CachedHash::default(),
            max_result: self.max_result,
            more: self.more,
            removed: self.removed,
        }
    }
}

impl ResourceRecord {
    fn new(resource: &Resource) -> Self {
        Self {
            uri: resource.uri.clone(),
            name: resource.name.clone(),
            description: resource.description.clone(),
            mime_type: resource.mime_type.clone(),
            title: resource.title.clone(),
            size: resource.size,
            more: resource.more.clone(),
        }
    }

    fn into_resource(self, server: &ServerName) -> Resource {
        Resource {
            server: server.clone(),
            uri: self.uri,
            name: self.name,
            description: self.description,
            mime_type: self.mime_type,
            title: self.title,
            size: self.size,
            more: self.more,
        }
    }
}

impl PromptRecord {
    fn new(prompt: &Prompt) -> Self {
        Self {
            name: prompt.name.clone(),
            description: prompt.description.clone(),
            arguments: prompt.arguments.clone(),
            title: prompt.title.clone(),
            more: prompt.more.clone(),
        }
    }

    fn into_prompt(self, server: &ServerName) -> Prompt {
        Prompt {
            server: server.clone(),
            name: self.name,
            description: self.description,
            arguments: self.arguments,
            title: self.title,
            more: self.more,
        }
    }
}
