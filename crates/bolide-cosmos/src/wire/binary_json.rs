//! Cosmos binary JSON, as far as clients write it: bodies that start with `0x80` (which no JSON text does).
//!
//! The Rust SDK sends items so unless told otherwise. Answers stay text, which it accepts. All integers are little-endian:
//!
//!   literals   00..1F integer 0..31 · D0 null · D1 false · D2 true
//!   numbers    C7 u64 · C8 u8 · C9 i16 · CA i32 · CB i64 · CC f64
//!   strings    80|n (n ≤ 63) · C0 u8 · C1 u16 · C2 u32, each followed by that many bytes of UTF-8
//!   arrays     E0 [] · E1 item · E2/E3/E4 byte length (u8/u16/u32) · E5/E6/E7 byte length and count
//!   objects    E8 {} · E9 member · EA/EB/EC byte length · ED/EE/EF byte length and count
//!
//! Left out: system, user, reference and compressed strings and uniform arrays. No SDK writes them to a gateway.

use bolide_model::{Error, Result, limits};
use bytes::Bytes;

/// First byte of a binary body.
const MARK: u8 = 0x80;

/// The body as JSON text, whichever form it came in.
///
/// # Errors
/// `BadRequest` when a binary body is cut short, nests too deep or uses what is left out.
pub(crate) fn to_text(body: &Bytes) -> Result<Bytes> {
    match body.split_first() {
        Some((&MARK, rest)) => decode(rest).map(Bytes::from),
        _ => Ok(body.clone()),
    }
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = Decoder {
        bytes,
        at: 0,
        text: Vec::with_capacity(bytes.len() * 2),
    };
    decoder.value(0)?;
    if decoder.at != bytes.len() {
        return Err(bad("bytes follow the value", decoder.at));
    }
    Ok(decoder.text)
}

struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
    text: Vec<u8>,
}

/// How a container says where it ends.
#[derive(Clone, Copy)]
enum Extent {
    /// After so many elements.
    Count(usize),
    /// At this position.
    End(usize),
}

impl<'b> Decoder<'b> {
    fn value(&mut self, depth: usize) -> Result<()> {
        // One more than a document may nest, so that the document parser is the one to name the limit.
        if depth > limits::NESTING + 1 {
            return Err(bad("the body nests too deep", self.at));
        }
        let marker = self.byte()?;
        match marker {
            0x00..=0x1F => self.write(marker),
            0x80..=0xBF => self.string(usize::from(marker & 0x3F))?,
            0xC0..=0xC2 => {
                let length = self.length(marker - 0xC0)?;
                self.string(length)?;
            }
            0xC7 => {
                let number = u64::from_le_bytes(self.take()?);
                self.write(number);
            }
            0xC8 => {
                let number = self.byte()?;
                self.write(number);
            }
            0xC9 => {
                let number = i16::from_le_bytes(self.take()?);
                self.write(number);
            }
            0xCA => {
                let number = i32::from_le_bytes(self.take()?);
                self.write(number);
            }
            0xCB => {
                let number = i64::from_le_bytes(self.take()?);
                self.write(number);
            }
            0xCC => self.double()?,
            0xD0 => self.text.extend_from_slice(b"null"),
            0xD1 => self.text.extend_from_slice(b"false"),
            0xD2 => self.text.extend_from_slice(b"true"),
            0xE0..=0xE7 => {
                let extent = self.extent(marker - 0xE0)?;
                self.container(extent, depth, (b'[', b']'), Decoder::value)?;
            }
            0xE8..=0xEF => {
                let extent = self.extent(marker - 0xE8)?;
                self.container(extent, depth, (b'{', b'}'), Decoder::member)?;
            }
            _ => return Err(bad(&format!("marker 0x{marker:02X} is not supported"), self.at - 1)),
        }
        Ok(())
    }

