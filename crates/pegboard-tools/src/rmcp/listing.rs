//! Converts resources, prompts and completions to rmcp's types.

use ::rmcp::model::{
    CompletionInfo, GetPromptResult, MetaObject, Prompt as RmcpPrompt, PromptMessage as RmcpMessage,
    Resource as RmcpResource, ResourceContents as RmcpContents, ResourceTemplate, Role as RmcpRole,
};
use serde_json::Value;

use super::content::{block, parse};
use crate::{
    catalog::{Prompt, Resource},
    outcome::{Body, Completion, FilledPrompt, PromptMessage, ResourceContents, Role},
};

/// A resource without a name gets its URI as the name. The server's name is lost.
impl From<Resource> for RmcpResource {
    fn from(resource: Resource) -> Self {
        let name = resource.name.unwrap_or_else(|| resource.uri.clone());
        let mut converted = Self::new(resource.uri, name);
        converted.title = resource.title;
        converted.description = resource.description;
        converted.mime_type = resource.mime_type;
        converted.size = resource.size;
        converted
    }
}

/// A template without a name gets its URI template as the name. The server's name is lost.
impl From<Resource> for ResourceTemplate {
    fn from(template: Resource) -> Self {
        let name = template.name.unwrap_or_else(|| template.uri.clone());
        let mut converted = Self::new(template.uri, name);
        converted.title = template.title;
        converted.description = template.description;
        converted.mime_type = template.mime_type;
        converted
    }
}

/// The prompt under its server's name for it. The server's name, and arguments that are not as the protocol defines them, are lost.
impl From<Prompt> for RmcpPrompt {
    fn from(prompt: Prompt) -> Self {
        let arguments: Vec<_> = prompt
            .arguments
            .into_iter()
            .filter_map(|one| parse(Some(one)))
            .collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        let mut converted = Self::new(prompt.name, prompt.description, arguments);
        converted.title = prompt.title;
        converted
    }
}

/// Of the other fields only `_meta` is kept.
impl From<ResourceContents> for RmcpContents {
    fn from(mut contents: ResourceContents) -> Self {
        let meta = match contents.rest.remove("_meta") {
            Some(Value::Object(meta)) => Some(MetaObject(meta)),
            _ => None,
        };
        let (uri, mime_type) = (contents.uri, contents.mime_type);
        match contents.body {
            Body::Text(text) => Self::TextResourceContents {
                uri,
                mime_type,
                text,
                meta,
            },
            Body::Blob(blob) => Self::BlobResourceContents {
                uri,
                mime_type,
                blob,
                meta,
            },
        }
    }
}

/// A content block that rmcp has no type for becomes a text that describes it.
impl From<FilledPrompt> for GetPromptResult {
    fn from(prompt: FilledPrompt) -> Self {
        let mut converted = Self::new(prompt.messages.into_iter().map(Into::into).collect());
        converted.description = prompt.description;
        converted
    }
}

/// A content block that rmcp has no type for becomes a text that describes it.
impl From<PromptMessage> for RmcpMessage {
    fn from(message: PromptMessage) -> Self {
        let role = match message.role {
            Role::User => RmcpRole::User,
            Role::Assistant => RmcpRole::Assistant,
        };
        Self::new(role, block(message.content))
    }
}

/// A total above `u32::MAX` is lost, and so are values after the hundredth, the most that the protocol allows.
impl From<Completion> for CompletionInfo {
    fn from(mut completion: Completion) -> Self {
        let is_cut = completion.values.len() > Self::MAX_VALUES;
        completion.values.truncate(Self::MAX_VALUES);
        let mut converted = Self::default();
        converted.values = completion.values;
        converted.total = completion.total.and_then(|total| u32::try_from(total).ok());
        converted.has_more = if is_cut { Some(true) } else { completion.has_more };
        converted
    }
}
