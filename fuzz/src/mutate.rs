//! Mutations of inputs: flipped bits, spliced inputs, tokens of the dictionary, truncation, repeated parts.

/// The longest input.
pub const MAX_INPUT: usize = 8 << 10;
/// How many mutated inputs are kept beside the corpus, so that mutations add up.
const POOL: usize = 512;

/// Makes new inputs from a corpus. The same seed makes the same inputs.
#[derive(Debug)]
pub struct Mutator {
    random: Random,
    corpus: Vec<Vec<u8>>,
    pool: Vec<Vec<u8>>,
    tokens: Vec<Vec<u8>>,
}

impl Mutator {
    /// Creates a mutator. An empty corpus counts as one empty input.
    pub fn new(seed: u64, mut corpus: Vec<Vec<u8>>, tokens: Vec<Vec<u8>>) -> Self {
        if corpus.is_empty() {
            corpus.push(Vec::new());
        }
        Self {
            random: Random::new(seed),
            corpus,
            pool: Vec::new(),
            tokens,
        }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick().to_vec();
        for _ in 0..=self.random.below(5) {
            self.mutate(&mut input);
        }
        input.truncate(MAX_INPUT);
        self.keep(&input);
        input
    }

    fn pick(&mut self) -> &[u8] {
        let from_pool = !self.pool.is_empty() && self.random.below(3) == 0;
        let from = if from_pool { &self.pool } else { &self.corpus };
        let at = self.random.below(from.len());
        &from[at]
    }

    fn keep(&mut self, input: &[u8]) {
        if self.pool.len() < POOL {
            self.pool.push(input.to_vec());
        } else if self.random.below(64) == 0 {
            let at = self.random.below(POOL);
            self.pool[at] = input.to_vec();
        }
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        match self.random.below(12) {
            0 => self.change_byte(input, |byte, random| byte ^ (1 << random.below(8))),
            1 => self.change_byte(input, |_, random| random.next() as u8),
            2 => self.change_byte(input, |byte, random| {
                byte.wrapping_add(random.below(9) as u8).wrapping_sub(4)
            }),
            3 => {
                let at = self.random.below(input.len() + 1);
                input.truncate(at);
            }
            4 => {
                let part = self.range(input.len());
                input.drain(part);
            }
            5 => self.repeat_part(input),
            6 => self.move_part(input),
            7 => self.splice(input),
            8..11 => self.insert_token(input),
            _ => {
                let at = self.random.below(input.len() + 1);
                let byte = self.random.next() as u8;
                input.insert(at, byte);
            }
        }
    }

    fn change_byte(&mut self, input: &mut [u8], change: impl FnOnce(u8, &mut Random) -> u8) {
        if !input.is_empty() {
            let at = self.random.below(input.len());
            input[at] = change(input[at], &mut self.random);
        }
    }

    fn repeat_part(&mut self, input: &mut Vec<u8>) {
        let part = self.range(input.len());
        let times = [1, 1, 2, 8, 64][self.random.below(5)];
        let at = part.end;
        let part = input[part].to_vec();
        let room = MAX_INPUT.saturating_sub(input.len()) / part.len().max(1);
        input.splice(at..at, part.repeat(times.min(room)));
    }

    fn move_part(&mut self, input: &mut Vec<u8>) {
        let part = self.range(input.len());
        let part: Vec<u8> = input.drain(part).collect();
        let at = self.random.below(input.len() + 1);
        input.splice(at..at, part);
    }

    /// Puts a part of another input in place of a part of this one.
    fn splice(&mut self, input: &mut Vec<u8>) {
        let other = self.pick().to_vec();
        let part = self.range(other.len());
        let place = self.range(input.len());
        input.splice(place, other[part].iter().copied());
    }

    fn insert_token(&mut self, input: &mut Vec<u8>) {
        if self.tokens.is_empty() {
            return;
        }
        let token = self.tokens[self.random.below(self.tokens.len())].clone();
        let at = self.random.below(input.len() + 1);
        // In place of as many bytes, or between them.
        let end = if self.random.below(2) == 0 {
            at
        } else {
            (at + token.len()).min(input.len())
        };
        input.splice(at..end, token);
    }

    /// A random part of an input, often a short one.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.random.below(len + 1);
        let most = if self.random.below(2) == 0 {
            (len - start).min(16)
        } else {
            len - start
        };
        start..start + self.random.below(most + 1)
    }
}

/// A xorshift generator.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Spreads small seeds. Zero would stay zero.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    /// A number below `end`, which is not zero.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_within_the_limit() {
        let make = |seed| {
            let corpus = vec![b"{\"id\":1}".to_vec(), Vec::new(), vec![b'x'; MAX_INPUT]];
            let mut mutator = Mutator::new(seed, corpus, vec![b"\"method\"".to_vec()]);
            (0..5000).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        let inputs = make(7);
        assert_eq!(inputs, make(7));
        assert_ne!(inputs, make(8));
        assert!(inputs.iter().all(|input| input.len() <= MAX_INPUT));
        let different: std::collections::HashSet<_> = inputs.iter().collect();
        assert!(different.len() > 4000, "{}", different.len());
    }
}
