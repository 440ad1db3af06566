//! Breaks lines at the width of the terminal.

use unicode_width::UnicodeWidthStr as _;

/// A line broken at spaces; later lines are indented. Words that are too long are kept whole, and so is text in backticks, so that commands can
/// be copied.
pub(crate) fn wrap(line: &str, room: Option<usize>, indent: usize) -> String {
    let Some(room) = room else { return line.to_owned() };
    wrap_after(line, room, room, indent)
}

/// A message on a terminal of this width, behind a prefix that takes the first columns. Lines of its own are kept, and all later lines are indented
/// by two columns more than they are.
pub(crate) fn wrap_message(text: &str, width: Option<usize>, prefix: usize) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut prefix = prefix;
    let lines = text.split('\n').map(|line| {
        let words = line.trim_start_matches(' ');
        let spaces = line.len() - words.len();
        let indent = if spaces == 0 { 2 } else { spaces + 2 };
        let first = width.saturating_sub(std::mem::take(&mut prefix) + spaces);
        let wrapped = wrap_after(words, first, width.saturating_sub(indent), indent);
        format!("{}{wrapped}", " ".repeat(spaces))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line of which the first part has `first` columns, and all others `room` after the indent.
fn wrap_after(line: &str, first: usize, room: usize, indent: usize) -> String {
    let (mut text, mut taken, mut room_left) = (String::new(), 0, first);
    for word in words(line, room) {
        let width = word.width();
        if taken > 0 && taken + 1 + width > room_left {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            (taken, room_left) = (0, room);
        } else if taken > 0 {
            text.push(' ');
            taken += 1;
        }
        text.push_str(word);
        taken += width;
    }
    text
}

/// The words of a line. Text in backticks is one word if a line has room for it.
fn words(line: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let plain = rest.find(' ').unwrap_or(rest.len());
        let end = end_of_quoted(rest, plain)
            .filter(|end| rest[..*end].width() <= room)
            .unwrap_or(plain);
        words.push(&rest[..end]);
        rest = rest[end..].strip_prefix(' ').unwrap_or_default();
    }
    words
}

/// Where a word ends that opens a backtick before `plain`: at the first space after a backtick has closed it.
fn end_of_quoted(rest: &str, plain: usize) -> Option<usize> {
    let mut end = plain;
    while rest[..end].matches('`').count() % 2 == 1 {
        let close = end + rest[end..].find('`')? + 1;
        end = close + rest[close..].find(' ').unwrap_or(rest.len() - close);
    }
    (end > plain).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_backticks_stays_on_one_line() {
        let text = "run `pegboard tools demo` to see them, and `a b` too";
        assert_eq!(
            wrap(text, Some(24), 2),
            "run\n  `pegboard tools demo` to\n  see them, and `a b` too"
        );
        // One that no line has room for is broken like other text.
        assert_eq!(wrap("`one two three four`", Some(9), 0), "`one two\nthree\nfour`");
        assert_eq!(wrap("a lone ` stays", Some(8), 0), "a lone `\nstays");
    }

    #[test]
    fn the_lines_of_a_message_keep_their_indent() {
        let text = "one two three\n  four five six\nseven";
        assert_eq!(
            wrap_message(text, Some(12), 7),
            "one\n  two three\n  four five\n    six\nseven"
        );
        assert_eq!(wrap_message(text, None, 7), text);
        for width in 0..20 {
            assert!(wrap_message(text, Some(width), 7).contains("seven"));
        }
    }
}
