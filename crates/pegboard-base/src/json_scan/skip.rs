//! Skips JSON values and checks their syntax, without building or copying anything.

use super::{MAX_DEPTH, Scan, strings};

impl Scan<'_> {
    /// Skips a value at nesting depth `depth` and checks its syntax, but not that its strings are UTF-8. Fails beyond serde_json's nesting limit.
    pub fn skip_checked(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' | b'[' if depth >= MAX_DEPTH => None,
            b'{' => {
                self.at += 1;
                if self.eat(b'}') {
                    return Some(());
                }
                loop {
                    self.peek();
                    self.skip_string()?;
                    if !self.eat(b':') {
                        return None;
                    }
                    self.skip_checked(depth + 1)?;
                    if !self.eat(b',') {
                        return self.eat(b'}').then_some(());
                    }
                }
            }
            b'[' => {
                self.at += 1;
                if self.eat(b']') {
                    return Some(());
                }
                loop {
                    self.skip_checked(depth + 1)?;
                    if !self.eat(b',') {
                        return self.eat(b']').then_some(());
                    }
                }
            }
            b'"' => self.skip_string().map(|_| ()),
            b't' => self.skip_word(b"true"),
            b'f' => self.skip_word(b"false"),
            b'n' => self.skip_word(b"null"),
            _ => self.skip_number(),
        }
    }

    fn skip_string(&mut self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?.strip_prefix(b"\"")?;
        let (read, len) = strings::skip(rest)?;
        self.at += 1 + read;
        Some(len)
    }

    /// Skips a string and returns the length of the text that it stands for. Other values are skipped too, and have no length.
    pub fn skip_text(&mut self, depth: usize) -> Option<usize> {
        if self.peek()? == b'"' {
            return self.skip_string();
        }
        self.skip_checked(depth).map(|()| 0)
    }

    fn skip_word(&mut self, word: &[u8]) -> Option<()> {
        let is_next = self.bytes.get(self.at..)?.starts_with(word);
        self.at += word.len();
        is_next.then_some(())
    }

    fn skip_number(&mut self) -> Option<()> {
        self.skip_byte(b"-");
        let start = self.at;
        let digits = self.skip_digits()?;
        if digits > 1 && self.bytes[start] == b'0' {
            return None;
        }
        if self.skip_byte(b".") {
            self.skip_digits()?;
        }
        if self.skip_byte(b"eE") {
            self.skip_byte(b"+-");
            self.skip_digits()?;
        }
        Some(())
    }

    /// Skips at least one digit, and returns how many there were.
    fn skip_digits(&mut self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        (digits > 0).then_some(digits)
    }

    /// Skips the next byte if it is one of these.
    fn skip_byte(&mut self, bytes: &[u8]) -> bool {
        let is_one = self.bytes.get(self.at).is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(is_one);
        is_one
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    /// Returns whether the whole text is skipped as one value.
    fn is_skipped(text: &str) -> bool {
        let mut scan = Scan::new(text.as_bytes());
        scan.skip_checked(0).is_some() && scan.is_at_end()
    }

    #[test]
    fn what_serde_json_accepts_is_skipped_and_nothing_else() {
        for text in [
            "{}",
            "[]",
            "null",
            "true",
            "false",
            "0",
            "-0",
            "12",
            "-1.5e+10",
            "1E5",
            "0.25",
            r#""""#,
            r#" { "a" : [ 1 , { "b" : "c\"d\\" } , [ ] ] , "e" : { } } "#,
            r#""\b\f\n\r\t\/\\\"\u00e9\ud83d\ude00""#,
            "\"a text that is longer than one word, with é and 😀 in it\"",
            "[1,2,3,\"x\"]",
            // Malformed.
            "",
            "{",
            "}",
            "[",
            "[1,]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "{1:2}",
            "nul",
            "t rue",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "\"open",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"a\nb\"",
            "\"\u{1}\"",
            "[1 2]",
            "{} {}",
            "\"a long text before the control character\u{1f} in it\"",
        ] {
            assert_eq!(
                is_skipped(text),
                serde_json::from_str::<IgnoredAny>(text).is_ok(),
                "{text}"
            );
        }
        for depth in [126, 127, 128, 200_000] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(
                is_skipped(&text),
                serde_json::from_str::<serde_json::Value>(&text).is_ok(),
                "{depth}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn a_skipped_text_has_the_length_that_it_stands_for(text in ".{0,40}", is_ascii in proptest::bool::ANY) {
            let mut json = serde_json::Value::from(text.as_str()).to_string();
            if is_ascii {
                let escaped = |c: char| match c.is_ascii() {
                    true => c.to_string(),
                    false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
                };
                json = json.chars().map(escaped).collect();
            }
            proptest::prop_assert_eq!(Scan::new(json.as_bytes()).skip_text(0), Some(text.len()));
        }

        #[test]
        fn any_text_is_skipped_as_serde_json_does(text in r#"[\[\]{}",:\\ntu0-9eE.\- \n\x01é]{0,24}"#) {
            proptest::prop_assert_eq!(is_skipped(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }
    }
}
