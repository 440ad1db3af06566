//! A prefilter that rules out most windows of a text, two bytes at a time.
//!
//! A trigram begins at an even or an odd offset of a text. Either way two consecutive byte pairs at even offsets hold all of it and one byte
//! more. There is a table for first pairs and one for second pairs. Trigrams are spread over eight groups, each with a bit in both tables: if
//! a pair and the next one have a bit in common, they may hold a trigram of that group.

/// The length of a trigram. Keywords that are shorter are searched one by one.
pub(super) const TRIGRAM: usize = 3;
/// Characters from the most to the least frequent, roughly as in prose, source code and JSON.
pub(super) const FREQUENT: &[u8] = b" et\"aoinsr:hld,cum./fp-g=wy_bvkxjqz";
/// How many bytes are checked together.
pub(super) const WINDOW: usize = 32;
const GROUPS: usize = 8;
const PAIRS: usize = 1 << 16;

/// The trigrams of some keywords.
#[derive(Default)]
pub(super) struct Prefilter {
    /// Group bits by byte pair. Allocated with the first keyword.
    tables: Option<Box<Tables>>,
    /// The estimated frequency of the first and the second pairs of each group.
    loads: [(f64, f64); GROUPS],
}

struct Tables {
    firsts: [u8; PAIRS],
    seconds: [u8; PAIRS],
}

impl Prefilter {
    /// Adds the trigram at `offset` of a keyword, in upper and lower case.
    pub(super) fn add(&mut self, word: &[u8], offset: usize) {
        // The keyword's bytes beside the trigram make the pairs more selective; beyond the keyword any byte may follow.
        let after = [0, 1, 2, 3].map(|n| word.get(offset + n).copied());
        let before = offset.checked_sub(1).map(|at| word[at]);
        self.add_pairs(after);
        self.add_pairs([before, after[0], after[1], after[2]]);
    }

    fn add_pairs(&mut self, bytes: [Option<u8>; TRIGRAM + 1]) {
        let [first, second] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]];
        let (rate_first, rate_second) = (rate(first), rate(second));
        let added_cost =
            |(firsts, seconds): (f64, f64)| (firsts + rate_first) * (seconds + rate_second) - firsts * seconds;
        let cheapest = (0..GROUPS).min_by(|a, b| added_cost(self.loads[*a]).total_cmp(&added_cost(self.loads[*b])));
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

    /// Whether a trigram may begin in the window. The bytes after it are checked as well.
    #[inline(always)]
    pub(super) fn may_match<const N: usize>(&self, window: &[u8; N]) -> bool {
        const { assert!(N >= WINDOW + 2) };
        let Some(tables) = &self.tables else {
            return false;
        };
        let (mut matched, mut before) = (0, 0);
        // One load of eight bytes costs less than four loads of two.
        let (words, _) = window.as_chunks::<8>();
        for word in &words[..WINDOW / 8] {
            let word = u64::from_le_bytes(*word);
            for place in 0..4 {
                let pair = usize::from((word >> (16 * place)) as u16);
                matched |= before & tables.seconds[pair];
                before = tables.firsts[pair];
            }
        }
        let last = u16::from_le_bytes([window[WINDOW], window[WINDOW + 1]]);
        matched |= before & tables.seconds[usize::from(last)];
        matched != 0
    }

    /// Calls `visit` with every offset in the window at which a trigram may begin.
    pub(super) fn for_each_candidate<const N: usize>(&self, window: &[u8; N], mut visit: impl FnMut(usize)) {
        let Some(tables) = &self.tables else {
            return;
        };
        let mut before = 0;
        let mut pair_at = |at: usize, pair: u16| {
            if before & tables.seconds[usize::from(pair)] != 0 {
                visit(at - 2);
                visit(at - 1);
            }
            before = tables.firsts[usize::from(pair)];
        };
        let (words, _) = window.as_chunks::<8>();
        for (number, word) in words[..WINDOW / 8].iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            for place in 0..4 {
                pair_at(8 * number + 2 * place, (word >> (16 * place)) as u16);
            }
        }
        pair_at(WINDOW, u16::from_le_bytes([window[WINDOW], window[WINDOW + 1]]));
    }
}

/// Sets a bit for a pair in upper and lower case. An unknown byte stands for all bytes.
fn set(table: &mut [u8; PAIRS], pair: [Option<u8>; 2], bit: u8) {
    let [low, high] = pair.map(byte_variants);
    for high in high {
        for low in &low {
            table[usize::from(u16::from_le_bytes([*low, high]))] |= bit;
        }
    }
}

fn byte_variants(byte: Option<u8>) -> Vec<u8> {
    match byte {
        Some(byte) => vec![byte, byte.to_ascii_uppercase()],
        None => (0..=u8::MAX).collect(),
    }
}

/// Estimates the frequency of a pair in texts.
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

    fn may_match(prefilter: &Prefilter, text: &str) -> bool {
        let mut window = [b' '; WINDOW + 8];
        window[..text.len()].copy_from_slice(text.as_bytes());
        prefilter.may_match(&window)
    }

    #[test]
    fn a_trigram_is_found_wherever_it_begins_in_the_window() {
        let mut prefilter = Prefilter::default();
        assert!(!may_match(&prefilter, "secret"));
        prefilter.add(b"secret", 2);
        prefilter.add(b"key", 0);
        for before in 0..WINDOW - 2 {
            let text = ".".repeat(before);
            assert!(may_match(&prefilter, &format!("{text}SeCret")), "{before}");
            assert!(may_match(&prefilter, &format!("{text}..Key")), "{before}");
            assert!(!may_match(&prefilter, &format!("{text}sekret")), "{before}");
            assert!(!may_match(&prefilter, &format!("{text}k.ey")), "{before}");
            let mut window = [b' '; WINDOW + 8];
            window[before + 1..before + 4].copy_from_slice(b"kEy");
            let mut places = Vec::new();
            prefilter.for_each_candidate(&window, |place| places.push(place));
            assert_eq!(places, [(before + 1) & !1, (before + 1) | 1]);
        }
    }
}
