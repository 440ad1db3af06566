//! The front of a long text, freed of its escapes a chunk at a time.
//!
//! Within a chunk only backslashes are looked for. That it has no control character, and no quote but those behind backslashes, is found
//! out for all of it at once, which costs much less than to ask it of every byte.

use super::{BLOCK, FIRST, LARGE, MEANT, SHORT};

/// How much is read at once.
const CHUNK: usize = 2 << 10;
/// A text that ends before this is a short one.
const SOON: usize = 256;
/// A chunk, and what may be read or written beyond it.
const WINDOW: usize = CHUNK + BLOCK + SHORT;

/// The meaning of the front of a text, and the length of that front. It ends before the first chunk in which the text ends or anything
/// is unusual.
pub(super) fn unescape(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut text = Vec::with_capacity((bytes.len() + BLOCK + SHORT).min(FIRST));
    let mut taken = 0;
    if bytes.len() >= WINDOW && !ends_soon(bytes) {
        let mut chunk = [0; WINDOW];
        while let Some(window) = bytes[taken..].first_chunk()
            && let Some((len, read)) = take_chunk(window, &mut chunk)
        {
            if text.len() + len > text.capacity() {
                grow(&mut text, len, bytes.len() - taken);
            }
            text.extend_from_slice(&chunk[..len]);
            taken += read;
        }
    }
    (text, taken)
}

/// Whether a text surely ends within its first bytes, so that a chunk is not worth it. A quote behind a backslash may be one within it.
fn ends_soon(bytes: &[u8]) -> bool {
    let soon = &bytes[..SOON.min(bytes.len())];
    memchr::memchr_iter(b'"', soon).any(|at| at == 0 || soon[at - 1] != b'\\')
}

/// A text that has become large is likely to be most of the `rest` of its message.
#[cold]
fn grow(text: &mut Vec<u8>, len: usize, rest: usize) {
    if text.len() + len > LARGE {
        text.reserve_exact(len + rest);
    } else {
        text.reserve(len);
    }
}

/// Writes what a chunk means. Returns how much that is, and how much was read: one byte more than the chunk when it ends in an escape.
#[inline(never)]
fn take_chunk(window: &[u8; WINDOW], out: &mut [u8; WINDOW]) -> Option<(usize, usize)> {
    let chunk = window.first_chunk::<CHUNK>()?;
    if chunk.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
        return None;
    }
    let (mut taken, mut len, mut quotes) = (0, 0, 0);
    let (blocks, _) = chunk.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        let mut slashes = slashes(block);
        while slashes != 0 {
            let bit = slashes.trailing_zeros();
            let at = number * BLOCK + bit as usize;
            slashes &= slashes - 1;
            // It was the end of an escape that began in the block before.
            if at < taken {
                continue;
            }
            let count = at - taken;
            if count <= SHORT {
                // Always as many as two registers hold, which costs less than a copy of any length.
                *out.get_mut(len..)?.first_chunk_mut::<SHORT>()? = *window.get(taken..)?.first_chunk()?;
            } else {
                out.get_mut(len..len + count)?.copy_from_slice(&window[taken..at]);
            }
            len += count;
            let next = window[at + 1];
            let meant = MEANT[usize::from(next)];
            *out.get_mut(len)? = meant;
            len += 1;
            taken = at + 2;
            slashes &= !(0b10 << bit);
            quotes += usize::from(next == b'"');
            if meant == 0 {
                return None;
            }
        }
    }
    if let Some(last) = chunk.get(taken..) {
        out.get_mut(len..len + last.len())?.copy_from_slice(last);
        len += last.len();
        taken = CHUNK;
    }
    // One more than were escaped is the end of the text.
    let has_end = memchr::memchr_iter(b'"', &window[..taken]).count() != quotes;
    (!has_end).then_some((len, taken))
}

/// One bit for each byte of a block that is a backslash.
#[inline(always)]
fn slashes(block: &[u8; BLOCK]) -> u32 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const LOW: u64 = ONES * 0x7f;
    let bits = |word: [u8; 8]| {
        let other = u64::from_le_bytes(word) ^ (ONES * b'\\' as u64);
        let found = !((other & LOW).wrapping_add(LOW) | other) & !LOW;
        // The multiplication gathers the eight marks of a word in its highest byte. Four multiplications at once would need instructions
        // that not every processor has, and do more harm than good without them.
        let found = std::hint::black_box(found);
        ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    };
    let (words, _) = block.as_chunks::<8>();
    bits(words[0]) | bits(words[1]) << 8 | bits(words[2]) << 16 | bits(words[3]) << 24
}
