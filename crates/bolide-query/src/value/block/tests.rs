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
