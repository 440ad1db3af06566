//! Decodes a part of a text and remembers where each decoded byte comes from.

use std::ops::Range;

/// The shortest value that is searched, in bytes. Values such as `1` or `true` would mask half of every text.
pub(crate) const MIN_LEN: usize = 6;

/// A byte that separates unrelated parts of a view. It occurs in no UTF-8 text, so no value is found across it.
const GAP: u8 = 0xff;

/// A decoded part of a text.
#[derive(Default)]
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// For each byte the range of the text that encodes it.
    places: Vec<(u32, u32)>,
}

impl View {
    /// Appends a byte. NUL is left out, so that UTF-16 reads like UTF-8.
    fn push(&mut self, byte: u8, place: Range<usize>) {
        if byte != 0 {
            let end = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            self.bytes.push(byte);
            self.places.push((end(place.start), end(place.end)));
        }
    }

    fn push_char(&mut self, c: char, place: &Range<usize>) {
        let mut utf8 = [0; 4];
        for byte in c.encode_utf8(&mut utf8).bytes() {
            self.push(byte, place.clone());
        }
    }

    fn gap(&mut self) {
        if self.bytes.last().is_some_and(|last| *last != GAP) {
            self.bytes.push(GAP);
            self.places.push((0, 0));
        }
    }

    /// Returns the range of the text that encodes a range of the view.
    pub(super) fn source(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let places = self.places.get(range.clone())?;
        let start = places.iter().map(|place| place.0).min()?;
        let end = places.iter().map(|place| place.1).max()?;
        Some(start as usize..end as usize)
    }
}

/// Which notations of single characters a view decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Those of source code, JSON, URLs, HTML and XML.
    Common,
    /// The same, and what stands between the parts of a value is left out: a line break with what surrounds it in a quoted or indented
    /// text, and the quotes and the operator between two strings.
    Joined,
    /// Those of quoted-printable.
    QuotedPrintable,
}

/// Decodes the escapes of a text.
pub(super) fn unescape(text: &[u8], escapes: Escapes) -> View {
    let mut view = View::default();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let decoded = match (escapes, rest[0]) {
            (Escapes::QuotedPrintable, b'=') => quoted_printable(rest),
            (Escapes::QuotedPrintable, _) => None,
            (_, b'%') => hex(&rest[1..], 2).map(|byte| (Decoded::Byte(byte as u8), 3)),
            (Escapes::Joined, b'\\' | b'"' | b'\'') => between_parts(rest).or_else(|| backslash(rest)),
            (_, b'\\') => backslash(rest),
            (_, b'&') => entity(rest),
            (_, 0x1b | 0xe2 | 0xef | 0xc2) => invisible(rest).map(|len| (Decoded::Nothing, len)),
            (Escapes::Joined, _) => line_break(rest).map(|len| (Decoded::Nothing, len)),
            _ => None,
        };
        let (decoded, len) = decoded.unwrap_or((Decoded::Byte(rest[0]), 1));
        let place = at..at + len;
        match decoded {
            Decoded::Byte(byte) => view.push(byte, place),
            Decoded::Char(c) => view.push_char(c, &place),
            Decoded::Nothing => {}
        }
        at += len;
    }
    view
}

/// What an escape stands for.
enum Decoded {
    Byte(u8),
    Char(char),
    Nothing,
}

/// `=41`, and `=` at the end of a line.
fn quoted_printable(rest: &[u8]) -> Option<(Decoded, usize)> {
    if let Some(byte) = hex(&rest[1..], 2) {
        return Some((Decoded::Byte(byte as u8), 3));
    }
    let len = line_end(&rest[1..])?;
    Some((Decoded::Nothing, 1 + len + blanks(&rest[1 + len..])))
}

