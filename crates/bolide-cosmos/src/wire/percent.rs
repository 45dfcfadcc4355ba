//! Percent-decoding of what usually needs none, and encoding.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The text behind percent-escapes; `None` if it is not UTF-8.
pub(crate) fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    // Room at once: the iterator cannot tell how much it will be.
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend(percent_decode_str(text));
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// As [`decode`], with a replacement character for what is not UTF-8.
pub(crate) fn decode_lossy(text: &str) -> Cow<'_, str> {
    decode(text).unwrap_or_else(|| percent_decode_str(text).decode_utf8_lossy())
}

/// A text with everything escaped but letters and digits: any client's decoder gives it back.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests;
