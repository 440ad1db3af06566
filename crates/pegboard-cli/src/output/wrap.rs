//! Breaks lines at the width of the terminal.

use unicode_width::UnicodeWidthStr as _;

/// A line broken at spaces; later lines are indented. Words that are too long are kept whole, so that commands can be copied.
pub(crate) fn wrap(line: &str, room: Option<usize>, indent: usize) -> String {
    let Some(room) = room else { return line.to_owned() };
    let (mut text, mut taken) = (String::new(), 0);
    for word in line.split(' ') {
        let width = word.width();
        if taken > 0 && taken + 1 + width > room {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            taken = 0;
        } else if taken > 0 {
            text.push(' ');
            taken += 1;
        }
        text.push_str(word);
        taken += width;
    }
    text
}
