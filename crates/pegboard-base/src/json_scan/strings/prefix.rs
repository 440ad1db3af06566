//! Unescapes the prefix of a long string, one chunk at a time.
//!
//! Within a chunk only backslashes are searched. Control characters and unescaped quotes are ruled out for the whole chunk at once, which is
//! much cheaper than a check of every byte.

use super::unescape_tables::{BLOCK, INITIAL_CAPACITY, LARGE, SHORT, UNESCAPED};

/// How many bytes are unescaped at once.
const CHUNK: usize = 2 << 10;
/// A string that ends within this many bytes is not worth a chunk.
const SOON: usize = 256;
/// A chunk, and the bytes that may be read or written beyond it.
const WINDOW: usize = CHUNK + BLOCK + SHORT;

/// Unescapes a prefix of a string. Returns the text and the length of the prefix, which ends before the first chunk that contains the end of
/// the string, a `\u` escape or an error.
pub(super) fn unescape(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut text = Vec::with_capacity((bytes.len() + BLOCK + SHORT).min(INITIAL_CAPACITY));
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

/// Whether a string certainly ends within its first bytes. A quote after a backslash may be escaped, so it does not count.
fn ends_soon(bytes: &[u8]) -> bool {
    let soon = &bytes[..SOON.min(bytes.len())];
    memchr::memchr_iter(b'"', soon).any(|at| at == 0 || soon[at - 1] != b'\\')
}

/// Grows the buffer by `len`. A large text probably makes up most of the `rest` of its message, so it gets that capacity at once.
#[cold]
fn grow(text: &mut Vec<u8>, len: usize, rest: usize) {
    if text.len() + len > LARGE {
        text.reserve_exact(len + rest);
    } else {
        text.reserve(len);
    }
}

/// Unescapes a chunk. Returns how many bytes were written, and how many were read: one more than the chunk if it ends within an escape.
/// Returns `None` if the chunk needs the general unescaper.
#[inline(never)]
fn take_chunk(window: &[u8; WINDOW], out: &mut [u8; WINDOW]) -> Option<(usize, usize)> {
    let chunk = window.first_chunk::<CHUNK>()?;
    if chunk.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
        return None;
    }
    let (mut taken, mut len, mut quotes) = (0, 0, 0);
    let (blocks, _) = chunk.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        let mut backslashes = backslashes(block);
        while backslashes != 0 {
            let bit = backslashes.trailing_zeros();
            let at = number * BLOCK + bit as usize;
            backslashes &= backslashes - 1;
            // The second character of an escape that began in the previous block.
            if at < taken {
                continue;
            }
            let count = at - taken;
            if count <= SHORT {
                // A copy of a fixed size compiles to two register moves.
                *out.get_mut(len..)?.first_chunk_mut::<SHORT>()? = *window.get(taken..)?.first_chunk()?;
            } else {
                out.get_mut(len..len + count)?.copy_from_slice(&window[taken..at]);
            }
            len += count;
            let next = window[at + 1];
            let unescaped = UNESCAPED[usize::from(next)];
            *out.get_mut(len)? = unescaped;
            len += 1;
            taken = at + 2;
            backslashes &= !(0b10 << bit);
            quotes += usize::from(next == b'"');
            if unescaped == 0 {
                return None;
            }
        }
    }
    if let Some(last) = chunk.get(taken..) {
        out.get_mut(len..len + last.len())?.copy_from_slice(last);
        len += last.len();
        taken = CHUNK;
    }
    // An unescaped quote ends the string.
    let has_end = memchr::memchr_iter(b'"', &window[..taken]).count() != quotes;
    (!has_end).then_some((len, taken))
}

/// One bit for each byte of a block that is a backslash.
#[inline(always)]
fn backslashes(block: &[u8; BLOCK]) -> u32 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const LOW: u64 = ONES * 0x7f;
    let bits = |word: [u8; 8]| {
        let other = u64::from_le_bytes(word) ^ (ONES * b'\\' as u64);
        let found = !((other & LOW).wrapping_add(LOW) | other) & !LOW;
        // The multiplication gathers the eight high bits of a word in its highest byte. The black box prevents vectorisation, which is slower
        // on processors without 64-bit vector multiplication.
        let found = std::hint::black_box(found);
        ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    };
    let (words, _) = block.as_chunks::<8>();
    bits(words[0]) | bits(words[1]) << 8 | bits(words[2]) << 16 | bits(words[3]) << 24
}
