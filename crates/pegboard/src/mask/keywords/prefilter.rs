//! A sieve for texts: it tells of most stretches that no mark begins in them, two bytes at a time.
//!
//! A mark begins at an even or at an odd place of a text. Either way two pairs of bytes at even places hold all of it, and one byte more.
//! There is a table for first pairs and one for second pairs. Marks are spread over eight groups, each with a bit in both tables: a pair
//! and the one after it which have a bit in common may hold a mark of that group.

use super::{FREQUENT, MARK};

/// How many bytes are looked at together.
pub(super) const STRETCH: usize = 32;
const GROUPS: usize = 8;
const PAIRS: usize = 1 << 16;

/// The marks of some words.
#[derive(Default)]
pub(super) struct Prefilter {
    /// Bits by pair of bytes. There are none before there is a word.
    tables: Option<Box<Tables>>,
    /// How often the first and the second pairs of each group are likely to stand in a text.
    loads: [(f64, f64); GROUPS],
}

struct Tables {
    firsts: [u8; PAIRS],
    seconds: [u8; PAIRS],
}

impl Prefilter {
    /// From now on the mark of this word, which stands at `offset`, is caught in any case.
    pub(super) fn catch(&mut self, word: &[u8], offset: usize) {
        // What stands beside the mark in its word is of use too. Beyond the word anything may stand.
        let after = [0, 1, 2, 3].map(|n| word.get(offset + n).copied());
        let before = offset.checked_sub(1).map(|at| word[at]);
        self.catch_pairs(after);
        self.catch_pairs([before, after[0], after[1], after[2]]);
    }

    fn catch_pairs(&mut self, bytes: [Option<u8>; MARK + 1]) {
        let [first, second] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]];
        let (rate_first, rate_second) = (rate(first), rate(second));
        let dearer = |(firsts, seconds): (f64, f64)| (firsts + rate_first) * (seconds + rate_second) - firsts * seconds;
        let cheapest = (0..GROUPS).min_by(|a, b| dearer(self.loads[*a]).total_cmp(&dearer(self.loads[*b])));
        let group = cheapest.unwrap_or(0);
        self.loads[group].0 += rate_first;
        self.loads[group].1 += rate_second;
        let tables = self.tables.get_or_insert_with(|| {
            Box::new(Tables {
                firsts: [0; PAIRS],
                seconds: [0; PAIRS],
            })
        });
        set(&mut tables.firsts, first, 1 << group);
        set(&mut tables.seconds, second, 1 << group);
    }

    /// Whether a mark may begin in the stretch. What follows it is looked at as well.
    #[inline(always)]
    pub(super) fn catches<const N: usize>(&self, stretch: &[u8; N]) -> bool {
        const { assert!(N >= STRETCH + 2) };
        let Some(tables) = &self.tables else {
            return false;
        };
        let (mut caught, mut before) = (0, 0);
        // Eight bytes are read at once and taken apart, which costs less than four readings.
        let (words, _) = stretch.as_chunks::<8>();
        for word in &words[..STRETCH / 8] {
            let word = u64::from_le_bytes(*word);
            for place in 0..4 {
                let pair = usize::from((word >> (16 * place)) as u16);
                caught |= before & tables.seconds[pair];
                before = tables.firsts[pair];
            }
        }
        let last = u16::from_le_bytes([stretch[STRETCH], stretch[STRETCH + 1]]);
        caught |= before & tables.seconds[usize::from(last)];
        caught != 0
    }

    /// Tells every place in the stretch at which a mark may begin.
    pub(super) fn caught<const N: usize>(&self, stretch: &[u8; N], mut tell: impl FnMut(usize)) {
        let Some(tables) = &self.tables else {
            return;
        };
        let mut before = 0;
        let mut pair_at = |at: usize, pair: u16| {
            if before & tables.seconds[usize::from(pair)] != 0 {
                tell(at - 2);
                tell(at - 1);
            }
            before = tables.firsts[usize::from(pair)];
        };
        let (words, _) = stretch.as_chunks::<8>();
        for (number, word) in words[..STRETCH / 8].iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            for place in 0..4 {
                pair_at(8 * number + 2 * place, (word >> (16 * place)) as u16);
            }
        }
        pair_at(STRETCH, u16::from_le_bytes([stretch[STRETCH], stretch[STRETCH + 1]]));
    }
}

/// Sets a bit for a pair in any case, or for all pairs with one of its bytes.
fn set(table: &mut [u8; PAIRS], pair: [Option<u8>; 2], bit: u8) {
    let [low, high] = pair.map(fitting);
    for high in high {
        for low in &low {
            table[usize::from(u16::from_le_bytes([*low, high]))] |= bit;
        }
    }
}

fn fitting(byte: Option<u8>) -> Vec<u8> {
    match byte {
        Some(byte) => vec![byte, byte.to_ascii_uppercase()],
        None => (0..=u8::MAX).collect(),
    }
}

/// How often a pair stands in a text, roughly.
fn rate(pair: [Option<u8>; 2]) -> f64 {
    let rate = |byte: Option<u8>| match byte {
        None => 1.0,
        Some(byte) => match FREQUENT.iter().position(|frequent| *frequent == byte) {
            Some(rank) => FREQUENT[..rank].iter().fold(0.12, |rate, _| rate * 0.9),
            None => 0.0015,
        },
    };
    rate(pair[0]) * rate(pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catches(prefilter: &Prefilter, text: &str) -> bool {
        let mut stretch = [b' '; STRETCH + 8];
        stretch[..text.len()].copy_from_slice(text.as_bytes());
        prefilter.catches(&stretch)
    }

    #[test]
    fn a_mark_is_caught_where_it_begins_in_the_stretch() {
        let mut prefilter = Prefilter::default();
        assert!(!catches(&prefilter, "secret"));
        prefilter.catch(b"secret", 2);
        prefilter.catch(b"key", 0);
        for before in 0..STRETCH - 2 {
            let text = ".".repeat(before);
            assert!(catches(&prefilter, &format!("{text}SeCret")), "{before}");
            assert!(catches(&prefilter, &format!("{text}..Key")), "{before}");
            assert!(!catches(&prefilter, &format!("{text}sekret")), "{before}");
            assert!(!catches(&prefilter, &format!("{text}k.ey")), "{before}");
            let mut stretch = [b' '; STRETCH + 8];
            stretch[before + 1..before + 4].copy_from_slice(b"kEy");
            let mut places = Vec::new();
            prefilter.caught(&stretch, |place| places.push(place));
            assert_eq!(places, [(before + 1) & !1, (before + 1) | 1]);
        }
    }
}
