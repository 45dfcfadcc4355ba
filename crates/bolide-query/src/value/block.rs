//! Where in a block of text the bytes are that JSON's structure depends on, a bit for each byte, lowest first.

use wide::{u8x16, u8x64};

/// Bytes of a block.
pub const BLOCK: usize = 64;
/// Bytes of a short block.
pub const SHORT: usize = 16;

/// Bit n is about byte n of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    pub quotes: u64,
    pub backslashes: u64,
    /// `{` and `[`.
    pub opens: u64,
    /// `}` and `]`.
    pub closes: u64,
}

/// Brackets and braces differ in this bit only.
const BRACE_BIT: u8 = b'{' ^ b'[';

/// The marks of a block.
#[inline]
pub fn marks(block: &[u8; BLOCK]) -> Marks {
    let bytes = u8x64::new(*block);
    let braces = bytes | u8x64::splat(BRACE_BIT);
    let equal = |bytes: u8x64, byte: u8| bytes.simd_eq(u8x64::splat(byte)).to_bitmask();
    Marks {
        quotes: equal(bytes, b'"'),
        backslashes: equal(bytes, b'\\'),
        opens: equal(braces, b'{'),
        closes: equal(braces, b'}'),
    }
}

/// Where a short block has quotes or backslashes.
#[inline]
pub fn string_marks(block: &[u8; SHORT]) -> u32 {
    let bytes = u8x16::new(*block);
    let equal = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    (equal(b'"') | equal(b'\\')).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of the bytes that are one of `wanted`.
    fn bits(block: &[u8], wanted: &[u8]) -> u64 {
        (0..)
            .zip(block)
            .fold(0, |bits, (n, byte)| bits | u64::from(wanted.contains(byte)) << n)
    }

    #[test]
    fn every_byte_is_marked_for_what_it_is() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK {
                let mut block = [b' '; BLOCK];
                block[at] = byte;
                let expected = Marks {
                    quotes: bits(&block, b"\""),
                    backslashes: bits(&block, b"\\"),
                    opens: bits(&block, b"{["),
                    closes: bits(&block, b"}]"),
                };
                assert_eq!(marks(&block), expected, "{byte} at {at}");
                let short: &[u8; SHORT] = block.first_chunk().expect("a block is longer");
                assert_eq!(u64::from(string_marks(short)), bits(short, b"\"\\"), "{byte} at {at}");
            }
        }
    }
}
