//! Ways to split bytes into chunks, as a network or a pipe would.

/// The bytes after long runs were expanded: `0x01 n` becomes `n` KiB of `x`, so that short inputs reach the code for long messages.
pub(crate) fn expand(data: &[u8]) -> Vec<u8> {
    let mut expanded = Vec::with_capacity(data.len());
    let mut rest = data;
    while let [first, after @ ..] = rest {
        match (first, after) {
            (1, [count, after @ ..]) => {
                expanded.resize(expanded.len() + (usize::from(*count) << 10), b'x');
                rest = after;
            }
            _ => {
                expanded.push(*first);
                rest = after;
            }
        }
    }
    expanded
}

/// Splits the bytes in several ways: by bytes (if there are few), in the middle of each line end, and in sizes that follow from `seed`.
pub(crate) fn ways(data: &[u8], seed: u8) -> Vec<Vec<&[u8]>> {
    let mut ways = vec![
        vec![data],
        irregular(data, seed),
        data.split_inclusive(|byte| *byte == b'\r').collect(),
    ];
    if data.len() <= 4096 {
        ways.push(data.chunks(1).collect());
    }
    ways
}

fn irregular(mut data: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u32::from(seed) | 1;
    let mut chunks = Vec::new();
    while !data.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Mostly short chunks, now and then one that is longer than a read buffer.
        let size = match state >> 28 {
            0..12 => 1 + (state >> 20) as usize % 40,
            12..15 => 1 + (state >> 16) as usize % 3000,
            _ => 70_000,
        };
        let (chunk, rest) = data.split_at(size.min(data.len()));
        chunks.push(chunk);
        data = rest;
    }
    chunks
}
