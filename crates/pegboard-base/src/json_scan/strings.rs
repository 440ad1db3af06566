//! Finds JSON strings and unescapes them, many bytes at a time.

mod plain_chunk;
mod prefix;
mod spaced;
mod unescape_tables;

use std::borrow::Cow;

pub use spaced::unescape_spaced;
use unescape_tables::{BLOCK, LARGE, SHORT, UNESCAPED};

/// A text may keep this much unused capacity, in addition to a quarter of its length.
const SLACK: usize = 128;
/// How much capacity is zeroed at once.
const ZEROED: usize = 4 << 10;

/// Reads the string whose opening quote is just before `bytes`. Returns the unescaped text, and its length in `bytes` with the closing quote.
pub(super) fn read(bytes: &[u8]) -> Option<(Cow<'_, str>, usize)> {
    let plain = plain_start(bytes);
    match bytes.get(plain)? {
        b'"' => Some((std::str::from_utf8(&bytes[..plain]).ok()?.into(), plain + 1)),
        b'\\' => {
            let (text, read) = unescape(bytes)?;
            Some((text.into(), read))
        }
        _ => None,
    }
}

/// Skips the string whose opening quote is just before `bytes`, and checks its escapes. Returns its length with the closing quote, and the length
/// of the text that it stands for.
pub(super) fn skip(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut escapes) = (0, 0);
    // Most strings are short, and not worth a chunk.
    let mut next_chunk = plain_chunk::SOON;
    loop {
        if at >= next_chunk {
            while let Some((read, escaped)) = plain_chunk::skip(&bytes[at..]) {
                at += read;
                escapes += escaped;
            }
            next_chunk = at + plain_chunk::CHUNK;
        }
        at += plain_start(bytes.get(at..)?);
        match bytes.get(at)? {
            b'"' => return Some((at + 1, at - escapes)),
            b'\\' => match bytes.get(at + 1)? {
                b'u' => {
                    escapes += 6 - utf8_share(hex(&bytes[at..])?);
                    at += 6;
                }
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                    at += 2;
                    escapes += 1;
                }
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// How many bytes of UTF-8 a `\uXXXX` stands for. The two halves of a surrogate pair stand for two each.
fn utf8_share(unit: u32) -> usize {
    match unit {
        ..0x80 => 1,
        0x80..0x800 | 0xd800..0xe000 => 2,
        _ => 3,
    }
}

/// Appends a text to `out` with all JSON escapes in it decoded, inside and outside of quotes. What a quoted string in the text stands for is a
/// part of the result. Returns `false` if an escape is malformed; it is kept as it is.
pub(crate) fn unescape_all(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut rest, mut is_valid) = (text, true);
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = &rest[at..];
        let unescaped = escape.get(1).map_or(0, |byte| UNESCAPED[usize::from(*byte)]);
        let read = if unescaped != 0 {
            out.push(unescaped);
            2
        } else if let Some((character, read)) = unicode(escape) {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            read
        } else {
            out.push(b'\\');
            is_valid = false;
            1
        };
        rest = &escape[read..];
    }
    out.extend_from_slice(rest);
    is_valid
}

/// How many bytes come before the first quote, backslash or control character.
fn plain_start(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let marks = specials(*word);
        if marks != 0 {
            return number * 8 + (marks.trailing_zeros() / 8) as usize;
        }
    }
    let plain = rest.iter().take_while(|byte| !is_special(**byte)).count();
    bytes.len() - rest.len() + plain
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..0x20)
}

/// Sets the high bit of each byte that is a quote, a backslash or a control character. There are no false positives before the first such
/// byte, but there may be some after it.
#[inline]
fn specials(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = word ^ (ONES * b'"' as u64);
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = word ^ (ONES * b'\\' as u64);
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & HIGH
}

