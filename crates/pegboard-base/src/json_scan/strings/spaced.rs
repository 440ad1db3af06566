//! Unescapes a text for searches at about the speed of a copy.

/// How many bytes are unescaped at once.
const CHUNK: usize = 1 << 10;

/// Unescapes a JSON text inside and outside of quotes, and writes a space after each unescaped character, so that the text keeps its length.
/// Returns `None` if it has escapes other than those of quotes, line feeds and tabs: an escaped backslash may begin another escape, and the
/// others are rare.
pub fn unescape_spaced(json: &[u8]) -> Option<Vec<u8>> {
    let (Some(first), Some(last)) = (json.first(), json.last()) else {
        return Some(Vec::new());
    };
    // No JSON text begins or ends with an escape.
    if *first == b'\\' || json.iter().rev().take(2).any(|byte| *byte == b'\\') {
        return None;
    }
    let mut text = Vec::with_capacity(json.len());
    text.push(*first);
    let mut chunk = [0; CHUNK];
    while text.len() + 1 < json.len() {
        let at = text.len();
        let bytes = &json[at..json.len() - 1];
        let mut odd = false;
        // No early exit, so that the compiler vectorises the loop.
        for (((out, byte), before), after) in chunk.iter_mut().zip(bytes).zip(&json[at - 1..]).zip(&json[at + 1..]) {
            let (unescaped, is_odd) = unescape(*before, *byte, *after);
            *out = unescaped;
            odd |= is_odd;
        }
        if odd {
            return None;
        }
        text.extend_from_slice(&chunk[..bytes.len().min(CHUNK)]);
    }
    if json.len() > 1 {
        text.push(*last);
    }
    Some(text)
}

/// What stands for a byte between two others, and whether it begins an escape that is not unescaped here.
#[inline(always)]
fn unescape(before: u8, byte: u8, after: u8) -> (u8, bool) {
    let is_escape = byte == b'\\';
    let (is_line_feed, is_tab) = (after == b'n', after == b't');
    let is_odd = is_escape & !(is_line_feed | is_tab | (after == b'"'));
    let plain = if before == b'\\' { b' ' } else { byte };
    let escaped = if is_line_feed { b'\n' } else { after };
    let escaped = if is_tab { b'\t' } else { escaped };
    (if is_escape { escaped } else { plain }, is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_escapes_are_unescaped_at_every_position() {
        for before in (0..40).chain(CHUNK - 4..CHUNK + 4) {
            let start = "é".repeat(before / 2) + &"a".repeat(before % 2);
            let text = format!(r#"[{start}\"b\n\tc\"\"nt]"#);
            let expected = format!("[{start}\" b\n \t c\" \" nt]");
            assert_eq!(
                unescape_spaced(text.as_bytes()),
                Some(expected.into_bytes()),
                "{before}"
            );
        }
    }

    #[test]
    fn other_escapes_are_left_to_the_general_unescaper() {
        for escape in [r"\\", r"\u0041", r"\/", r"\r", r"\b", r"\f", r"\x"] {
            for before in (0..40).chain(CHUNK - 4..CHUNK + 4) {
                let text = format!("[{}{escape}b]", "a".repeat(before));
                assert_eq!(unescape_spaced(text.as_bytes()), None, "{before} {escape}");
            }
        }
    }
}
