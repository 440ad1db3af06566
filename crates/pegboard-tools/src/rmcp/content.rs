//! Converts content blocks from and to rmcp's type.

use ::rmcp::model::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, MetaObject, Resource, ResourceContents,
    TextContent,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::not_convertible::NotConvertible;
use crate::outcome::Content;

/// Nothing is lost.
impl From<ContentBlock> for Content {
    fn from(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text(block) => Self::Text {
                text: block.text,
                rest: rest(block.meta, block.annotations.as_ref()),
            },
            ContentBlock::Image(block) => Self::Image {
                data: block.data,
                mime_type: block.mime_type,
                rest: rest(block.meta, block.annotations.as_ref()),
            },
            ContentBlock::Audio(block) => Self::Audio {
                data: block.data,
                mime_type: block.mime_type,
                rest: rest(block.meta, block.annotations.as_ref()),
            },
            ContentBlock::Resource(block) => Self::Resource {
                resource: contents_fields(block.resource),
                rest: rest(block.meta, block.annotations.as_ref()),
            },
            ContentBlock::ResourceLink(link) => from_link(link),
            other => Self::Other(json(&other)),
        }
    }
}

/// Fails for a block of an unknown type and for a resource without a URI or without contents. A link without a name gets its URI as the name.
/// Lost are annotations that are not as the protocol defines them, and fields that rmcp's types do not have.
impl TryFrom<Content> for ContentBlock {
    type Error = NotConvertible;

    fn try_from(content: Content) -> Result<Self, NotConvertible> {
        match content {
            Content::Text { text, rest } => {
                let mut block = TextContent::new(text);
                (block.meta, block.annotations) = hints(rest);
                Ok(Self::Text(block))
            }
            Content::Image { data, mime_type, rest } => {
                let mut block = ImageContent::new(data, mime_type);
                (block.meta, block.annotations) = hints(rest);
                Ok(Self::Image(block))
            }
            Content::Audio { data, mime_type, rest } => {
                let mut block = AudioContent::new(data, mime_type);
                (block.meta, block.annotations) = hints(rest);
                Ok(Self::Audio(block))
            }
            Content::Resource { resource, rest } => {
                let mut block = EmbeddedResource::new(contents(resource)?);
                (block.meta, block.annotations) = hints(rest);
                Ok(Self::Resource(block))
            }
            Content::Link { uri, rest } => Ok(Self::ResourceLink(to_link(uri, rest))),
            Content::Other(value) => {
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("unknown");
                let problem = "rmcp has no such type, or its fields are not those of the type";
                Err(NotConvertible::new(
                    format!("a content block of type `{kind}`"),
                    problem,
                ))
            }
        }
    }
}

/// A block for rmcp. One that cannot be converted becomes a text that describes it.
pub(super) fn block(content: Content) -> ContentBlock {
    if matches!(content, Content::Other(_)) || is_broken_resource(&content) {
        return ContentBlock::text(content.to_text());
    }
    ContentBlock::try_from(content).unwrap_or_else(|problem| ContentBlock::text(problem.to_string()))
}

fn is_broken_resource(content: &Content) -> bool {
    let Content::Resource { resource, .. } = content else {
        return false;
    };
    let has = |key| resource.get(key).is_some_and(Value::is_string);
    !has("uri") || !(has("text") || has("blob"))
}

/// The fields of a block that are the same for all types.
fn rest(meta: Option<MetaObject>, annotations: Option<&Annotations>) -> Map<String, Value> {
    let mut rest = Map::new();
    put_hints(&mut rest, meta, annotations);
    rest
}

fn put_hints(fields: &mut Map<String, Value>, meta: Option<MetaObject>, annotations: Option<&Annotations>) {
    if let Some(meta) = meta {
        fields.insert("_meta".to_owned(), Value::Object(meta.0));
    }
    if let Some(annotations) = annotations {
        fields.insert("annotations".to_owned(), json(annotations));
    }
}

/// The fields that [`rest`] puts in.
pub(super) fn hints(mut rest: Map<String, Value>) -> (Option<MetaObject>, Option<Annotations>) {
    let meta = match rest.remove("_meta") {
        Some(Value::Object(meta)) => Some(MetaObject(meta)),
        _ => None,
    };
    (meta, parse(rest.remove("annotations")))
}

fn from_link(mut link: Resource) -> Content {
    let (meta, annotations) = (link.meta.take(), link.annotations.take());
    let uri = std::mem::take(&mut link.uri);
    let mut rest = match json(&link) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    rest.remove("uri");
    put_hints(&mut rest, meta, annotations.as_ref());
    Content::Link { uri, rest }
}

fn to_link(uri: String, mut rest: Map<String, Value>) -> Resource {
    let mut text = |key: &str| match rest.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let name = text("name");
    let mut link = Resource::new(uri.clone(), name.unwrap_or(uri));
    link.title = text("title");
    link.description = text("description");
    link.mime_type = text("mimeType");
    link.size = rest.remove("size").and_then(|size| size.as_u64());
    link.icons = parse(rest.remove("icons"));
    (link.meta, link.annotations) = hints(rest);
    link
}

/// The fields of resource contents as the protocol names them.
fn contents_fields(contents: ResourceContents) -> Map<String, Value> {
    let (uri, mime_type, (key, body), meta) = match contents {
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            meta,
        } => (uri, mime_type, ("text", text), meta),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            meta,
        } => (uri, mime_type, ("blob", blob), meta),
        other => {
            return match json(&other) {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
        }
    };
    let mut fields = Map::new();
    fields.insert("uri".to_owned(), uri.into());
    if let Some(mime_type) = mime_type {
        fields.insert("mimeType".to_owned(), mime_type.into());
    }
    fields.insert(key.to_owned(), body.into());
    put_hints(&mut fields, meta, None);
    fields
}

/// Resource contents from their fields as the protocol names them.
fn contents(mut fields: Map<String, Value>) -> Result<ResourceContents, NotConvertible> {
    let mut text = |key: &str| match fields.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let lacks = |what: &str| NotConvertible::new("an embedded resource", format!("it has no {what}"));
    let uri = text("uri").ok_or_else(|| lacks("`uri`"))?;
    let mime_type = text("mimeType");
    let (body, blob) = (text("text"), text("blob"));
    let (meta, _) = hints(fields);
    match (body, blob) {
        (Some(text), _) => Ok(ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            meta,
        }),
        (None, Some(blob)) => Ok(ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            meta,
        }),
        (None, None) => Err(lacks("`text` and no `blob`")),
    }
}

/// A small value as JSON. Through text, because a tree would show the priority 0.8 of annotations, an `f32`, as 0.800000011920929.
pub(super) fn json(value: &impl Serialize) -> Value {
    let text = serde_json::to_string(value).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// An optional field, without one that is not as the protocol defines it.
pub(super) fn parse<T: DeserializeOwned>(value: Option<Value>) -> Option<T> {
    serde_json::from_value(value?).ok()
}
