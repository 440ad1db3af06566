//! A prefilter: whether a text may hold a known secret in any written form, by four-byte grams of these forms.
//!
//! The forms are not searched as a whole. A gram tells where a text is worth decoding, see [`view`](super::view).

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::view::{HIDDEN, MIN_LEN, SEPARATORS};

/// The distance between the grams that are looked up in a text. Every form has this many consecutive grams, so one of them is looked up.
const STEP: usize = MIN_LEN - 3;
/// How many bytes are read at once, and how many grams are looked up in them.
const BLOCK: usize = 16;
const GRAMS: usize = (BLOCK - 4) / STEP + 1;
/// Bits of the bitmap for each gram. Few of the grams that are not there have their bit set.
const BITS_PER_GRAM: usize = 32;
/// The size of the bitmap in bits, as powers of two. The smallest fits into the fastest cache.
const MIN_BITS: u32 = 16;
const MAX_BITS: u32 = 21;

/// The grams of some secrets.
#[derive(Default)]
pub(super) struct Grams {
    /// In order, in lower case.
    grams: Box<[u32]>,
    /// A bitmap of the grams' hashes, checked before the list.
    bits: Box<[u64]>,
    /// How far to shift a hash for the number of its bit.
    shift: u32,
}

impl Grams {
    /// Returns the grams of all forms of these values.
    pub(super) fn new<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let mut grams = Vec::new();
        values.for_each(|value| Forms(&mut grams).add_all(value));
        grams.sort_unstable();
        grams.dedup();
        if grams.is_empty() {
            return Self::default();
        }
        let wanted = (grams.len() * BITS_PER_GRAM).next_power_of_two().trailing_zeros();
        let log = wanted.clamp(MIN_BITS, MAX_BITS);
        let mut bits = vec![0; 1 << (log - 6)].into_boxed_slice();
        let shift = u32::BITS - log;
        for gram in &grams {
            let bit = hash(*gram, shift);
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Self {
            grams: grams.into(),
            bits,
            shift,
        }
    }

    /// The places of grams in a text.
    pub(super) fn places<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = usize> + 't {
        let text = if self.bits.is_empty() { &[] } else { text };
        let mut next = 0;
        std::iter::from_fn(move || {
            loop {
                // Most blocks hold no gram.
                while let Some(block) = text.get(next..).and_then(<[u8]>::first_chunk)
                    && !self.may_be_in(block)
                {
                    next += GRAMS * STEP;
                }
                let gram = fold(*text.get(next..)?.first_chunk()?);
                next += STEP;
                if self.bit(gram) == 1 && self.grams.binary_search(&gram).is_ok() {
                    return Some(next - STEP);
                }
            }
        })
    }

    /// Whether the bit of one of the grams of a block is set.
    #[inline(always)]
    fn may_be_in(&self, block: &[u8; BLOCK]) -> bool {
        let bit = |number: usize| {
            let at = number * STEP;
            self.bit(fold([block[at], block[at + 1], block[at + 2], block[at + 3]]))
        };
        let bits: [u64; GRAMS] = std::array::from_fn(bit);
        bits.iter().fold(0, |any, bit| any | bit) != 0
    }

    /// The bit of a gram.
    #[inline(always)]
    fn bit(&self, gram: u32) -> u64 {
        let bit = hash(gram, self.shift);
        self.bits[bit / 64] >> (bit % 64) & 1
    }
}

/// Lower-cases four bytes. Other bytes change as well; what is found is compared as a whole.
#[inline(always)]
fn fold(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes) | u32::from_le_bytes([b' '; 4])
}

#[inline(always)]
fn hash(gram: u32, shift: u32) -> usize {
    (gram.wrapping_mul(0x9e37_79b1) >> shift) as usize
}

/// Collects grams of written forms.
struct Forms<'g>(&'g mut Vec<u32>);

