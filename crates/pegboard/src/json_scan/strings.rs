//! Texts in JSON: found and freed of their escapes, many bytes at a time.

mod prefix;

use std::borrow::Cow;

/// How many bytes are looked at together when a text has escapes.
const BLOCK: usize = 32;
/// A piece of text up to this length is copied as if it had this length, which costs less than a copy of any length.
const SHORT: usize = 32;
/// How much is set aside for a text at first, and from where on all that it can need is.
const FIRST: usize = 16 << 10;
const LARGE: usize = 64 << 10;
/// How much more than a quarter a text may hold that it does not need.
const SLACK: usize = 128;
/// How much of it is made ready at once.
const STEP: usize = 4 << 10;

/// Reads the text whose opening quote is just before `bytes`: its meaning, and its length with the closing quote.
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

/// The high bit of each byte that is a quote, a backslash or a control character. Bytes after the first such byte may be marked by
/// mistake, bytes before it never.
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

/// One bit for each byte of a block that may be special.
#[inline]
fn candidates(block: &[u8; BLOCK]) -> u32 {
    let (words, _) = block.as_chunks::<8>();
    // The multiplication gathers the eight marks of a word in its highest byte.
    let bits = |word| ((specials(word) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    bits(words[0]) | bits(words[1]) << 8 | bits(words[2]) << 16 | bits(words[3]) << 24
}

/// Reads a text that has escapes. Its last blocks are looked at in order and without regard to what was found before, so that the
/// processor can work ahead.
fn unescape(bytes: &[u8]) -> Option<(String, usize)> {
    let (out, front) = prefix::unescape(bytes);
    let bytes = &bytes[front..];
    let mut text = Unescaped {
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

/// A text on its way into memory of its own.
struct Unescaped {
    /// The text as far as `len`, and room for more.
    out: Vec<u8>,
    len: usize,
    /// How much was taken from the bytes.
    taken: usize,
}

impl Unescaped {
    /// Takes the bytes up to the last escape of a block, or to the closing quote: then it says where that is.
    #[inline(always)]
    fn take_block(&mut self, bytes: &[u8], start: usize, mut candidates: u32) -> Option<Option<usize>> {
        let (mut taken, mut len) = (self.taken, self.len);
        // An escape that begins in this block may end in the next one, but it is never shorter than what it means.
        let needed = len + (start + BLOCK).saturating_sub(taken) + SHORT;
        if self.out.len() < needed {
            grow(&mut self.out, needed, bytes.len() - taken);
        }
        let out = self.out.as_mut_slice();
        while candidates != 0 {
            let bit = candidates.trailing_zeros();
            let at = start + bit as usize;
            candidates &= candidates - 1;
            // The end of an escape that began in the block before may look special.
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
            let meant = MEANT[usize::from(*bytes.get(at + 1)?)];
            if meant == 0 {
                let (meant, read) = unicode(&bytes[at..])?;
                len += meant.encode_utf8(&mut out[len..]).len();
                taken = at + read;
            } else {
                out[len] = meant;
                len += 1;
                taken = at + 2;
                // Its second byte may look special.
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

/// Copies `count` bytes, and where there is room, always as many as two registers hold: that costs less than finding out.
#[inline]
fn copy(from: &[u8], to: &mut [u8], count: usize) {
    match (from.first_chunk::<SHORT>(), to.first_chunk_mut::<SHORT>()) {
        (Some(from), Some(to)) if count <= SHORT => *to = *from,
        _ => copy_long(from, to, count),
    }
}

/// By itself, so that the short copy does not become a call as well.
#[inline(never)]
fn copy_long(from: &[u8], to: &mut [u8], count: usize) {
    to[..count].copy_from_slice(&from[..count]);
}

/// Makes room for `needed` bytes in all. A text that has become large is likely to be most of the `rest` of its message.
#[cold]
fn grow(out: &mut Vec<u8>, needed: usize, rest: usize) {
    if needed > LARGE && needed + STEP > out.capacity() {
        out.reserve_exact(needed + rest - out.len());
    }
    out.resize(needed + rest.min(STEP), 0);
}

/// What a letter after a backslash means; zero where that is nothing, or more than one byte.
static MEANT: [u8; 256] = {
    let mut meant = [0; 256];
    meant[b'"' as usize] = b'"';
    meant[b'\\' as usize] = b'\\';
    meant[b'/' as usize] = b'/';
    meant[b'b' as usize] = 8;
    meant[b'f' as usize] = 12;
    meant[b'n' as usize] = b'\n';
    meant[b'r' as usize] = b'\r';
    meant[b't' as usize] = b'\t';
    meant
};

/// The character of `\uXXXX`, or of two of them, and their length. Half a pair is nothing.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    let first = hex(escape)?;
    if let Some(meant) = char::from_u32(first) {
        return Some((meant, 6));
    }
    let second = hex(escape.get(6..)?)?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let meant = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(meant)?, 12))
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

    /// What is read here must be what serde_json reads, or nothing.
    fn agrees(inner: &[u8]) -> Option<String> {
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
    fn every_escape_is_read_at_every_place() {
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
                    assert!(agrees(text.as_bytes()).is_some(), "{text}");
                }
            }
        }
    }

    #[test]
    fn what_breaks_a_rule_is_not_read() {
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
                assert_eq!(agrees(&text), None, "{wrong:?}");
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
            prop_assert_eq!(agrees(&written.as_bytes()[1..written.len() - 1]), Some(text));
        }

        #[test]
        fn long_texts_are_read_as_serde_json_reads_them(text in "(\\PC{0,40}|[\"\\\\/\\]\n]{0,9}){0,150}") {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(agrees(&written.as_bytes()[1..written.len() - 1]), Some(text));
        }

        #[test]
        fn any_bytes_are_read_alike_or_not_at_all(bytes in proptest::collection::vec(
            prop_oneof![Just(b'\\'), Just(b'u'), Just(b'd'), Just(b'8'), Just(b'0'), Just(b'n'), any::<u8>()], 0..120))
        {
            // Only up to the quote that both readers stop at.
            let bytes: Vec<u8> = bytes.into_iter().filter(|byte| *byte != b'"').collect();
            agrees(&bytes);
        }
    }
}
