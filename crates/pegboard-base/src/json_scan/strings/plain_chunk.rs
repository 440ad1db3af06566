//! Skips a part of a long string at once, without a branch for each escape.

/// How many bytes are skipped at once.
pub(super) const CHUNK: usize = 2 << 10;
/// A string that ends within this many bytes is not worth a chunk.
pub(super) const SOON: usize = 256;

/// Skips a chunk that contains neither the end of the string nor an error, and no escapes but those of one letter, quote or slash. Returns its
/// length, and how many escapes it has. The chunk must not begin within an escape.
#[inline(never)]
pub(super) fn skip(bytes: &[u8]) -> Option<(usize, usize)> {
    let window = bytes.first_chunk::<{ CHUNK + 1 }>()?;
    let is_first_plain = window[0] != b'"' && window[0] >= b' ';
    // No early exit, so that the compiler vectorises the loop.
    let found = window[1..].iter().zip(window).fold(0, |found, (byte, before)| {
        let is_escaped = *before == b'\\';
        let is_letter = (*byte == b'n') | (*byte == b't') | (*byte == b'r') | (*byte == b'b') | (*byte == b'f');
        let is_escape = is_letter | (*byte == b'"') | (*byte == b'/');
        let is_end = !is_escaped & (*byte == b'"');
        found | u8::from(is_escaped & !is_escape) | u8::from(is_end) | u8::from(*byte < b' ')
    });
    if !is_first_plain || found != 0 {
        return None;
    }
    let chunk = &window[..CHUNK];
    let escapes = memchr::memchr_iter(b'\\', chunk).count();
    Some((CHUNK + usize::from(chunk[CHUNK - 1] == b'\\'), escapes))
}
