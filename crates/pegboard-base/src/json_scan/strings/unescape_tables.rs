//! Sizes and the escape table that both unescapers share.

/// How many bytes are scanned together.
pub(super) const BLOCK: usize = 32;
/// A piece of text up to this length is copied as a whole block of this size, which is cheaper than a copy of variable length.
pub(super) const SHORT: usize = 32;
/// The initial capacity of an unescaped text.
pub(super) const INITIAL_CAPACITY: usize = 16 << 10;
/// From this length on, a text gets the capacity that it can need at most.
pub(super) const LARGE: usize = 64 << 10;

/// The byte that a two-character escape stands for, by its second character; zero if it is invalid or `\u`.
pub(super) static UNESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b'b' as usize] = 8;
    table[b'f' as usize] = 12;
    table[b'n' as usize] = b'\n';
    table[b'r' as usize] = b'\r';
    table[b't' as usize] = b'\t';
    table
};
