//! A PNG encoder for small images with a palette. Pixels are stored uncompressed: images here have at most 64 Ki pixels,
//! and a compressor would be more code than the rest.

/// Red, green and blue.
pub(in crate::demo) type Rgb = [u8; 3];

/// The most bytes of a stored deflate block.
const MAX_STORED: usize = 0xffff;

/// Encodes an image of `width` by `height` pixels; `pixel(x, y)` is an index into `palette`, which has at most 256 colours.
pub(in crate::demo) fn encode(width: u32, height: u32, palette: &[Rgb], pixel: impl Fn(u32, u32) -> u8) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Bit depth 8, colour type palette, and compression, filter and interlace methods 0.
    header.extend([8, 3, 0, 0, 0]);
    chunk(&mut png, *b"IHDR", &header);
    chunk(&mut png, *b"PLTE", palette.as_flattened());
    let mut rows = Vec::with_capacity((width as usize + 1) * height as usize);
    for y in 0..height {
        // Each row starts with its filter type: none.
        rows.push(0);
        rows.extend((0..width).map(|x| pixel(x, y)));
    }
    chunk(&mut png, *b"IDAT", &zlib_stream(&rows));
    chunk(&mut png, *b"IEND", &[]);
    png
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let start = png.len();
    png.extend(kind);
    png.extend(data);
    let checksum = crc32(&png[start..]);
    png.extend(checksum.to_be_bytes());
}

/// A zlib stream of stored blocks.
fn zlib_stream(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = data.chunks(MAX_STORED).peekable();
    if blocks.peek().is_none() {
        stream.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(data).to_be_bytes());
    stream
}

fn crc32(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn adler32(data: &[u8]) -> u32 {
    let (low, high) = data.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    (high << 16) | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_the_published_check_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(b""), 1);
    }

    #[test]
    fn long_data_is_split_and_only_the_last_block_is_final() {
        for (length, finals) in [(0, vec![1]), (5, vec![1]), (0xffff, vec![1]), (0x1_0000, vec![0, 1])] {
            let stream = zlib_stream(&vec![7; length]);
            let (mut at, mut seen) = (2, Vec::new());
            while at < stream.len() - 4 {
                seen.push(stream[at]);
                at += 5 + usize::from(u16::from_le_bytes([stream[at + 1], stream[at + 2]]));
            }
            assert_eq!(seen, finals, "{length}");
            assert_eq!(stream.len(), 2 + 5 * finals.len() + length + 4);
        }
    }

    #[test]
    fn one_pixel_is_a_whole_png() {
        let png = encode(1, 1, &[[255, 0, 0]], |_, _| 0);
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&png[12..16], b"IHDR");
        assert_eq!(&png[png.len() - 12..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    }
}
