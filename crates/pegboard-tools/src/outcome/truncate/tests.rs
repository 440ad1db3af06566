//! Within every limit, in whole characters, at line ends where possible, with a truthful marker.

use proptest::prelude::*;

use super::*;

fn marker(sizes: Sizes) -> String {
    format!("[{} of {} bytes are shown]", sizes.kept, sizes.bytes)
}

fn ten_lines() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

#[track_caller]
fn check(text: &str, bounds: Bounds<'_>, part: Part, expected: &str) {
    assert_eq!(fit(text, &bounds, part, marker).as_deref(), Some(expected));
}

#[test]
fn a_text_within_its_limits_is_not_touched() {
    let counted = |text: &str| text.len();
    for bounds in [
        Bounds::bytes(71),
        Bounds {
            lines: Some(10),
            ..Bounds::bytes(71)
        },
        Bounds {
            tokens: Some(18),
            ..Bounds::bytes(71)
        },
        Bounds {
            tokens: Some(71),
            count: Some(&counted),
            ..Bounds::bytes(71)
        },
    ] {
        assert_eq!(ten_lines().len(), 71);
        assert_eq!(fit(&ten_lines(), &bounds, Part::Head, marker), None);
    }
}

#[test]
fn the_head_ends_with_a_line() {
    let expected = "line 1\nline 2\nline 3\n[21 of 71 bytes are shown]";
    check(&ten_lines(), Bounds::bytes(52), Part::Head, expected);
}

#[test]
fn head_and_tail_have_half_of_the_room_each() {
    let expected = "line 1\nline 2\n[29 of 71 bytes are shown]\nline 9\nline 10\n";
    check(&ten_lines(), Bounds::bytes(60), Part::Ends, expected);
}

#[test]
fn lines_are_a_limit_too() {
    let bounds = Bounds {
        lines: Some(4),
        ..Bounds::bytes(1000)
    };
    check(
        &ten_lines(),
        bounds,
        Part::Head,
        "line 1\nline 2\nline 3\n[21 of 71 bytes are shown]",
    );
    check(
        &ten_lines(),
        bounds,
        Part::Ends,
        "line 1\nline 2\n[22 of 71 bytes are shown]\nline 10\n",
    );
}

#[test]
fn a_long_line_is_cut_where_it_must_be() {
    let long = "é".repeat(50);
    check(
        &long,
        Bounds::bytes(41),
        Part::Head,
        "ééééé\n[10 of 100 bytes are shown]",
    );
}

#[test]
fn without_room_for_a_marker_there_is_only_text() {
    check(&ten_lines(), Bounds::bytes(10), Part::Head, "line 1");
    check(&ten_lines(), Bounds::bytes(0), Part::Ends, "");
}

#[test]
fn tokens_are_estimated_or_counted() {
    let estimated = Bounds {
        tokens: Some(13),
        ..Bounds::bytes(1000)
    };
    check(
        &ten_lines(),
        estimated,
        Part::Head,
        "line 1\nline 2\nline 3\n[21 of 71 bytes are shown]",
    );
    let words = |text: &str| text.split_whitespace().count();
    let counted = Bounds {
        tokens: Some(12),
        count: Some(&words),
        ..Bounds::bytes(1000)
    };
    let cut = fit(&ten_lines(), &counted, Part::Head, marker).unwrap();
    assert!(
        words(&cut) <= 12 && cut.starts_with("line 1\n") && cut.contains("bytes are shown"),
        "{cut}"
    );
}

#[test]
fn lines_are_counted_as_people_do() {
    for (text, count) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("\n\n", 2)] {
        assert_eq!(lines(text), count, "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_limit_is_ever_passed(
        text in "(\\PC|\n|\r\n| ){0,200}",
        bytes in 0usize..300,
        most_lines in proptest::option::of(0usize..12),
        tokens in proptest::option::of(0usize..100),
        by_word in any::<bool>(),
        ends in any::<bool>(),
    ) {
        let words = |text: &str| text.split_whitespace().count();
        let bounds = Bounds {
            bytes,
            lines: most_lines,
            tokens,
            count: by_word.then_some(&words as &Count<'_>),
        };
        let part = if ends { Part::Ends } else { Part::Head };
        let fitted = fit(&text, &bounds, part, marker);
        let result = fitted.as_deref().unwrap_or(&text);
        prop_assert!(result.len() <= bytes);
        prop_assert!(most_lines.is_none_or(|most| lines(result) <= most), "{result:?}");
        prop_assert!(tokens.is_none_or(|most| bounds.tokens_of(result) <= most), "{result:?}");
    }

    #[test]
    fn what_is_kept_is_a_start_and_an_end_of_the_text(text in "(\\PC|\n){0,200}", bytes in 60usize..300) {
        if let Some(fitted) = fit(&text, &Bounds::bytes(bytes), Part::Ends, marker) {
            let at = fitted.rfind(" bytes are shown]").unwrap();
            let start = fitted[..at].rfind('[').unwrap();
            let (first, rest) = (&fitted[..start], &fitted[at + " bytes are shown]".len()..]);
            let first = if text.starts_with(first) { first } else { first.strip_suffix('\n').unwrap() };
            let last = rest.strip_prefix('\n').unwrap_or(rest);
            prop_assert!(text.starts_with(first));
            prop_assert!(text.ends_with(last));
            // The newline added after the head may be the one that follows it in the text.
            let kept = first.len() + last.len();
            let says = |kept: usize| fitted[start..].starts_with(&format!("[{kept} of {}", text.len()));
            prop_assert!(says(kept) || says(kept - 1), "{fitted:?} does not say {kept}");
        }
    }
}
