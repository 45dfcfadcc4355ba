//! Cosmos binary JSON: bodies that start with `0x80`, which no JSON text does.
//!
//! The Rust SDK sends items in this format by default, .NET with `AZURE_COSMOS_BINARY_ENCODING_ENABLED`. Responses are always text, which both accept
//! whatever they requested: they check the first byte. All integers are little-endian:
//!
//!   literals   00..1F integer 0..31 · D0 null · D1 false · D2 true
//!   numbers    C7 u64 · C8 u8 · C9 i16 · CA i32 · CB i64 · CC f64 · CD f32 · CE f64 · D7 u8 · D8 i8 · D9 i16 · DA i32 · DB i64 · DC u32
//!   strings    20..3F, 71..C6: see `strings`; also D3 GUID · DD/DE/DF bytes (length u8/u16/u32), which JSON writes as base64
//!   arrays     E0 [] · E1 item · E2/E3/E4 byte length (u8/u16/u32) · E5/E6/E7 byte length and count
//!   objects    E8 {} · E9 member · EA/EB/EC byte length · ED/EE/EF byte length and count
//!   uniform    F0/F1 marker of D7..DC, CD or CE, count (u8/u16), that many numbers without markers
//!              F2/F3 F0/F1, marker, count of numbers in each array, count of arrays (u8/u16 both), all the numbers
//!
//! Refused, as by the SDKs' own readers: CF (half-precision numbers, which JSON cannot express), 40..67 (strings of a dictionary that only the
//! service has), and undefined markers.
//!
//! Source: `JsonBinaryEncoding.*.cs` in .NET's SDK, `binary_json` in the Rust driver.

use std::io::{self, Write};

use bolide_model::document::number;
use bolide_model::{Error, ErrorKind, Result, limits};
use bytes::Bytes;
use serde_json::Number;

mod strings;

/// First byte of a binary body.
const MARK: u8 = 0x80;
/// Maximum nesting: more than a batch of the deepest documents needs, so that the document parser reports the limit.
const NESTING: usize = limits::NESTING + 8;
/// Maximum length of the text of a body; a text body can have no more bytes either.
const TEXT_BYTES: usize = limits::ITEM_BYTES;
/// Maximum length of the text of all bodies of a batch together. Without references, numbers of four bytes with a text of twenty are the longest that
/// clients send.
const BATCH_TEXT_BYTES: usize = 8 * limits::ITEM_BYTES;

/// Converts a body to JSON text; a text body is returned as it is.
///
/// # Errors
/// - `BadRequest`: a binary body is cut short, nests too deep, or has an undefined marker.
/// - `TooLarge`: its text is longer than a text body may be, which is possible with short references to long strings.
pub(crate) fn to_text(body: &Bytes) -> Result<Bytes> {
    TextBudget::of_one().text_of(body)
}

/// The remaining length of text for binary bodies: short references to long strings make long texts from few bytes, in each body of a batch.
#[derive(Debug)]
pub(crate) struct TextBudget {
    text_bytes: usize,
}

impl TextBudget {
    /// For one body.
    pub fn of_one() -> TextBudget {
        TextBudget { text_bytes: TEXT_BYTES }
    }

    /// For the bodies of a batch.
    pub fn of_batch() -> TextBudget {
        TextBudget {
            text_bytes: BATCH_TEXT_BYTES,
        }
    }

    /// As [`to_text`], for one more body.
    ///
    /// # Errors
    /// As there; `TooLarge` also if the remaining length is exceeded.
    pub fn text_of(&mut self, body: &Bytes) -> Result<Bytes> {
        if !is_binary(body) {
            return Ok(body.clone());
        }
        let kept = Vec::with_capacity((body.len() * 2).min(self.text_bytes));
        let mut decoder = Decoder::new(body, Some(kept), self);
        let done = decoder.body();
        let text = decoder.text;
        self.text_bytes = self.text_bytes.saturating_sub(text.bytes);
        done?;
        Ok(text.kept.unwrap_or_default().into())
    }