/// One bit for each byte of a block that may be special. False positives are possible.
#[inline]
fn candidates(block: &[u8; BLOCK]) -> u32 {
    let (words, _) = block.as_chunks::<8>();
    // The multiplication gathers the eight high bits of a word in its highest byte.
    let bits = |word| ((specials(word) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    bits(words[0]) | bits(words[1]) << 8 | bits(words[2]) << 16 | bits(words[3]) << 24
}

/// Reads a string with escapes. The scan of a block does not depend on the blocks before it, so the processor can overlap them.
fn unescape(bytes: &[u8]) -> Option<(String, usize)> {
    let (out, front) = prefix::unescape(bytes);
    let bytes = &bytes[front..];
    let mut text = Unescaper {
        len: out.len(),
        out,
        taken: 0,
    };
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        let candidates = candidates(block);
        if candidates != 0
            && let Some(end) = text.take_block(bytes, number * BLOCK, candidates)?
        {
            return text.finish(front + end);
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let end = text.take_block(bytes, bytes.len() - rest.len(), candidates(&last))?;
    text.finish(front + end?)
}

/// A text that is being unescaped.
struct Unescaper {
    /// The text up to `len`, and zeroed space for more.
    out: Vec<u8>,
    len: usize,
    /// How many input bytes are unescaped.
    taken: usize,
}

impl Unescaper {
    /// Unescapes the bytes up to the last escape of a block. Returns the position of the closing quote if the block contains it.
    #[inline(always)]
    fn take_block(&mut self, bytes: &[u8], start: usize, mut candidates: u32) -> Option<Option<usize>> {
        let (mut taken, mut len) = (self.taken, self.len);
        // An escape that begins in this block may end in the next one, but it is never shorter than its unescaped form.
        let needed = len + (start + BLOCK).saturating_sub(taken) + SHORT;
        if self.out.len() < needed {
            grow(&mut self.out, needed, bytes.len() - taken);
        }
        let out = self.out.as_mut_slice();
        while candidates != 0 {
            let bit = candidates.trailing_zeros();
            let at = start + bit as usize;
            candidates &= candidates - 1;
            // The second character of an escape that began in the previous block may look special.
            if at < taken {
                continue;
            }
            let byte = bytes[at];
            if byte != b'\\' && byte != b'"' {
                if byte < b' ' {
                    return None;
                }
                continue;
            }
            copy(&bytes[taken..], &mut out[len..], at - taken);
            len += at - taken;
            if byte == b'"' {
                self.len = len;
                return Some(Some(at));
            }
            let unescaped = UNESCAPED[usize::from(*bytes.get(at + 1)?)];
            if unescaped == 0 {
                let (character, read) = unicode(&bytes[at..])?;
                len += character.encode_utf8(&mut out[len..]).len();
                taken = at + read;
            } else {
                out[len] = unescaped;
                len += 1;
                taken = at + 2;
                // The second character of the escape may look special.
                candidates &= !(0b10 << bit);
            }
        }
        (self.taken, self.len) = (taken, len);
        Some(None)
    }

    fn finish(mut self, end: usize) -> Option<(String, usize)> {
        self.out.truncate(self.len);
        if self.out.capacity() > self.len + self.len / 4 + SLACK {
            self.out.shrink_to_fit();
        }
        Some((String::from_utf8(self.out).ok()?, end + 1))
    }
}

/// Copies `count` bytes. Short copies have a fixed size where there is room, because that compiles to two register moves.
#[inline]
fn copy(from: &[u8], to: &mut [u8], count: usize) {
    match (from.first_chunk::<SHORT>(), to.first_chunk_mut::<SHORT>()) {
        (Some(from), Some(to)) if count <= SHORT => *to = *from,
        _ => copy_long(from, to, count),
    }
}

/// A separate function, so that the compiler does not turn the short copy into a call as well.
#[inline(never)]
fn copy_long(from: &[u8], to: &mut [u8], count: usize) {
    to[..count].copy_from_slice(&from[..count]);
}

/// Grows the buffer to `needed` bytes. A large text probably makes up most of the `rest` of its message, so it gets that capacity at once.
#[cold]
fn grow(out: &mut Vec<u8>, needed: usize, rest: usize) {
    if needed > LARGE && needed + ZEROED > out.capacity() {
        out.reserve_exact(needed + rest - out.len());
    }
    out.resize(needed + rest.min(ZEROED), 0);
}

/// Decodes `\uXXXX`, or a surrogate pair of them. Returns the character and the length of the escape.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    let first = hex(escape)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = hex(escape.get(6..)?)?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let code_point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(code_point)?, 12))
}

fn hex(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks that the result agrees with serde_json, and returns it.
    fn check(inner: &[u8]) -> Option<String> {
        let bytes = [inner, br#"" , "more""#].concat();
        let quoted = [br#"""#.as_slice(), &bytes].concat();
        let expected = serde_json::Deserializer::from_slice(&quoted)
            .into_iter::<String>()
            .next()
            .and_then(Result::ok);
        let read = read(&bytes);
        if let Some((text, length)) = &read {
            assert_eq!(bytes[length - 1], b'"');
            assert_eq!(
                Some(text.as_ref()),
                expected.as_deref(),
                "{:?}",
                String::from_utf8_lossy(inner)
            );
        }
        assert_eq!(
            read.is_some(),
            expected.is_some(),
            "{:?}",
            String::from_utf8_lossy(inner)
        );
        read.map(|(text, _)| text.into_owned())
    }

    #[test]
    fn every_escape_is_read_at_every_position() {
        for escape in [
            r#"\""#,
            r"\\",
            r"\/",
            r"\b",
            r"\f",
            r"\n",
            r"\r",
            r"\t",
            r"\u0041",
            r"\u00e9",
            r"\u20ac",
            r"\ud83d\ude00",
            r"\\\\",
            r"\u0000",
            r#"\\\""#,
            r"\uD7FF\uE000",
        ] {
            for before in (0..70).chain(1970..2060) {
                for after in [0, 1, 40, 1100] {
                    let text = format!("{}{escape}{}", "a".repeat(before), "é".repeat(after));
                    assert!(check(text.as_bytes()).is_some(), "{text}");
                }
            }
        }
    }

    #[test]
    fn invalid_strings_are_rejected() {
        for wrong in [
            &b"\\x"[..],
            b"\\u12",
            b"\\u12g4",
            b"\\ud800",
            b"\\ud800x",
            b"\\ud800\\n",
            b"\\ud800\\u0041",
            b"\\udc00",
            b"\\u+123",
            b"\n",
            b"\x00",
            b"\xff",
            b"\\n\xff",
            b"\xc3\\n",
            b"\\u00e9\xa9",
        ] {
            for before in [0, 5, 31, 32, 63, 2047, 2048, 5000] {
                let text = [&b"b".repeat(before), wrong, &b"z".repeat(before)].concat();
                assert_eq!(check(&text), None, "{wrong:?}");
            }
        }
        assert_eq!(read(b"no end"), None);
        assert_eq!(read(b"no end\\"), None);
        assert_eq!(read(b"no end\\n"), None);
    }

    #[test]
    fn a_long_text_takes_no_more_memory_than_it_needs() {
        let text = r#"a line with a \"word\" in it\n"#.repeat(40_000);
        let bytes = format!("{text}\"{}", " ".repeat(3_000_000));
        let (read, length) = read(bytes.as_bytes()).unwrap();
        assert_eq!(length, text.len() + 1);
        let Cow::Owned(read) = read else {
            panic!("it has escapes")
        };
        assert!(
            read.capacity() < read.len() * 3 / 2,
            "{} for {}",
            read.capacity(),
            read.len()
        );
    }

    proptest! {
        #[test]
        fn texts_are_read_as_serde_json_reads_them(text in "(\\PC|[\\x00-\\x7f]|\"|\\\\){0,200}") {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(check(&written.as_bytes()[1..written.len() - 1]), Some(text));
        }

        #[test]
        fn long_texts_are_read_as_serde_json_reads_them(text in "(\\PC{0,40}|[\"\\\\/\\]\n]{0,9}){0,150}") {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(check(&written.as_bytes()[1..written.len() - 1]), Some(text));
        }

        #[test]
        fn any_bytes_are_read_alike_or_not_at_all(bytes in proptest::collection::vec(
            prop_oneof![Just(b'\\'), Just(b'u'), Just(b'd'), Just(b'8'), Just(b'0'), Just(b'n'), any::<u8>()], 0..120))
        {
            // Without quotes, so that both readers stop at the same one.
            let bytes: Vec<u8> = bytes.into_iter().filter(|byte| *byte != b'"').collect();
            check(&bytes);
        }
    }
}
