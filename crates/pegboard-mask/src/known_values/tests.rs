//! In which forms a value is found.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

use super::*;

fn hides(value: &str, text: &str) -> bool {
    !KnownValues::new([Secret::new(value)]).find(text).unwrap().is_empty()
}

#[test]
fn a_value_is_found_in_every_form() {
    let value = "p@ss \"wörd\"/1";
    for text in [
        value.to_owned(),
        serde_json::to_string(&format!("x{value}")).unwrap(),
        "p%40ss%20%22w%C3%B6rd%22%2F1".to_owned(),
        "p%40ss+%22w%C3%B6rd%22%2F1".to_owned(),
        "p%40ss%20%22w%c3%b6rd%22%2f1".to_owned(),
        "70407373202277c3b67264222f31".to_owned(),
        "p@ss \\\"w\\u00f6rd\\\"/1".to_owned(),
        "p@ss \\\"wörd\\\"\\/1".to_owned(),
        "p@ss &quot;wörd&quot;/1".to_owned(),
    ] {
        assert!(hides(value, &text), "{text}");
    }
    for before in ["", "u", "me", "you", "user:"] {
        for after in ["", "a", "bc", "def"] {
            let text = format!("{before}{value}{after}");
            assert!(hides(value, &STANDARD.encode(&text)), "{text}");
            assert!(hides(value, &URL_SAFE_NO_PAD.encode(&text)), "{text}");
        }
    }
}

/// Writes each byte of a value with something before and after it.
fn each(value: &str, write: impl Fn(u8) -> String) -> String {
    value.bytes().map(write).collect()
}

/// A value in lines of `width` characters.
fn lines(value: &str, width: usize, separator: &str) -> String {
    let lines: Vec<&str> = value
        .as_bytes()
        .chunks(width)
        .map(|line| str::from_utf8(line).unwrap())
        .collect();
    lines.join(separator)
}

/// A hex dump as `hexdump -C` and `xxd` print it.
fn dumps(bytes: &[u8]) -> [String; 2] {
    let text = |line: &[u8]| each(&String::from_utf8_lossy(line), |b| char::from(b).to_string());
    let rows = || bytes.chunks(16).enumerate();
    let canonical = rows().map(|(row, line)| {
        let hex: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        let (left, right) = hex.split_at(hex.len().min(8));
        format!(
            "{:08x}  {:23}  {:23}  |{}|\n",
            row * 16,
            left.join(" "),
            right.join(" "),
            text(line)
        )
    });
    let xxd = rows().map(|(row, line)| {
        let pairs: Vec<String> = line
            .chunks(2)
            .map(|pair| pair.iter().map(|b| format!("{b:02x}")).collect())
            .collect();
        format!("{:08x}: {:39}  {}\n", row * 16, pairs.join(" "), text(line))
    });
    [canonical.collect(), xxd.collect()]
}