    /// The size of a decoded binary body, up to the limit; for a malformed one, up to the error.
    pub fn size(&mut self, body: &[u8]) -> Size {
        let mut decoder = Decoder::new(body, None, self);
        // The error is reported when it is decoded.
        let _ = decoder.body();
        let size = Size {
            values: decoder.values,
            text_bytes: decoder.text.bytes,
        };
        self.text_bytes = self.text_bytes.saturating_sub(size.text_bytes);
        size
    }
}

pub(crate) fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&MARK)
}

/// The size of a decoded binary body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Number of values, including names of members.
    pub values: usize,
    /// Bytes of its text.
    pub text_bytes: usize,
}

struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
    text: Text,
    values: usize,
}

/// JSON text, stored or only counted.
struct Text {
    kept: Option<Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
}

impl Write for Text {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.bytes += part.len();
        if self.bytes > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let Some(text) = &mut self.kept {
            text.extend_from_slice(part);
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How the end of an array or object is given.
#[derive(Clone, Copy)]
struct Extent {
    /// Number of elements.
    count: Option<usize>,
    /// Position of the end.
    end: Option<usize>,
}

impl<'b> Decoder<'b> {
    fn new(bytes: &'b [u8], kept: Option<Vec<u8>>, text_budget: &TextBudget) -> Decoder<'b> {
        Decoder {
            bytes,
            at: 1,
            text: Text {
                kept,
                bytes: 0,
                max_bytes: text_budget.text_bytes.min(TEXT_BYTES),
            },
            values: 0,
        }
    }

    fn body(&mut self) -> Result<()> {
        self.value(0)?;
        if self.at != self.bytes.len() {
            return Err(bad("bytes follow the value", self.at));
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        if depth > NESTING {
            return Err(bad("the body nests too deep", self.at));
        }
        self.count_value()?;
        let at = self.at;
        let marker = self.byte()?;
        if let Some(string) = self.string_of(marker, at)? {
            return self.write_string(&string);
        }
        match marker {
            0xD0 => self.write(b"null"),
            0xD1 => self.write(b"false"),
            0xD2 => self.write(b"true"),
            0xE0..=0xE7 => {
                let extent = self.extent(marker - 0xE0)?;
                self.elements(extent, depth, *b"[]", Decoder::value)
            }
            0xE8..=0xEF => {
                let extent = self.extent(marker - 0xE8)?;
                self.elements(extent, depth, *b"{}", Decoder::member)
            }
            0xF0 | 0xF1 => {
                let numbers = self.byte()?;
                let count = self.length(marker - 0xF0)?;
                self.numbers(numbers, count)
            }
            0xF2 | 0xF3 => self.arrays_of_numbers(marker),
            _ => self.number(marker, at),
        }
    }

    /// An array of numbers with a common marker.
    fn numbers(&mut self, marker: u8, count: usize) -> Result<()> {
        let at = self.at;
        if !matches!(marker, 0xCD | 0xCE | 0xD7..=0xDC) {
            let what = format!("marker 0x{marker:02X} is not of a number that arrays share");
            return Err(bad(&what, at));
        }
        let extent = Extent::of(count);
        self.elements(extent, 0, *b"[]", |decoder, _| {
            decoder.count_value()?;
            decoder.number(marker, at)
        })
    }

    /// An array of arrays with equally many numbers, all with a common marker.
    fn arrays_of_numbers(&mut self, marker: u8) -> Result<()> {
        let at = self.at;
        if self.byte()? != marker - 2 {
            return Err(bad("arrays in a uniform array must be uniform arrays of numbers", at));
        }
        let numbers = self.byte()?;
        let count = self.length(marker - 0xF2)?;
        let arrays = self.length(marker - 0xF2)?;
        self.elements(Extent::of(arrays), 0, *b"[]", |decoder, _| {
            decoder.count_value()?;
            decoder.numbers(numbers, count)
        })
    }

    fn elements(
        &mut self,
        extent: Extent,
        depth: usize,
        [open, close]: [u8; 2],
        element: impl Fn(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        let Extent { count, end } = extent;
        self.write(&[open])?;
        let mut read = 0;
        while end.map_or(count != Some(read), |end| self.at < end) {
            if read > 0 {
                self.write(b",")?;
            }
            element(self, depth + 1)?;
            read += 1;
        }
        let ends_there = end.is_none_or(|end| self.at == end) && count.is_none_or(|count| read == count);
        if !ends_there {
            return Err(bad(
                "an array or object has another length or count than it says",
                self.at,
            ));
        }
        self.write(&[close])
    }

    fn member(&mut self, depth: usize) -> Result<()> {
        self.count_value()?;
        let at = self.at;
        let marker = self.byte()?;
        let Some(name) = self.string_of(marker, at)? else {
            return Err(bad("a member's name must be a string", at));
        };
        self.write_string(&name)?;
        self.write(b":")?;
        self.value(depth)
    }

    /// The extent of an array or object by the low three bits of its marker.
    fn extent(&mut self, form: u8) -> Result<Extent> {
        let (width, has_count) = match form {
            0 | 1 => return Ok(Extent::of(usize::from(form))),
            2..=4 => (form - 2, false),
            _ => (form - 5, true),
        };
        let bytes = self.length(width)?;
        let count = if has_count { Some(self.length(width)?) } else { None };
        let end = self.end_of(bytes)?;
        Ok(Extent { count, end: Some(end) })
    }

    /// The number after a marker at `at`.
    fn number(&mut self, marker: u8, at: usize) -> Result<()> {
        let number: Number = match marker {
            0x00..=0x1F => marker.into(),
            0xC7 => u64::from_le_bytes(self.take()?).into(),
            0xC8 | 0xD7 => self.byte()?.into(),
            0xC9 | 0xD9 => i16::from_le_bytes(self.take()?).into(),
            0xCA | 0xDA => i32::from_le_bytes(self.take()?).into(),
            0xCB | 0xDB => i64::from_le_bytes(self.take()?).into(),
            0xCC | 0xCE => finite(f64::from_le_bytes(self.take()?), at)?,
            0xCD => finite(f32::from_le_bytes(self.take()?).into(), at)?,
            0xD8 => i8::from_le_bytes(self.take()?).into(),
            0xDC => u32::from_le_bytes(self.take()?).into(),
            _ => return Err(bad(&format!("marker 0x{marker:02X} is not supported"), at)),
        };
        serde_json::to_writer(&mut self.text, &number).map_err(|_| too_large())
    }

    /// Every value takes a byte, except empty arrays in a uniform one: a few bytes must not produce millions of them.
    fn count_value(&mut self) -> Result<()> {
        self.values += 1;
        if self.values > self.bytes.len() {
            return Err(bad("there are more values than bytes", self.at));
        }
        Ok(())
    }

    /// A length or count of 1, 2 or 4 bytes.
    fn length(&mut self, width: u8) -> Result<usize> {
        Ok(match width {
            0 => usize::from(self.byte()?),
            1 => usize::from(u16::from_le_bytes(self.take()?)),
            _ => u32::from_le_bytes(self.take()?) as usize,
        })
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
        let end = self.end_of(length)?;
        let slice = &self.bytes[self.at..end];
        self.at = end;
        Ok(slice)
    }

    /// The end of the next `length` bytes.
    fn end_of(&self, length: usize) -> Result<usize> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        end.ok_or_else(|| bad("the body ends early", self.at))
    }

    fn write_string(&mut self, string: &str) -> Result<()> {
        serde_json::to_writer(&mut self.text, string).map_err(|_| too_large())
    }

    fn write(&mut self, part: &[u8]) -> Result<()> {
        self.text.write_all(part).map_err(|_| too_large())
    }
}

impl Extent {
    fn of(count: usize) -> Extent {
        Extent {
            count: Some(count),
            end: None,
        }
    }
}

fn finite(value: f64, at: usize) -> Result<Number> {
    number(value).ok_or_else(|| bad("a number is not finite", at))
}

fn bad(what: &str, at: usize) -> Error {
    Error::bad_request(format!("malformed binary JSON: {what}. byte={at}"))
}

fn too_large() -> Error {
    let message = format!(
        "Request size is too large: as text, the body takes more than the {TEXT_BYTES} bytes allowed, or all bodies of the batch more than \
         {BATCH_TEXT_BYTES}."
    );
    Error::new(ErrorKind::TooLarge, message)
}

#[cfg(test)]
mod tests;