impl Forms<'_> {
    fn add_all(&mut self, value: &str) {
        let bytes = value.as_bytes();
        self.add_ends(bytes);
        self.add(longest_word(value).as_bytes());
        let reversed: String = value.chars().rev().collect();
        self.add(reversed.as_bytes());
        self.add_partly_escaped(value);
        self.add_escaped(value);
        self.add_numbers(bytes);
        // In a hex dump a line may end within the first bytes.
        self.add_numbers(&bytes[STEP.min(bytes.len())..]);
        self.add_encoded(value);
    }

    /// Adds the first grams of a form.
    fn add(&mut self, form: &[u8]) {
        let grams = form.windows(4).take(STEP).filter_map(|gram| gram.try_into().ok());
        self.0.extend(grams.map(fold));
    }

    /// Adds the first and the last grams of a form, because a line may end in the middle of it.
    fn add_ends(&mut self, form: &[u8]) {
        self.add(form);
        self.add(&form[form.len().saturating_sub(MIN_LEN)..]);
    }

    /// Adds the forms in which only some characters are escaped. Values with a [long word](longest_word) are found by that.
    fn add_partly_escaped(&mut self, value: &str) {
        if longest_word(value).len() < MIN_LEN {
            self.add_in_urls(value);
            self.add_in_strings(value);
            self.add_in_markup(value);
        }
    }

    fn add_in_urls(&mut self, value: &str) {
        let percent = |c: char, out: &mut String| {
            let mut utf8 = [0; 4];
            c.encode_utf8(&mut utf8)
                .bytes()
                .for_each(|b| out.push_str(&format!("%{b:02x}")));
        };
        let unescaped = |c: char| matches!(c, '-' | '.' | '_' | '~');
        self.add(escape(value, &percent).as_bytes());
        self.add(
            escape(value, &|c, out| {
                if unescaped(c) { out.push(c) } else { percent(c, out) }
            })
            .as_bytes(),
        );
        self.add(
            escape(value, &|c, out| match c {
                ' ' => out.push('+'),
                c if unescaped(c) || c == '*' => out.push(c),
                c => percent(c, out),
            })
            .as_bytes(),
        );
    }

    fn add_in_strings(&mut self, value: &str) {
        let json = |c: char, out: &mut String| match c {
            '"' | '\\' => out.push_str(&format!("\\{c}")),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        };
        self.add(escape(value, &json).as_bytes());
        self.add(
            escape(value, &|c, out| match c {
                '/' => out.push_str("\\/"),
                c => json(c, out),
            })
            .as_bytes(),
        );
        let unicode = |c: char, out: &mut String| {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        };
        self.add(
            escape(value, &|c, out| {
                if c.is_ascii() && !"<>&'+".contains(c) {
                    json(c, out)
                } else {
                    unicode(c, out)
                }
            })
            .as_bytes(),
        );
        self.add(
            escape(value, &|c, out| {
                if c.is_ascii() { json(c, out) } else { unicode(c, out) }
            })
            .as_bytes(),
        );
        self.add(escape(value, &|c, out| out.push_str(&format!("\\{c}"))).as_bytes());
    }

    fn add_in_markup(&mut self, value: &str) {
        self.add(
            escape(value, &|c, out| match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                c => out.push(c),
            })
            .as_bytes(),
        );
        self.add(escape(value, &|c, out| out.push_str(&format!("&#{};", u32::from(c)))).as_bytes());
    }

    /// Adds the forms in which all characters are escaped. The first bytes of some are in every text with such escapes, and are left out.
    fn add_escaped(&mut self, value: &str) {
        let form = |escape: &dyn Fn(u32) -> String| {
            value
                .chars()
                .take(MIN_LEN)
                .map(|c| escape(u32::from(c)))
                .collect::<String>()
        };
        self.add(&form(&|c| format!("\\u{c:04x}")).as_bytes()[2..]);
        self.add(&form(&|c| format!("\\u{{{c:x}}}")).as_bytes()[1..]);
        self.add(&form(&|c| format!("\\u{c:08x}")).as_bytes()[5..]);
        self.add(&form(&|c| format!("&#{c};")).as_bytes()[1..]);
        self.add(&form(&|c| format!("&#x{c:x};")).as_bytes()[1..]);
        let mut between = |separator: &str| {
            self.add(form(&|c| char::from_u32(c).map_or_else(String::new, |c| format!("{c}{separator}"))).as_bytes());
        };
        [" ", "\t", "\n", "\r\n"].into_iter().for_each(&mut between);
        HIDDEN.into_iter().for_each(&mut between);
        SEPARATORS
            .iter()
            .for_each(|separator| between(&char::from(*separator).to_string()));
        self.add_coloured(value);
    }

    /// Adds the grams around the second character, if there is a terminal's colour code before and after each. Any digit or `[` is before
    /// the `m` of the code, and any digit after the next `[`.
    fn add_coloured(&mut self, value: &str) {
        let Some(second) = value.as_bytes().get(1).copied() else {
            return;
        };
        self.add(&[b'm', second, 0x1b, b'[']);
        for digit in b'0'..=b'9' {
            self.add(&[digit, b'm', second, 0x1b]);
            self.add(&[second, 0x1b, b'[', digit]);
        }
        self.add(&[b'[', b'm', second, 0x1b]);
        self.add(&[second, 0x1b, b'[', b'm']);
    }

    /// Adds the forms in which each byte is a number.
    fn add_numbers(&mut self, bytes: &[u8]) {
        let first = &bytes[..bytes.len().min(MIN_LEN)];
        let form = |before: &str, after: &str| {
            first
                .iter()
                .map(|b| format!("{before}{b:02x}{after}"))
                .collect::<String>()
        };
        for (before, after) in [
            ("", " "),
            ("", ":"),
            ("", "-"),
            ("%", ""),
            ("\\x", ""),
            ("=", ""),
            ("0x", ","),
            ("0x", ", "),
            ("0x", " "),
        ] {
            self.add(form(before, after).as_bytes());
        }
        // A percent sign that is escaped again.
        self.add(form("%25", "").as_bytes());
        for odd in [0, 1] {
            let group = |at: usize, b: &u8| format!("{b:02x}{}", if at % 2 == odd { "" } else { " " });
            let groups: String = first.iter().enumerate().map(|(at, b)| group(at, b)).collect();
            self.add(groups.as_bytes());
        }
        for (before, after) in [("", ","), ("", ", "), ("", " ")] {
            let decimals: String = first.iter().map(|b| format!("{before}{b}{after}")).collect();
            self.add(decimals.as_bytes());
        }
        let octal: String = first.iter().map(|b| format!("\\{b:03o}")).collect();
        self.add(octal.as_bytes());
    }

    /// Adds the encodings of the value as a whole, and encodings of these.
    fn add_encoded(&mut self, value: &str) {
        let hex: String = value.bytes().map(|b| format!("{b:02x}")).collect();
        let utf16: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let once = base64_at_each_place(value.as_bytes());
        self.add_ends(hex.as_bytes());
        self.add(
            &utf16
                .iter()
                .fold(String::new(), |all, b| all + &format!("{b:02x}"))
                .into_bytes(),
        );
        for form in once.iter().chain(&base64_at_each_place(&utf16)) {
            self.add_ends(form.as_bytes());
            let url_safe = form.replace('+', "-").replace('/', "_");
            self.add_ends(url_safe.as_bytes());
        }
        let upper = hex.to_ascii_uppercase();
        for form in once.iter().chain([&hex, &upper]) {
            for twice in base64_at_each_place(form.as_bytes()) {
                self.add(twice.as_bytes());
            }
        }
        for form in &once {
            let twice: String = form.bytes().map(|b| format!("{b:02x}")).collect();
            self.add(twice.as_bytes());
        }
        for form in base32_at_each_place(value.as_bytes()) {
            self.add(form.as_bytes());
        }
    }
}

