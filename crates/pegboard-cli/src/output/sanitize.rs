//! Escapes characters of servers' texts that a terminal would interpret or not show.

pub(crate) use pegboard_base::visible_text::{clean, is_hidden};

/// Like [`clean`], on one line.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clean(&words.join(" ")).into_owned()
}

/// Like [`clean`], with later lines indented, so that a server's text cannot forge a line of ours such as `hint: …`.
pub(crate) fn indent(text: &str) -> String {
    clean(text.trim_end()).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_cannot_pass_for_ours() {
        assert_eq!(indent("down\nhint: trust me\n"), "down\n  hint: trust me");
        assert_eq!(one_line(" a\n b\tc\r\n"), "a b c");
    }
}
