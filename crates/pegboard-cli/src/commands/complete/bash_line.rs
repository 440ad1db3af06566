//! A line of bash up to the cursor. Bash gives a completion the line as it is typed, with its quotes, and inserts what it is given as it is.

/// The words of a line, and what is to be known of the last one to insert a candidate for it.
#[derive(Debug, PartialEq)]
pub(super) struct BashLine {
    /// Without quotes. The last one is being typed.
    pub(super) words: Vec<String>,
    /// The quote that is still open.
    quote: Option<char>,
    /// How many characters of the last word Readline keeps.
    kept: usize,
}

impl BashLine {
    /// Reads a line. `breaks` is bash's `COMP_WORDBREAKS`: Readline replaces only what is after the last of them.
    pub(super) fn read(breaks: &str, line: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        let (mut word, mut is_begun, mut quote, mut kept) = (String::new(), false, None, 0);
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (None, ' ' | '\t' | '\n') => {
                    if is_begun {
                        words.push(std::mem::take(&mut word));
                    }
                    (is_begun, kept) = (false, 0);
                    continue;
                }
                (None, '\'' | '"') => {
                    quote = Some(c);
                    // An open quote is where Readline begins the word, and so is one that was closed.
                    kept = word.chars().count();
                }
                (Some(open), c) if open == c => {
                    quote = None;
                    kept = word.chars().count();
                }
                (None | Some('"'), '\\') => word.extend(chars.next()),
                (_, c) => {
                    if quote.is_none() && breaks.contains(c) {
                        // Readline replaces an `@` with what follows it.
                        kept = word.chars().count() + usize::from(c != '@');
                    }
                    word.push(c);
                }
            }
            is_begun = true;
        }
        words.push(word);
        Self { words, quote, kept }
    }

    /// What bash is to insert for a candidate: the rest of it, quoted, with the space after a word that is complete.
    pub(super) fn text_to_insert(&self, candidate: &str) -> String {
        let rest = candidate.chars().skip(self.kept);
        let mut text = String::new();
        for c in rest {
            match self.quote {
                Some('\'') if c == '\'' => text.push_str("'\\''"),
                Some(_) => text.push(c),
                None => {
                    if needs_quote(c) {
                        text.push('\\');
                    }
                    text.push(c);
                }
            }
        }
        // Readline closes an open quote itself.
        if self.quote.is_none() && !candidate.ends_with(['=', '/']) {
            text.push(' ');
        }
        text
    }
}

fn needs_quote(c: char) -> bool {
    matches!(c, ' ' | '[' | ']' | '\'' | '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inserted(line: &str, candidate: &str) -> (Vec<String>, String) {
        let read = BashLine::read(" \t\n\"'@><=;|&(:", line);
        let text = read.text_to_insert(candidate);
        (read.words, text)
    }

    #[test]
    fn words_lose_their_quotes_and_what_is_inserted_gets_them() {
        for (line, words, candidate, expected) in [
            ("pegboard sta", &["pegboard", "sta"][..], "status", "status "),
            ("pegboard ", &["pegboard", ""], "call", "call "),
            (
                "p call a.b s=in\\ p",
                &["p", "call", "a.b", "s=in p"],
                "s=in prog",
                "in\\ prog ",
            ),
            (
                "p call a.b s=\"in p",
                &["p", "call", "a.b", "s=in p"],
                "s=in prog",
                "in prog",
            ),
            (
                "p call a.b \"s=in p",
                &["p", "call", "a.b", "s=in p"],
                "s=in prog",
                "s=in prog",
            ),
            ("p call 'a b", &["p", "call", "a b"], "a b's", "a b'\\''s"),
            ("p call 'a b' st", &["p", "call", "a b", "st"], "state=", "state="),
            ("p call x s=@fo", &["p", "call", "x", "s=@fo"], "s=@folder/", "@folder/"),
            (
                "p call x s=won",
                &["p", "call", "x", "s=won"],
                "s=won't fix",
                "won\\'t\\ fix ",
            ),
        ] {
            let (read, text) = inserted(line, candidate);
            assert_eq!(read, words, "{line}");
            assert_eq!(text, expected, "{line}");
        }
        assert_eq!(BashLine::read(" ", "p s=o").text_to_insert("s=open"), "s=open ");
    }
}
