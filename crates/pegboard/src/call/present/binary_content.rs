//! Images, audio and other binary content of a result: finds images inside text, and spills all of it for models that read only text.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    call::result_options::ResultOptions,
    config::{Images, Results},
    outcome::{Answer, Content, inline_images},
    spill::{Form, Output},
};

/// Returns whether the settings leave binary content in place.
pub(super) fn are_kept(results: &Results) -> bool {
    !results.find_images && results.images == Images::Keep
}

/// Finds and spills the binary content of an answer as the settings say.
pub(super) async fn set_apart(
    results: &Results,
    outputs: &ResultOptions,
    answer: &mut Answer,
    warnings: &mut Vec<String>,
) {
    if results.find_images {
        find(answer);
    }
    if results.images == Images::Keep {
        return;
    }
    for block in &mut answer.content {
        let named = block.to_text().into_owned();
        let Some((mime_type, data)) = bytes_of(block) else {
            continue;
        };
        let output = Output {
            form: Form::Bytes { mime_type },
            text: Arc::new(data),
        };
        match outputs.spill.keep(output).await {
            Ok(handle) => {
                let named = named.trim_end_matches(']');
                *block = Content::text(format!("{named}, handle {handle}]"));
            }
            Err(problem) => {
                warnings.push(format!("a block of the result was not put aside: {problem}"));
                *block = Content::text(named);
            }
        }
    }
}

/// Turns images inside text blocks into image blocks.
fn find(answer: &mut Answer) {
    let mut pictures = Vec::new();
    for block in &mut answer.content {
        let Content::Text { text, .. } = block else { continue };
        let found = inline_images::find(text);
        if found.is_empty() {
            continue;
        }
        *text = inline_images::replace(text, &found, |number| {
            let image = &found[number];
            format!("[picture {}, {}]", pictures.len() + number + 1, image.mime_type)
        });
        pictures.extend(found.into_iter().map(|image| Content::Image {
            data: image.data,
            mime_type: image.mime_type.to_owned(),
            rest: Map::new(),
        }));
    }
    answer.content.append(&mut pictures);
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
