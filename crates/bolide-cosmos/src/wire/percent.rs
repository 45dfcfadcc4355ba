//! Percent-decoding, optimised for text without escapes, and percent-encoding.

use std::borrow::Cow;

use memchr::memchr;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Decodes percent escapes; `None` if the result is not UTF-8.
///
/// Every signature has a few, so the text between them is copied at once: the iterator of the library goes through it byte by byte.
pub(crate) fn decode(text: &str) -> Option<Cow<'_, str>> {
    let mut rest = text.as_bytes();
    let Some(mut at) = memchr(b'%', rest) else {
        return Some(Cow::Borrowed(text));
    };
    let mut bytes = Vec::with_capacity(text.len());
    loop {
        bytes.extend_from_slice(&rest[..at]);
        let (decoded, length) = escape(&rest[at..]).map_or((b'%', 1), |byte| (byte, 3));
        bytes.push(decoded);
        rest = &rest[at + length..];
        match memchr(b'%', rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    bytes.extend_from_slice(rest);
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The byte of the escape at the beginning of a text, unless it is a percent sign without two digits.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

/// As [`decode`], with a replacement character for bytes that are not UTF-8.
pub(crate) fn decode_lossy(text: &str) -> Cow<'_, str> {
    decode(text).unwrap_or_else(|| percent_decode_str(text).decode_utf8_lossy())
}

/// Escapes everything except letters and digits, so that every client can decode it.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests;
