//! Words of a command line, quoted for a shell.

/// A word as a shell would need it.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./@:=+,%${}<>".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        single_quote(word)
    }
}

/// A word in single quotes, in which a POSIX shell expands nothing.
pub(crate) fn single_quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
