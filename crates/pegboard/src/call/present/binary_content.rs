//! Handles images, audio and other binary content of a result: finds images inside text, and spills binary content for models that read
//! only text.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    call::result_options::ResultOptions,
    spill::{Output, OutputFormat},
};
use pegboard_config::{Images, Results};
use pegboard_tools::outcome::{Answer, Content, inline_images};

/// Returns whether the settings leave binary content in place.
pub(super) fn stays(results: &Results) -> bool {
    !results.find_images && results.images == Images::Keep
}

/// Finds and spills the binary content of an answer, according to the settings.
pub(super) async fn spill(results: &Results, options: &ResultOptions, answer: &mut Answer, warnings: &mut Vec<String>) {
    if results.find_images {
        extract_images(answer);
    }
    if results.images == Images::Keep {
        return;
    }
    for block in &mut answer.content {
        let description = block.to_text().into_owned();
        let Some((mime_type, data)) = bytes_of(block) else {
            continue;
        };
        let output = Output {
            format: OutputFormat::Bytes { mime_type },
            text: Arc::new(data),
        };
        match options.spill.keep(output).await {
            Ok(handle) => {
                let description = description.trim_end_matches(']');
                *block = Content::text(format!("{description}, handle {handle}]"));
            }
            Err(problem) => {
                warnings.push(format!("a block of the result was not put aside: {problem}"));
                *block = Content::text(description);
            }
        }
    }
}

/// Turns images inside text blocks into image blocks.
fn extract_images(answer: &mut Answer) {
    let mut images = Vec::new();
    for block in &mut answer.content {
        let Content::Text { text, .. } = block else { continue };
        let found = inline_images::find(text);
        if found.is_empty() {
            continue;
        }
        *text = inline_images::replace(text, &found, |number| {
            let image = &found[number];
            format!("[picture {}, {}]", images.len() + number + 1, image.mime_type)
        });
        images.extend(found.into_iter().map(|image| Content::Image {
            data: image.data,
            mime_type: image.mime_type.to_owned(),
            rest: Map::new(),
        }));
    }
    answer.content.append(&mut images);
}

/// Takes the media type and the data out of a binary block.
fn bytes_of(block: &mut Content) -> Option<(String, String)> {
    match block {
        Content::Image { data, mime_type, .. } | Content::Audio { data, mime_type, .. } => {
            Some((mime_type.clone(), std::mem::take(data)))
        }
        Content::Resource { resource, .. } if !resource.contains_key("text") => match resource.remove("blob") {
            Some(Value::String(data)) => {
                let mime_type = resource.get("mimeType").and_then(Value::as_str);
                Some((mime_type.unwrap_or("application/octet-stream").to_owned(), data))
            }
            _ => None,
        },
        Content::Text { .. } | Content::Resource { .. } | Content::Link { .. } | Content::Other(_) => None,
    }
}
