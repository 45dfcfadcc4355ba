//! Finds the structural bytes of JSON in a block of text, as one bit per byte, lowest first.

use wide::{u8x16, u8x64};

/// Bytes of a block.
pub const BLOCK: usize = 64;
/// Bytes of a short block.
pub const SHORT: usize = 16;

/// Bit n describes byte n of a block.
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

/// Quotes and backslashes of a short block.
#[inline]
pub fn string_marks(block: &[u8; SHORT]) -> u32 {
    let bytes = u8x16::new(*block);
    let equal = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    (equal(b'"') | equal(b'\\')).to_bitmask()
}

#[cfg(test)]
mod tests;