/// `\x41`, `\u0041`, `\u{41}`, `\U00000041`, `\101`, `\n`, and a backslash before any other character.
fn backslash(rest: &[u8]) -> Option<(Decoded, usize)> {
    (rest[0] == b'\\').then_some(())?;
    let scalar = |value: u32| char::from_u32(value).map_or(Decoded::Nothing, Decoded::Char);
    let next = *rest.get(1)?;
    Some(match next {
        b'x' => (Decoded::Byte(hex(&rest[2..], 2)? as u8), 4),
        b'u' if rest.get(2) == Some(&b'{') => {
            let digits = rest[3..].iter().take(6).take_while(|b| b.is_ascii_hexdigit()).count();
            (rest.get(3 + digits) == Some(&b'}')).then_some(())?;
            (scalar(hex(&rest[3..], digits)?), 4 + digits)
        }
        b'u' => match hex(&rest[2..], 4)? {
            high @ 0xd800..0xdc00 if rest[6..].starts_with(b"\\u") => {
                let low = hex(&rest[8..], 4)?.checked_sub(0xdc00)?;
                (scalar(0x10000 + ((high - 0xd800) << 10) + low), 12)
            }
            unit => (scalar(unit), 6),
        },
        b'U' => (scalar(hex(&rest[2..], 8)?), 10),
        b'0'..=b'3' => {
            let octal = |at: usize| rest.get(at).filter(|b| (b'0'..=b'7').contains(b)).map(|b| b - b'0');
            (Decoded::Byte((octal(1)? << 6) | (octal(2)? << 3) | octal(3)?), 4)
        }
        b'n' => (Decoded::Byte(b'\n'), 2),
        b'r' => (Decoded::Byte(b'\r'), 2),
        b't' => (Decoded::Byte(b'\t'), 2),
        b'\r' | b'\n' => (Decoded::Nothing, 1 + line_end(&rest[1..])?),
        next if next.is_ascii_punctuation() || next == b' ' => (Decoded::Byte(next), 2),
        _ => return None,
    })
}

/// `&#65;`, `&#x41;` and the names of punctuation.
fn entity(rest: &[u8]) -> Option<(Decoded, usize)> {
    /// The longest entity that is decoded.
    const MAX_LEN: usize = 12;
    let end = rest.iter().take(MAX_LEN).position(|b| *b == b';')?;
    let name = str::from_utf8(&rest[1..end]).ok()?;
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let number = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)?
        }
        None => match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => ' ',
            "sol" => '/',
            "bsol" => '\\',
            "equals" => '=',
            "plus" => '+',
            "num" => '#',
            "excl" => '!',
            "dollar" => '$',
            "percnt" => '%',
            "ast" => '*',
            "comma" => ',',
            "period" => '.',
            "colon" => ':',
            "semi" => ';',
            "commat" => '@',
            "lowbar" => '_',
            "Hat" => '^',
            "lpar" => '(',
            "rpar" => ')',
            _ => return None,
        },
    };
    Some((Decoded::Char(c), end + 1))
}

/// Characters that are not shown.
pub(crate) const HIDDEN: [&str; 6] = ["\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}"];

/// The length of a character that is not shown, or of a terminal's colour code.
fn invisible(rest: &[u8]) -> Option<usize> {
    if rest.starts_with(b"\x1b[") {
        let parameters = rest[2..]
            .iter()
            .take(16)
            .take_while(|b| !b.is_ascii_alphabetic())
            .count();
        return Some((parameters + 3).min(rest.len()));
    }
    let hidden = HIDDEN.iter().find(|hidden| rest.starts_with(hidden.as_bytes()))?;
    Some(hidden.len())
}

/// What stands between two parts of a value, if the text begins with a quote or a backslash.
fn between_parts(rest: &[u8]) -> Option<(Decoded, usize)> {
    let len = line_break(rest).or_else(|| concatenation(rest))?;
    Some((Decoded::Nothing, len))
}

/// The length of what joins two strings in one line: `" + "`, `' . '`, `", "`, `" "`.
fn concatenation(rest: &[u8]) -> Option<usize> {
    /// The most blanks before or after the operator, and the most characters of it.
    const MAX_LEN: usize = 2;
    let is_quote = |at: usize| matches!(rest.get(at), Some(b'"' | b'\''));
    let run = |at: usize, of: &[u8]| rest[at..].iter().take(MAX_LEN).take_while(|b| of.contains(b)).count();
    if !is_quote(0) {
        return None;
    }
    let mut end = 1;
    for of in [b" \t".as_slice(), b"+.,&|", b" \t"] {
        end += run(end, of);
    }
    is_quote(end).then_some(end + 1)
}

