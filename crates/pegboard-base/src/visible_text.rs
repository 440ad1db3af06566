//! Escapes characters of servers' texts that a terminal would interpret, or that a person does not see.

use std::borrow::Cow;

/// Escapes characters for which [`is_hidden`] returns `true` as `\u{…}`, and turns CR LF into LF.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // A CR LF line ending, not a carriage return that overwrites the line.
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown.into()
}

/// Returns `true` if a terminal interprets `c` or shows nothing for it. Newlines and tabs are exempt.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // C0, DEL and C1.
        c if c.is_control() => true,
        // Bidirectional formatting.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Zero-width characters and blank letters.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' => true,
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => true,
        // Variation selectors, except the two that choose between text and emoji.
        '\u{fe00}'..='\u{fe0d}' => true,
        // Musical marks.
        '\u{1d173}'..='\u{1d17a}' => true,
        // Tags, further variation selectors and the rest of their invisible block.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_made_visible() {
        for (text, want) in [
            ("plain ünïcödé 日本 ❤️\n\ttext", "plain ünïcödé 日本 ❤️\n\ttext"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\x1b]52;c;aGk=\x07", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("\x1b]8;;http://x\x1b\\y", "\\u{1b}]8;;http://x\\u{1b}\\y"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("good\rbad", "good\\u{d}bad"),
            ("dos\r\nlines\r\n", "dos\nlines\n"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{7f}", "a\\u{200b}b\\u{7f}"),
            ("a\u{e0041}", "a\\u{e0041}"),
            ("a\u{1d173}", "a\\u{1d173}"),
            ("\0", "\\u{0}"),
        ] {
            assert_eq!(clean(text), want);
        }
    }

    #[test]
    fn nothing_hidden_is_left_of_any_character() {
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            let shown = clean(&text);
            assert!(!shown.chars().any(is_hidden), "{c:?}");
            if c.is_control() && !matches!(c, '\n' | '\t') {
                assert!(shown.is_ascii() && shown.len() > 1, "{c:?}");
            }
        }
    }
}