/// The ways to write a value for which there is no list.
fn forms(value: &str) -> Vec<(&'static str, String)> {
    let hex = each(value, |b| format!("{b:02x}"));
    let base64 = |text: &str| STANDARD.encode(text);
    let utf16: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut forms = vec![
        ("plain", value.to_owned()),
        ("upper case", value.to_ascii_uppercase()),
        ("lower case", value.to_ascii_lowercase()),
        ("reversed", value.chars().rev().collect()),
        ("base64", base64(value)),
        ("base64url", URL_SAFE_NO_PAD.encode(format!("??>{value}"))),
        ("double base64", base64(&base64(&format!("user:{value}")))),
        (
            "wrapped base64",
            lines(
                &base64(&format!("{}{value}{}", "x".repeat(41), "y".repeat(30))),
                64,
                "\n",
            ),
        ),
        ("narrow base64", lines(&base64(&format!("user:{value}")), 20, "\r\n  ")),
        ("base64 of UTF-16", STANDARD.encode(&utf16)),
        ("base64 of hex", base64(&hex)),
        ("hex", hex.clone()),
        ("upper hex", hex.to_ascii_uppercase()),
        ("hex after a nibble pair", format!("00ff{hex}00")),
        ("wrapped hex", lines(&hex, 30, "\n")),
        ("hex of base64", each(&base64(value), |b| format!("{b:02x}"))),
        ("spaced hex", each(value, |b| format!("{b:02x} "))),
        ("hex with colons", each(value, |b| format!("{b:02X}:"))),
        ("hex list", each(value, |b| format!("0x{b:02x}, "))),
        ("byte escapes", each(value, |b| format!("\\x{b:02x}"))),
        ("octal escapes", each(value, |b| format!("\\{b:03o}"))),
        ("Unicode escapes", each(value, |b| format!("\\u{b:04x}"))),
        ("Rust escapes", each(value, |b| format!("\\u{{{b:x}}}"))),
        ("percent-encoding", each(value, |b| format!("%{b:02X}"))),
        ("lower percent-encoding", each(value, |b| format!("%{b:02x}"))),
        ("double percent-encoding", each(value, |b| format!("%25{b:02X}"))),
        ("decimal references", each(value, |b| format!("&#{b};"))),
        ("hex references", each(value, |b| format!("&#x{b:X};"))),
        ("quoted-printable", each(value, |b| format!("={b:02X}"))),
        ("soft line break", lines(value, 14, "=\r\n")),
        ("decimal bytes", each(value, |b| format!("{b}, "))),
        (
            "compact decimal bytes",
            format!("[{}0]", each(value, |b| format!("{b},"))),
        ),
        ("two lines", lines(value, 13, "\n")),
        ("two indented lines", lines(value, 13, "\n      ")),
        ("two strings", lines(value, 13, "\" +\n    \"")),
        ("a continued line", lines(value, 13, "\\\n")),
        ("a citation", lines(value, 13, "\r\n> ")),
        (
            "a continued line in quotes",
            format!("\"{}\"", lines(value, 13, "\\\n  ")),
        ),
        ("two strings in a line", lines(value, 13, "\" + \"")),
        ("two strings of PHP", lines(value, 13, "' . '")),
        ("strings of a list", lines(value, 7, "\", \"")),
        ("zero-width spaces", lines(value, 8, "\u{200b}")),
        ("colours", lines(value, 8, "\u{1b}[1m")),
        (
            "a colour for each letter",
            each(value, |b| format!("\u{1b}[31m{}", char::from(b))),
        ),
        (
            "a colour and its end for each letter",
            each(value, |b| format!("\u{1b}[32m{}\u{1b}[0m", char::from(b))),
        ),
        ("decimal bytes in brackets", format!("{:?}", value.as_bytes())),
        (
            "JSON in JSON",
            serde_json::to_string(&serde_json::to_string(&format!("\"{value}\"")).unwrap()).unwrap(),
        ),
    ];
    for (name, between) in [
        ("spaced letters", " "),
        ("letters and tabs", "\t"),
        ("a line for each letter", "\n"),
        ("letters and dashes", "-"),
        ("letters and dots", "."),
        ("letters and underscores", "_"),
        ("letters and commas", ","),
        ("letters and zero-width spaces", "\u{200b}"),
        ("letters and word joiners", "\u{2060}"),
        ("letters and soft hyphens", "\u{ad}"),
    ] {
        forms.push((name, lines(value, 1, between)));
    }
    forms.extend(dumps(format!("GET / key={value}\n").as_bytes()).map(|dump| ("a hex dump", dump)));
    forms
}

#[test]
fn a_token_is_found_in_every_way_to_write_it() {
    for value in [
        "hT7-Zq9_wX2.kLm4vB8n",
        "ghX_1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R",
        "3f9a1c77d02e4b5f8a6c9d0e1f2a3b4c",
    ] {
        let values = KnownValues::new([Secret::new(value)]);
        let mut seen = Vec::new();
        for (name, form) in forms(value) {
            for (before, after) in [("", ""), ("it is: ", " (see above)"), ("{\"a\":\"", "\"}")] {
                let text = format!("{before}{form}{after}");
                let covered: usize = values.find(&text).unwrap().iter().map(|span| span.range.len()).sum();
                if covered < form.trim().len() / 3 {
                    seen.push((name, text));
                }
            }
        }
        assert!(seen.is_empty(), "{value}: {} {seen:#?}", seen.len());
    }
}