/// The length of a line break in the middle of a value: with the quotes, operator and continuation sign before it, and the indentation, quote
/// and prefix of a citation or comment after it.
fn line_break(rest: &[u8]) -> Option<usize> {
    /// The most characters before or after a line break that belong to it.
    const MAX_LEN: usize = 80;
    let before = |b: &&u8| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'+' | b'\\' | b'&' | b'.' | b',');
    let before = rest.iter().take(8).take_while(before).count();
    let end = before + line_end(&rest[before..])?;
    let after = |b: &&u8| {
        matches!(
            b,
            b' ' | b'\t' | b'"' | b'\'' | b'>' | b'|' | b'#' | b'*' | b'\r' | b'\n'
        )
    };
    Some(end + rest[end..].iter().take(MAX_LEN).take_while(after).count())
}

fn line_end(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n' | b'\r', ..] => Some(1),
        _ => None,
    }
}

fn blanks(rest: &[u8]) -> usize {
    rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// The value of the first `digits` hex digits.
fn hex(text: &[u8], digits: usize) -> Option<u32> {
    let digits = text.get(..digits).filter(|digits| !digits.is_empty())?;
    digits
        .iter()
        .try_fold(0_u32, |value, b| Some(value << 4 | char::from(*b).to_digit(16)?))
}

/// The shortest run that is decoded: the base64 encoding of the shortest value.
const MIN_RUN: usize = MIN_LEN * 8 / 6;

/// Decodes the runs of an alphabet whose characters stand for `bits` bits each. Runs go on over line breaks. Each is decoded from every
/// place at which a byte may begin, because the start of the view may be in the middle of one.
pub(super) fn decode_runs(text: &[u8], bits: u32, digit: fn(u8) -> Option<u32>) -> View {
    let phases = if bits == 6 { 4 } else { 8 };
    let mut view = View::default();
    let mut run: Vec<(u32, usize)> = Vec::new();
    let mut at = 0;
    while at <= text.len() {
        let rest = &text[at..];
        // A line break inside an escaped string is written as a backslash and a letter.
        let escaped = rest
            .strip_prefix(b"\\r\\n")
            .map(|_| 4)
            .or(rest.strip_prefix(b"\\n").map(|_| 2));
        let skipped = escaped.or_else(|| line_end(rest).map(|len| len + blanks(&rest[len..])));
        match (skipped, rest.first().copied().and_then(digit)) {
            (Some(len), _) => at += len,
            (None, Some(value)) => {
                run.push((value, at));
                at += 1;
            }
            (None, None) => {
                if run.len() >= MIN_RUN {
                    (0..phases).for_each(|phase| decode_run(&run[phase..], bits, &mut view));
                }
                run.clear();
                at += 1;
            }
        }
    }
    view
}

fn decode_run(run: &[(u32, usize)], bits: u32, view: &mut View) {
    let (mut value, mut have, mut from) = (0_u32, 0, 0);
    for (digit, at) in run {
        if have == 0 {
            from = *at;
        }
        value = (value << bits | digit) & 0xffff;
        have += bits;
        if have >= 8 {
            have -= 8;
            view.push((value >> have) as u8, from..at + 1);
            // The next byte begins in this character unless all its bits are used.
            from = *at;
        }
    }
    view.gap();
}

/// The value of a character of base64 in either alphabet.
pub(super) fn base64_digit(byte: u8) -> Option<u32> {
    Some(match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// The value of a character of base32.
pub(super) fn base32_digit(byte: u8) -> Option<u32> {
    Some(match byte.to_ascii_uppercase() {
        upper @ b'A'..=b'Z' => u32::from(upper - b'A'),
        b'2'..=b'7' => u32::from(byte - b'2') + 26,
        _ => return None,
    })
}

/// Decodes hex digits, with and without separators, and the lines of hex dumps. In a dump each byte comes from the whole line, because that
/// shows the bytes a second time as text.
pub(super) fn decode_hex(text: &[u8]) -> View {
    let mut view = View::default();
    let mut start = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        let content = line.trim_ascii_end();
        let dump = dump_offset(content);
        let from = dump.unwrap_or(0);
        let whole = dump.map(|_| start..start + content.len());
        hex_line(&content[from..], start + from, whole.as_ref(), &mut view);
        start += line.len();
    }
    view
}

/// The length of the offset at the start of a line of a hex dump.
fn dump_offset(line: &[u8]) -> Option<usize> {
    let is_hex = |at: usize| line.get(at).is_some_and(u8::is_ascii_hexdigit);
    // The line of a command or of a JSON string may begin before the offset.
    let mut starts = (0..line.len())
        .filter(|at| is_hex(*at) && !at.checked_sub(1).is_some_and(|at| line[at].is_ascii_alphanumeric()));
    starts.find_map(|start| {
        let digits = (start..).take_while(|at| is_hex(*at)).count();
        let (end, min) = (start + digits, if start == blanks(line) { 4 } else { 7 });
        let is_offset = (min..=16).contains(&digits)
            && match line.get(end..end + 2) {
                Some([b':', b' ']) => true,
                // In `0000 68 75` the offset is longer than what follows it.
                Some([b' ', _]) => {
                    let next = end + blanks(&line[end..]);
                    (next..).take_while(|at| is_hex(*at)).count() == 2
                }
                _ => false,
            };
        is_offset.then_some(end + 1)
    })
}

/// What may precede the hex digits of each byte.
const HEX_PREFIXES: [&[u8]; 5] = [b"0x", b"0X", b"\\x", b"%", b"$"];

/// The most bytes in a line of a hex dump with the text of these bytes.
const DUMP_WIDTH: usize = 16;

/// Decodes the hex digits of a line that starts at `start`.
fn hex_line(line: &[u8], start: usize, whole: Option<&Range<usize>>, view: &mut View) {
    let (mut at, mut count, mut is_wide) = (0, 0, false);
    while at < line.len() {
        let rest = &line[at..];
        if whole.is_some() && (count == DUMP_WIDTH || is_wide && rest.starts_with(b"  ")) {
            return;
        }
        let prefix = HEX_PREFIXES
            .iter()
            .find(|prefix| rest.starts_with(prefix) && rest.get(prefix.len()).is_some_and(u8::is_ascii_hexdigit));
        if let Some(prefix) = prefix {
            at += prefix.len();
            continue;
        }
        let digits = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if digits > 0 && digits % 2 == 0 {
            is_wide |= digits > 2;
            for pair in (0..digits).step_by(2) {
                let place = whole.cloned().unwrap_or(start + at + pair..start + at + pair + 2);
                if let Some(byte) = hex(&rest[pair..], 2) {
                    view.push(byte as u8, place);
                    count += 1;
                }
            }
            at += digits;
            continue;
        }
        let is_separator = matches!(rest[0], b' ' | b'\t' | b',' | b':' | b'-' | b'_' | b';');
        if !is_separator {
            view.gap();
            if whole.is_some() {
                return;
            }
        }
        at += digits.max(1);
    }
}

/// Decodes bytes that are written as decimal numbers, as in `[104, 117]`.
pub(super) fn decode_decimals(text: &[u8]) -> View {
    let mut view = View::default();
    let mut at = 0;
    while at < text.len() {
        let digits = text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let number = str::from_utf8(&text[at..at + digits])
            .ok()
            .and_then(|number| number.parse().ok());
        match number {
            Some(byte) => view.push(byte, at..at + digits),
            None if digits == 0 && matches!(text[at], b' ' | b',' | b';' | b'\t' | b'\n' | b'\r') => {}
            None => view.gap(),
        }
        at += digits.max(1);
    }
    view
}

/// What may be written between each two characters of a value, besides blanks and line breaks.
pub(super) const SEPARATORS: &[u8] = b"-._,";

/// Joins characters that are written with a blank, a line break or the same [separator](SEPARATORS) between each two of them.
pub(super) fn join_spaced(text: &[u8]) -> View {
    let mut view = View::default();
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`([{<>}])|:".contains(byte);
    let is_blank = |at: Option<usize>| at.and_then(|at| text.get(at)).is_none_or(is_end);
    let mut at = 0;
    while at < text.len() {
        if let Some(separator) = separator_at(text, at) {
            view.gap();
            view.push(text[at], at..at + 1);
            while text.get(at + 1) == Some(&separator) && at + 2 < text.len() {
                at += 2;
                view.push(text[at], at..at + 1);
            }
            view.gap();
        } else if is_blank(at.checked_sub(1)) && is_blank(Some(at + 1)) {
            if !text[at].is_ascii_whitespace() {
                view.push(text[at], at..at + 1);
            }
        } else if !text[at].is_ascii_whitespace() {
            view.gap();
        }
        at += 1;
    }
    view
}

/// The separator after this character, if it stands after the next two as well.
fn separator_at(text: &[u8], at: usize) -> Option<u8> {
    match text.get(at + 1..at + 6)? {
        [first, _, second, _, third] if first == second && first == third => {
            SEPARATORS.contains(first).then_some(*first)
        }
        _ => None,
    }
}
