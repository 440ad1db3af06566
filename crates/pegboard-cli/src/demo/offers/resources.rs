//! Resources: two fixed ones and a template.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pegboard_gateway::{RpcError, Version};
use pegboard_protocol::code;
use serde_json::{Map, Value, json};

use super::require_text;
use crate::demo::fields::object;
use crate::demo::tools::png;

const ABOUT: &str = "# Pegboard demo server\n\n\
    This server is built into the `pegboard` command. It has a clock, a calculator, a folder search and a few tools \
    for trying out a client: `echo`, `draw`, `count_slowly` and `fail`.\n\n\
    Nothing it does changes anything on this machine.\n";

pub(super) const COUNT_TEMPLATE: &str = "demo://count/{n}";
const COUNT_PREFIX: &str = "demo://count/";

/// The largest `n` of `demo://count/{n}`.
pub(super) const MAX_COUNT: u32 = 100;

pub(in crate::demo) fn list() -> Vec<Value> {
    vec![
        json!({
            "uri": "demo://about",
            "name": "about",
            "title": "About this server",
            "description": "What this server is and what it offers",
            "mimeType": "text/markdown",
            "size": ABOUT.len(),
        }),
        json!({
            "uri": "demo://logo.png",
            "name": "logo.png",
            "title": "Logo",
            "description": "A pegboard with one peg, 32 x 32 pixels",
            "mimeType": "image/png",
            "size": logo().len(),
        }),
    ]
}

pub(in crate::demo) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": COUNT_TEMPLATE,
        "name": "count",
        "title": "Numbers up to n",
        "description": format!("The numbers from 1 to n, one a line; n is 1 to {MAX_COUNT}"),
        "mimeType": "text/plain",
    })]
}

pub(in crate::demo) fn read(params: &Map<String, Value>, version: Version) -> Result<Map<String, Value>, RpcError> {
    let uri = require_text(params, "uri")?;
    let content = match uri {
        "demo://about" => json!({"uri": uri, "mimeType": "text/markdown", "text": ABOUT}),
        "demo://logo.png" => json!({"uri": uri, "mimeType": "image/png", "blob": BASE64_STANDARD.encode(logo())}),
        _ => match uri.strip_prefix(COUNT_PREFIX).and_then(count) {
            Some(numbers) => json!({"uri": uri, "mimeType": "text/plain", "text": numbers}),
            None => return Err(not_found(uri, version)),
        },
    };
    Ok(object([("contents", json!([content]))]))
}

fn not_found(uri: &str, version: Version) -> RpcError {
    let code = if version.is_modern() {
        code::INVALID_PARAMS
    } else {
        code::RESOURCE_NOT_FOUND
    };
    RpcError::new(code, format!("resource `{uri}` not found")).data(json!({"uri": uri}))
}

fn count(n: &str) -> Option<String> {
    // Only the canonical spelling, so that each resource has one URI.
    let last: u32 = n.parse().ok().filter(|last| (1..=MAX_COUNT).contains(last))?;
    (last.to_string() == n).then(|| (1..=last).map(|number| format!("{number}\n")).collect())
}

/// An image of a board of holes with one peg in it.
fn logo() -> Vec<u8> {
    const BOARD: u8 = 0;
    const HOLE: u8 = 1;
    const PEG: u8 = 2;
    let palette = [[222, 184, 135], [120, 84, 50], [214, 40, 40]];
    png::encode(32, 32, &palette, |x, y| {
        let off_centre = |at: u32| (at % 8).abs_diff(4);
        let is_dot = off_centre(x) + off_centre(y) <= 2;
        match (is_dot, x / 8, y / 8) {
            (true, 2, 1) => PEG,
            (true, ..) => HOLE,
            _ => BOARD,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_uri(uri: &str, version: Version) -> Result<Map<String, Value>, RpcError> {
        read(&object([("uri", json!(uri))]), version)
    }

    #[test]
    fn everything_listed_can_be_read_at_its_stated_size() {
        for resource in list() {
            let uri = resource["uri"].as_str().unwrap();
            let content = &read_uri(uri, Version::V2025_11_25).unwrap()["contents"][0];
            assert_eq!(
                (&content["uri"], &content["mimeType"]),
                (&resource["uri"], &resource["mimeType"])
            );
            let size = match content["blob"].as_str() {
                Some(blob) => BASE64_STANDARD.decode(blob).unwrap().len(),
                None => content["text"].as_str().unwrap().len(),
            };
            assert_eq!(json!(size), resource["size"], "{uri}");
        }
    }

    #[test]
    fn the_template_counts_within_its_bounds() {
        let contents = &read_uri("demo://count/3", Version::V2026_07_28).unwrap()["contents"];
        assert_eq!(contents[0]["text"], "1\n2\n3\n");
        for n in ["0", "101", "-1", "03", "+3", "x", "", "3/4", "{n}"] {
            let uri = format!("demo://count/{n}");
            assert_eq!(read_uri(&uri, Version::V2025_11_25).unwrap_err().code, -32002, "{uri}");
            assert_eq!(read_uri(&uri, Version::V2026_07_28).unwrap_err().code, -32602, "{uri}");
        }
    }
}
