//! `draw`: a small image, for clients that show images.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::png::{self, Rgb};
use super::tool::{Failure, Output, harmless, text, within};

const MAX_SIDE: u64 = 256;
const WHITE: Rgb = [255, 255, 255];

const COLORS: [(&str, Rgb); 9] = [
    ("black", [0, 0, 0]),
    ("white", WHITE),
    ("gray", [128, 128, 128]),
    ("red", [214, 40, 40]),
    ("orange", [247, 127, 0]),
    ("yellow", [252, 191, 73]),
    ("green", [42, 157, 90]),
    ("blue", [29, 78, 216]),
    ("purple", [124, 58, 190]),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default = "default_color")]
    color: String,
    #[serde(default = "default_side")]
    width: u64,
    #[serde(default = "default_side")]
    height: u64,
    #[serde(default)]
    shape: Shape,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    #[default]
    Rectangle,
    Ellipse,
}

fn default_color() -> String {
    "blue".into()
}

fn default_side() -> u64 {
    64
}

pub(super) fn definition() -> Value {
    let side = |which: &str| {
        json!({
            "type": "integer",
            "description": format!("{which} in pixels"),
            "minimum": 1,
            "maximum": MAX_SIDE,
            "default": default_side(),
        })
    };
    json!({
        "name": "draw",
        "title": "Small picture",
        "description": "Draws a PNG picture of one shape in one colour on white.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "color": {
                    "type": "string",
                    "description": "#rrggbb, or black, white, gray, red, orange, yellow, green, blue or purple",
                    "default": default_color(),
                    "maxLength": 16,
                },
                "width": side("Width"),
                "height": side("Height"),
                "shape": {
                    "type": "string",
                    "description": "What to draw; it fills the picture",
                    "enum": ["rectangle", "ellipse"],
                    "default": "rectangle",
                },
            },
            "additionalProperties": false,
        },
        "annotations": harmless(),
    })
}

pub(super) fn run(arguments: Arguments) -> Result<Output, Failure> {
    let Arguments {
        color,
        width,
        height,
        shape,
    } = arguments;
    let ink =
        ink(&color).ok_or_else(|| Failure(format!("`{color}` is no colour; give #rrggbb or a name such as blue")))?;
    let width = within("width", width, 1, MAX_SIDE)? as u32;
    let height = within("height", height, 1, MAX_SIDE)? as u32;
    let image = png::encode(width, height, &[WHITE, ink], |x, y| match shape {
        Shape::Rectangle => 1,
        Shape::Ellipse => u8::from(in_ellipse(x, y, width, height)),
    });
    let picture = json!({"type": "image", "data": BASE64_STANDARD.encode(image), "mimeType": "image/png"});
    let what = match shape {
        Shape::Rectangle => "rectangle",
        Shape::Ellipse => "ellipse",
    };
    let caption = text(format!("{color} {what}, {width} x {height} pixels"));
    Ok(Output {
        content: vec![picture, caption],
        structured: None,
    })
}

fn ink(color: &str) -> Option<Rgb> {
    if let Some(digits) = color.strip_prefix('#') {
        let plain = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
        let [_, red, green, blue] = value.to_be_bytes();
        return Some([red, green, blue]);
    }
    COLORS
        .into_iter()
        .find_map(|(name, rgb)| (name == color).then_some(rgb))
}

/// Returns `true` if the centre of a pixel is inside the ellipse that fills the image.
fn in_ellipse(x: u32, y: u32, width: u32, height: u32) -> bool {
    let from_centre = |at: u32, side: u32| (2.0 * f64::from(at) + 1.0) / f64::from(side) - 1.0;
    from_centre(x, width).powi(2) + from_centre(y, height).powi(2) <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_by_name_and_by_number() {
        for (color, rgb) in [
            ("#0a0B0c", Some([10, 11, 12])),
            ("red", Some([214, 40, 40])),
            ("#fff", None),
            ("#+12345", None),
            ("mauve", None),
            ("", None),
        ] {
            assert_eq!(ink(color), rgb, "{color}");
        }
    }

    #[test]
    fn the_picture_has_the_size_that_was_asked_for() {
        let arguments = Arguments {
            color: "red".into(),
            width: 256,
            height: 200,
            shape: Shape::Ellipse,
        };
        let output = run(arguments).unwrap();
        let image = BASE64_STANDARD
            .decode(output.content[0]["data"].as_str().unwrap())
            .unwrap();
        assert_eq!(image[16..24], [0, 0, 1, 0, 0, 0, 0, 200]);
        assert_eq!(output.content[1]["text"], "red ellipse, 256 x 200 pixels");
    }

    #[test]
    fn a_picture_too_large_is_refused() {
        for (width, height) in [(0, 1), (1, 0), (257, 1), (1, u64::MAX)] {
            run(Arguments {
                color: "red".into(),
                width,
                height,
                shape: Shape::Rectangle,
            })
            .unwrap_err();
        }
    }
}