#[test]
fn only_the_form_of_the_value_is_covered() {
    let values = KnownValues::new([Secret::new("hT7-Zq9_wX2.kLm4vB8n")]);
    let hex = each("hT7-Zq9_wX2.kLm4vB8n", |b| format!("{b:02x} "));
    let text = format!("before {hex}after");
    let spans = values.find(&text).unwrap();
    assert_eq!(text[spans[0].range.clone()].trim(), hex.trim());
}

#[test]
fn words_and_other_values_are_no_forms() {
    for (value, text) in [
        ("postgres", "Postgres and POSTGRES"),
        ("test123", "the latest 123 and latest\n123"),
        ("hT7-Zq9_wX2.kLm4vB8n", "hT7-Zq9_wX2.kLm4vB8"),
        ("3f9a1c77d02e4b5f", "3f9a1c77 d02e4b5e"),
        ("correct horse battery", "correct\nhorse\nstaple"),
    ] {
        assert!(!hides(value, text), "{text}");
    }
}

#[test]
fn a_value_is_found_at_every_place() {
    for value in ["abc123", "s3cret-value", "a-much-longer-value-than-these"] {
        for before in 0..20 {
            for after in 0..5 {
                let text = format!("{}{value}{}", "x".repeat(before), "y".repeat(after));
                assert!(hides(value, &text), "{text}");
            }
        }
    }
}

#[test]
fn a_long_value_is_found_as_a_whole_and_in_parts() {
    let value: String = (0..1000).map(|n| format!("{n:x}é")).collect();
    let values = KnownValues::new([Secret::new(value.as_str())]);
    let spans = values.find(&value).unwrap();
    let covered: usize = spans.iter().map(|span| span.range.len()).sum();
    assert_eq!(covered, value.len());
    let longest = values.segments.iter().map(|segment| segment.values.len()).max();
    assert!(longest < Some(200), "{longest:?}");
}

#[test]
fn short_and_common_values_hide_nothing() {
    for value in ["", "1", "true", "debug", "default", "aaaaaaaa", "Bearer"] {
        assert!(!hides(value, &format!("x {value} y")), "{value}");
    }
}

#[test]
fn no_value_is_printed() {
    assert_eq!(format!("{:?}", KnownValues::default()), "0 values");
    assert!(!format!("{:?}", KnownValues::new([Secret::new("hunter2hunter2")])).contains("hunter2"));
}

#[test]
fn a_further_secret_costs_a_segment_and_not_a_matcher_for_all() {
    let secret = |n: usize| Secret::new(format!("user-{n}-token-{n:08}"));
    let mut values = KnownValues::default();
    let mut built = 0;
    for n in 0..2000 {
        let old = values.segments.clone();
        values = values.with(vec![secret(n)]);
        let is_new = |segment: &&Arc<Segment>| !old.iter().any(|old| Arc::ptr_eq(old, segment));
        let new: usize = values.segments.iter().filter(is_new).map(|segment| segment.len()).sum();
        assert!(new <= MAX_SEGMENT, "the {n}th secret built {new}");
        built += new;
    }
    assert!(built < 2000 * 10, "{built} for 2000 secrets");
    assert!(
        values.segments.len() <= 2 * 2000 / MAX_SEGMENT + 9,
        "{}",
        values.segments.len()
    );
    for n in [0, 1, 255, 256, 1000, 1999] {
        assert_eq!(
            values.find(&format!("it is {}.", secret(n).expose())).unwrap().len(),
            1,
            "{n}"
        );
    }
}

#[test]
fn what_is_not_held_any_more_goes_with_its_segment() {
    let secret = |n: usize| Secret::new(format!("user-{n}-token-{n:08}"));
    let all = KnownValues::new((0..100).map(secret));
    let some = all.without(|held| (0..40).any(|n| *held == secret(n)));
    assert_eq!(some.segments.iter().map(|segment| segment.len()).sum::<usize>(), 40);
    assert_eq!(some.find(secret(39).expose()).unwrap().len(), 1);
    assert!(some.find(secret(40).expose()).unwrap().is_empty());
    assert!(all.without(|_| false).segments.is_empty());
}
