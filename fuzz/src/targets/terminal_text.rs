//! Texts of servers that are shown in a terminal, or given to a model.

#[path = "../../../crates/pegboard-cli/src/output/sanitize.rs"]
mod sanitize;

/// No character that a terminal interprets or does not show is left, whichever way the text is shown, and showing it twice changes nothing.
pub fn terminal_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let shown = sanitize::clean(&text).into_owned();
    check(&shown);
    assert_eq!(sanitize::clean(&shown), shown, "shown twice");
    assert!(shown.len() <= text.len() * 10, "it grows without bound");
    let line = sanitize::one_line(&text);
    check(&line);
    assert!(!line.contains('\n'), "more than one line: {line:?}");
    let indented = sanitize::indent(&text);
    check(&indented);
    for later in indented.split('\n').skip(1) {
        assert!(later.starts_with("  "), "a line that passes for ours: {later:?}");
    }
    let visible = pegboard::fuzz::remove_invisible(&text);
    check(&visible);
    assert_eq!(
        sanitize::clean(&visible),
        visible,
        "the terminal hides a character that the model sees"
    );
    // What every terminal shows is left as it is.
    let is_plain = |c: char| matches!(c, ' '..='~' | '\n' | '\t' | 'ä' | '中');
    if text.chars().all(is_plain) {
        assert_eq!((shown.as_str(), visible.as_str()), (&*text, &*text));
    }
}

fn check(shown: &str) {
    if let Some(found) = shown.chars().find(|c| is_dangerous(*c)) {
        panic!("{found:?} is left in {shown:?}");
    }
}

/// Control characters but newline and tab, text direction, zero width, line and paragraph separators, fillers, and tags.
fn is_dangerous(c: char) -> bool {
    matches!(u32::from(c),
        0x00..=0x08 | 0x0b..=0x1f | 0x7f..=0x9f
        | 0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
        | 0x3164 | 0xfeff | 0xffa0 | 0xfff9..=0xfffb
        | 0xfe00..=0xfe0d | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}
