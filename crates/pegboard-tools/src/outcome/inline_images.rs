//! Finds images that a server has embedded in text as base64, where they could cost a hundred thousand tokens and tell a model nothing.

use std::ops::Range;

/// The shortest base64 text that counts as an image.
const SHORTEST: usize = 256;

/// An image in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineImage {
    /// Its position, including the `data:` prefix.
    pub(crate) at: Range<usize>,
    /// The data in base64, unescaped.
    pub data: String,
    /// The image format, detected from the data.
    pub mime_type: &'static str,
}

/// Finds quoted images in a text, in one pass.
pub fn find(text: &str) -> Vec<InlineImage> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
        let open = at + quote + 1;
        let prefix = data_prefix(&text[open..]);
        let start = open + prefix;
        let end = start + base64_len(&bytes[start..]);
        at = end.max(open);
        if end - start >= SHORTEST && bytes.get(end) == Some(&b'"') {
            let data = text[start..end].replace("\\/", "/");
            if let Some(mime_type) = kind_of(&data) {
                found.push(InlineImage {
                    at: open..end,
                    data,
                    mime_type,
                });
                at = end + 1;
            }
        }
    }
    found
}

/// Replaces each image with the text that `stand_in` returns.
pub fn replace(text: &str, found: &[InlineImage], mut stand_in: impl FnMut(usize) -> String) -> String {
    let mut out = String::with_capacity(text.len() - found.iter().map(|image| image.at.len()).sum::<usize>());
    let mut copied = 0;
    for (number, image) in found.iter().enumerate() {
        out.push_str(&text[copied..image.at.start]);
        out.push_str(&stand_in(number));
        copied = image.at.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// The length of a leading `data:image/…;base64,`, or zero.
fn data_prefix(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("data:image") else {
        return 0;
    };
    // Longer than any image media type in use.
    let near = &rest[..rest.floor_char_boundary(100)];
    near.find(";base64,")
        .filter(|end| !near[..*end].contains('"'))
        .map_or(0, |end| "data:image".len() + end + ";base64,".len())
}

/// The length of the leading base64 text. Some JSON writers escape the slash.
fn base64_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=') => at += 1,
            Some(b'\\') if bytes.get(at + 1) == Some(&b'/') => at += 2,
            _ => return at,
        }
    }
}

/// The media type, by the first bytes of the data.
fn kind_of(base64: &str) -> Option<&'static str> {
    [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGODdh", "image/gif"),
        ("R0lGODlh", "image/gif"),
        ("UklGR", "image/webp"),
    ]
    .into_iter()
    .find(|(start, _)| base64.starts_with(start))
    .map(|(_, mime_type)| mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png() -> String {
        format!("iVBORw0KGgo{}=", "A/b+".repeat(100))
    }

    #[test]
    fn a_picture_in_json_is_found_with_its_kind() {
        let text = format!(r#"{{"name": "shot", "data": "{}", "n": 1}}"#, png());
        let found = find(&text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].mime_type, &found[0].data), ("image/png", &png()));
        assert_eq!(
            replace(&text, &found, |_| "[here]".into()),
            r#"{"name": "shot", "data": "[here]", "n": 1}"#
        );
    }

    #[test]
    fn data_urls_and_escaped_slashes_are_understood() {
        let jpeg = format!("/9j/{}", "ab/c".repeat(100));
        let text = format!(r#"["data:image/jpeg;base64,{}","x"]"#, jpeg.replace('/', "\\/"));
        let found = find(&text);
        assert_eq!((found.len(), found[0].mime_type), (1, "image/jpeg"));
        assert_eq!(found[0].data, jpeg);
        assert_eq!(replace(&text, &found, |n| format!("[{n}]")), r#"["[0]","x"]"#);
    }

    #[test]
    fn other_long_texts_are_left_alone() {
        for text in [
            format!(r#"{{"digest": "{}"}}"#, "0123456789abcdef".repeat(40)),
            format!(r#"{{"short": "{}"}}"#, &png()[..200]),
            format!("no quotes {}", png()),
            format!(r#"{{"open": "{}"#, png()),
            format!(r#"{{"words": "iVBORw0KGgo {}"}}"#, "word ".repeat(200)),
            "\"data:image".to_owned(),
            "é\"é".repeat(100),
        ] {
            assert_eq!(find(&text), [], "{text}");
        }
    }
}