    fn container(
        &mut self,
        extent: Extent,
        depth: usize,
        brackets: (u8, u8),
        element: fn(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        self.text.push(brackets.0);
        let mut count = 0;
        while match extent {
            Extent::Count(elements) => count < elements,
            Extent::End(end) => self.at < end,
        } {
            if count > 0 {
                self.text.push(b',');
            }
            element(self, depth + 1)?;
            count += 1;
        }
        self.text.push(brackets.1);
        Ok(())
    }

    fn member(&mut self, depth: usize) -> Result<()> {
        let at = self.at;
        let start = self.text.len();
        self.value(depth)?;
        if self.text[start] != b'"' {
            return Err(bad("a member's name must be a string", at));
        }
        self.text.push(b':');
        self.value(depth)
    }

    /// The extent of an array or object by the low three bits of its marker.
    fn extent(&mut self, form: u8) -> Result<Extent> {
        match form {
            0 => Ok(Extent::Count(0)),
            1 => Ok(Extent::Count(1)),
            2..=4 => {
                let bytes = self.length(form - 2)?;
                Ok(Extent::End(self.at.saturating_add(bytes)))
            }
            _ => {
                self.length(form - 5)?;
                Ok(Extent::Count(self.length(form - 5)?))
            }
        }
    }

    /// A length of 1, 2 or 4 bytes.
    fn length(&mut self, width: u8) -> Result<usize> {
        Ok(match width {
            0 => usize::from(self.byte()?),
            1 => usize::from(u16::from_le_bytes(self.take()?)),
            _ => u32::from_le_bytes(self.take()?) as usize,
        })
    }

    fn string(&mut self, length: usize) -> Result<()> {
        let at = self.at;
        let bytes = self.slice(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| bad("a string is not UTF-8", at))?;
        serde_json::to_writer(&mut self.text, text).map_err(|error| Error::internal(error.to_string()))
    }

    fn double(&mut self) -> Result<()> {
        let at = self.at;
        let number = f64::from_le_bytes(self.take()?);
        let number = serde_json::Number::from_f64(number).ok_or_else(|| bad("a number is not finite", at))?;
        self.write(number);
        Ok(())
    }

    fn write(&mut self, number: impl ToString) {
        self.text.extend_from_slice(number.to_string().as_bytes());
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(N)?);
        Ok(array)
    }

    fn slice(&mut self, length: usize) -> Result<&'b [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| bad("the body ends early", self.at))?;
        let slice = &self.bytes[self.at..end];
        self.at = end;
        Ok(slice)
    }
}

fn bad(what: &str, at: usize) -> Error {
    // The mark stands before what is counted.
    Error::bad_request(format!("malformed binary JSON: {what}. byte={}", at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(hex: &str) -> Result<String> {
        let bytes: Vec<u8> = hex
            .split_ascii_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("the test writes hex"))
            .collect();
        to_text(&Bytes::from(bytes)).map(|text| String::from_utf8(text.to_vec()).expect("JSON text is UTF-8"))
    }

    #[test]
    fn an_item_of_the_rust_sdk_is_read() {
        let item = text("80 ED 0B 02 82 69 64 81 31 85 63 6F 75 6E 74 07");
        assert_eq!(item.expect("well formed"), r#"{"id":"1","count":7}"#);
    }

    #[test]
    fn every_kind_of_value_is_read() {
        for (hex, json) in [
            ("80 1F", "31"),
            ("80 D0", "null"),
            ("80 D1", "false"),
            ("80 D2", "true"),
            ("80 CB FF FF FF FF FF FF FF FF", "-1"),
            ("80 C7 FF FF FF FF FF FF FF FF", "18446744073709551615"),
            ("80 CC 00 00 00 00 00 00 F8 3F", "1.5"),
            ("80 C9 FE FF", "-2"),
            ("80 C0 02 22 0A", r#""\"\n""#),
            ("80 C1 01 00 61", r#""a""#),
            ("80 E0", "[]"),
            ("80 E1 01", "[1]"),
            ("80 E2 02 01 02", "[1,2]"),
            ("80 E5 02 02 01 02", "[1,2]"),
            ("80 E8", "{}"),
            ("80 E9 81 61 E0", r#"{"a":[]}"#),
            ("80 EA 03 81 61 01", r#"{"a":1}"#),
        ] {
            assert_eq!(text(hex).expect(hex), json, "{hex}");
        }
    }

    #[test]
    fn what_is_cut_short_or_unknown_is_refused() {
        for hex in [
            "80",
            "80 CB 00",
            "80 85 61",
            "80 E5 02 02 01",
            "80 E9 01 01",
            "80 40",
            "80 01 01",
            "80 81 FF",
            "80 CC 00 00 00 00 00 00 F0 7F",
        ] {
            assert!(text(hex).is_err(), "{hex}");
        }
    }

    #[test]
    fn nesting_without_end_is_refused_early() {
        let mut bytes = vec![0x80];
        bytes.extend(std::iter::repeat_n(0xE1, 100_000));
        assert!(
            to_text(&Bytes::from(bytes))
                .expect_err("too deep")
                .message
                .contains("too deep")
        );
    }

    #[test]
    fn text_passes_untouched() {
        let body = Bytes::from_static(br#"{"id":"1"}"#);
        assert_eq!(to_text(&body).expect("text"), body);
    }
}
