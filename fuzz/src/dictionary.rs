//! Dictionaries in libFuzzer's format, so that both drivers use the same files.

/// The tokens of a dictionary: a quoted string on each line, in which `\xNN`, `\\` and `\"` are escapes. Other lines are comments.
pub fn parse(text: &str) -> Vec<Vec<u8>> {
    text.lines().filter_map(|line| token(line.trim())).collect()
}

fn token(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut token = Vec::new();
    while let [first, after @ ..] = rest {
        (token, rest) = match (first, after) {
            (b'\\', [b'x', digits @ ..]) => {
                let (digits, after) = digits.split_at_checked(2)?;
                let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                ([token, vec![byte]].concat(), after)
            }
            (b'\\', [escaped, after @ ..]) => ([token, vec![*escaped]].concat(), after),
            _ => ([token, vec![*first]].concat(), after),
        };
    }
    Some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_comments_are_not() {
        let tokens = parse("# a comment\n\"plain\"\n\"a\\x0ab\\\\c\\\"\"\n\"\\x\"\nname=\"x\"\n");
        assert_eq!(tokens, [b"plain".to_vec(), b"a\nb\\c\"".to_vec()]);
    }
}
