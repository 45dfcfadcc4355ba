//! Percent-decoding, optimised for text without escapes, and percent-encoding.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Decodes percent escapes; `None` if the result is not UTF-8.
pub(crate) fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    // Reserved at once, because the iterator does not know its length.
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend(percent_decode_str(text));
    String::from_utf8(bytes).ok().map(Cow::Owned)
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
