//! Pretty-prints an output so that it can be read by lines: indents JSON and breaks long lines.

use std::borrow::Cow;

/// A line of more bytes is broken at the next space or comma, and at the latest after twice as many.
const LONG_LINE: usize = 1000;

/// Indents JSON and breaks long lines. Apart from whitespace the text is unchanged.
pub(super) fn pretty_print(text: &str) -> Cow<'_, str> {
    let first = text.trim_start().as_bytes().first();
    let is_json = matches!(first, Some(b'{' | b'[')) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let text = if is_json {
        Cow::Owned(indent(text))
    } else {
        Cow::Borrowed(text)
    };
    if text.split('\n').any(|line| line.len() > LONG_LINE) {
        Cow::Owned(break_lines(&text))
    } else {
        text
    }
}

/// Puts each JSON value on a line of its own. It works on the text, so that numbers and the order of keys are preserved.
fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 5 / 4);
    let mut depth = 0;
    let mut rest = json.trim();
    while let Some(c) = rest.chars().next() {
        let (token, after) = rest.split_at(token_len(rest));
        rest = after.trim_start();
        match c {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                out.push_str(token);
                out.push_str(&rest[..1]);
                rest = rest[1..].trim_start();
            }
            '{' | '[' => {
                depth += 1;
                out.push_str(token);
                new_line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push_str(token);
            }
            ',' => {
                out.push_str(token);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // Bounded: indenting a thousand levels would add a megabyte of spaces.
    out.extend(std::iter::repeat_n(' ', 2 * depth.min(32)));
}

/// The length of the token at the start of valid JSON.
fn token_len(json: &str) -> usize {
    let bytes = json.as_bytes();
    match bytes.first() {
        Some(b'"') => {
            let mut at = 1;
            while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                at += found;
                if bytes[at] == b'"' {
                    return at + 1;
                }
                at = (at + 2).min(bytes.len());
            }
            bytes.len()
        }
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
        _ => json
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | ':' | '}' | ']'))
            .unwrap_or(json.len()),
    }
}

fn break_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / LONG_LINE + 1);
    for (number, mut line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        while line.len() > LONG_LINE {
            let soft = line.floor_char_boundary(LONG_LINE);
            let hard = line.floor_char_boundary(2 * LONG_LINE);
            let end = match line[soft..hard].find([' ', ',', ';', '>']) {
                Some(at) => soft + at + 1,
                None => hard,
            };
            if end == line.len() {
                break;
            }
            out.push_str(&line[..end]);
            out.push('\n');
            line = &line[end..];
        }
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_gets_a_line_for_each_value_and_keeps_its_order_and_numbers() {
        let text = r#" {"z":1.10,"a":[{"k":"x, {y} \" ]"},[],{}],"n":123456789012345678901,"e":null} "#;
        insta::assert_snapshot!(pretty_print(text), @r#"
        {
          "z": 1.10,
          "a": [
            {
              "k": "x, {y} \" ]"
            },
            [],
            {}
          ],
          "n": 123456789012345678901,
          "e": null
        }
        "#);
    }

    #[test]
    fn text_is_left_as_it_is_until_a_line_is_too_long() {
        for text in ["", "a\nb\n", "{not json}", "{\"open\": "] {
            assert_eq!(pretty_print(text), text);
        }
        let words = pretty_print(&"word ".repeat(1000)).into_owned();
        assert!(words.lines().all(|line| line.len() <= LONG_LINE + 5));
        let solid = "é".repeat(5000);
        let laid = pretty_print(&solid);
        assert!(laid.lines().all(|line| line.len() <= 2 * LONG_LINE));
        assert_eq!(laid.replace('\n', ""), solid);
    }

    proptest! {
        #[test]
        fn only_white_space_is_added(words in "[a-zé]{1,9}", count in 0usize..900, separator in "[ ,;>\nx]", end in "[a-z\n]{0,9}") {
            let text = vec![words; count].join(&separator) + &end;
            let strip = |text: &str| text.replace('\n', "");
            prop_assert_eq!(strip(&pretty_print(&text)), strip(&text));
        }

        #[test]
        fn indented_json_means_the_same(keys in proptest::collection::btree_map("\\PC{0,9}", "\\PC{0,9}", 0..9)) {
            let value = serde_json::json!({"list": [keys.clone(), 1, null], "map": keys});
            let read: serde_json::Value = serde_json::from_str(&pretty_print(&value.to_string())).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