/// A value with all characters but letters and digits escaped.
fn escape(value: &str, escape: &dyn Fn(char, &mut String)) -> String {
    let mut out = String::new();
    value.chars().for_each(|c| match c.is_ascii_alphanumeric() {
        true => out.push(c),
        false => escape(c, &mut out),
    });
    out
}

/// The longest part of letters and digits. Every encoding that escapes only some characters leaves it as it is.
fn longest_word(value: &str) -> &str {
    let words = value.split(|c: char| !c.is_ascii_alphanumeric());
    words.max_by_key(|word| word.len()).unwrap_or_default()
}

/// The base64 encodings of bytes at each of the three alignments, without the characters that depend on neighbouring bytes.
fn base64_at_each_place(bytes: &[u8]) -> [String; 3] {
    std::array::from_fn(|before| {
        let padded = [&[0; 2][..before], bytes].concat();
        let from = (before * 4).div_ceil(3);
        STANDARD_NO_PAD.encode(&padded)[from..padded.len() * 8 / 6].to_owned()
    })
}

/// The base32 encodings of bytes at each of the five alignments, without the characters that depend on neighbouring bytes.
fn base32_at_each_place(bytes: &[u8]) -> [String; 5] {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    std::array::from_fn(|before| {
        let padded = [&[0; 4][..before], bytes].concat();
        let bit = |at: usize| usize::from(padded[at / 8] >> (7 - at % 8) & 1);
        let first = (before * 8).div_ceil(5) * 5;
        let starts = (first..).step_by(5).take_while(|start| start + 5 <= padded.len() * 8);
        { starts }
            .map(|start| char::from(DIGITS[(start..start + 5).fold(0, |value, at| value << 1 | bit(at))]))
            .collect()
    })
}
