//! Compression of requests (RFC 1952).

use miniz_oxide::deflate::compress_to_vec;

/// The level of compression. A higher one takes several times as long for a few percent.
const LEVEL: u8 = 4;

/// A deflated member without a name or a time.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Compresses a body.
pub(crate) fn compress(body: &[u8]) -> Vec<u8> {
    let deflated = compress_to_vec(body, LEVEL);
    let mut compressed = Vec::with_capacity(HEAD.len() + deflated.len() + 8);
    compressed.extend_from_slice(&HEAD);
    compressed.extend_from_slice(&deflated);
    compressed.extend_from_slice(&checksum(body).to_le_bytes());
    // The length is counted modulo 2^32.
    #[expect(clippy::cast_possible_truncation, reason = "the format wants it so")]
    let length = body.len() as u32;
    compressed.extend_from_slice(&length.to_le_bytes());
    compressed
}

/// CRC-32, as zlib computes it.
fn checksum(body: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |sum: u32, byte: &u8| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8);
    !body.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ 0xedb8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
        assert_eq!(checksum(b""), 0);
    }

    #[test]
    fn what_is_compressed_is_found_again() {
        let body = b"span ".repeat(1000);
        let compressed = compress(&body);
        assert!(compressed.len() < 200);
        let deflated = &compressed[10..compressed.len() - 8];
        assert_eq!(miniz_oxide::inflate::decompress_to_vec(deflated).unwrap(), body);
    }
}
