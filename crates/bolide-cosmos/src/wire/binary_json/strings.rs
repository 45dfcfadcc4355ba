//! Strings of binary JSON. A length counts the string's characters, or its bytes if it is stored as UTF-8:
//!
//!   system     20..3F one of 32 names
//!   plain      80|n (n ≤ 63) · C0/C1/C2 length (u8/u16/u32), each followed by that many bytes of UTF-8
//!   reference  C3/C4/C5/C6 position (1 to 4 bytes) of another string in the body, no reference itself
//!   base64     71/72 padding, bytes · 73/74 the same for the URL's alphabet, each after a length in units of four characters (u8/u16)
//!   GUID       75 lower case · 76 upper case · 77 lower case in quotes, as etags are: 16 bytes of two digits each, low half first
//!   digits     78 lower-case hexadecimal · 79 upper-case · 7A of times: length u8, then two characters a byte, low half first
//!   packed     7B/7C/7D length u8, base, characters less base in 4/5/6 bits · 7E/7F length (u8/u16), characters in 7 bits; low bits first
//!
//! For base64, `padding` is the number of `=` at the end of the text, or the complement of the number that was left out. D3, a GUID that is not a
//! string, and DD/DE/DF, bytes, have no form in JSON: they become strings.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bolide_model::Result;

use super::{Decoder, bad};

/// The names with their own marker, from 0x20 on.
pub(super) const SYSTEM: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

const LOWER_CASE: &[u8; 16] = b"0123456789abcdef";
const UPPER_CASE: &[u8; 16] = b"0123456789ABCDEF";
const TIMES: &[u8; 16] = b" 0123456789:-.TZ";

impl<'b> Decoder<'b> {
    /// The string of a marker at `at`, or `None` if it is not a marker of a string.
    pub(super) fn string_of(&mut self, marker: u8, at: usize) -> Result<Option<Cow<'b, str>>> {
        let string = match marker {
            0x20..=0x3F => SYSTEM[usize::from(marker - 0x20)].into(),
            0x40..=0x67 => {
                let what = format!("marker 0x{marker:02X} is of a dictionary that only the service has");
                return Err(bad(&what, at));
            }
            0x71..=0x74 => self.base64(marker)?.into(),
            0x75 => self.guid(LOWER_CASE)?.into(),
            0x76 => self.guid(UPPER_CASE)?.into(),
            0x77 => format!("\"{}\"", self.guid(LOWER_CASE)?).into(),
            0x78 => self.digits(LOWER_CASE)?.into(),
            0x79 => self.digits(UPPER_CASE)?.into(),
            0x7A => self.digits(TIMES)?.into(),
            0x7B..=0x7D => {
                let length = self.byte()?;
                let base = self.byte()?;
                self.packed(usize::from(length), usize::from(marker - 0x77), base)?
                    .into()
            }
            0x7E | 0x7F => {
                let length = self.length(marker - 0x7E)?;
                self.packed(length, 7, 0)?.into()
            }
            0x80..=0xBF => self.plain(usize::from(marker & 0x3F))?.into(),
            0xC0..=0xC2 => {
                let length = self.length(marker - 0xC0)?;
                self.plain(length)?.into()
            }
            0xC3..=0xC6 => return self.referred(usize::from(marker - 0xC2), at).map(Some),
            0xD3 => self.guid_value()?.into(),
            0xDD..=0xDF => {
                let length = self.length(marker - 0xDD)?;
                STANDARD.encode(self.slice(length)?).into()
            }
            _ => return Ok(None),
        };
        Ok(Some(string))
    }

    fn plain(&mut self, length: usize) -> Result<&'b str> {
        let at = self.at;
        let bytes = self.slice(length)?;
        str::from_utf8(bytes).map_err(|_| bad("a string is not UTF-8", at))
    }

    /// The string that a position of `width` bytes refers to.
    fn referred(&mut self, width: usize, at: usize) -> Result<Cow<'b, str>> {
        let mut position = [0; 4];
        position[..width].copy_from_slice(self.slice(width)?);
        let position = u32::from_le_bytes(position) as usize;
        let is_string = |marker: &u8| matches!(marker, 0x20..=0xC2);
        let marker = self.bytes.get(position).copied().filter(is_string);
        let next = std::mem::replace(&mut self.at, position + 1);
        let string = match marker.filter(|_| position > 0) {
            Some(marker) => self.string_of(marker, position)?,
            None => None,
        };
        self.at = next;
        string.ok_or_else(|| bad("a reference does not lead to a string", at))
    }

    fn base64(&mut self, marker: u8) -> Result<String> {
        let at = self.at;
        let is_url = marker >= 0x73;
        let padded = 4 * self.length((marker - 0x71) % 2)?;
        let padding = self.byte()?;
        let (missing, length) = match padding {
            0..=2 => (usize::from(padding), padded),
            _ => (usize::from(!padding), padded.saturating_sub(usize::from(!padding))),
        };
        if missing > padded.min(2) {
            return Err(bad("the padding of a base64 string must be 0 to 2", at));
        }
        let bytes = self.slice((padded - missing) * 3 / 4)?;
        let mut text = if is_url {
            URL_SAFE.encode(bytes)
        } else {
            STANDARD.encode(bytes)
        };
        text.truncate(length);
        Ok(text)
    }

    /// 32 digits in groups of 8, 4, 4, 4 and 12.
    fn guid(&mut self, digits: &[u8; 16]) -> Result<String> {
        let mut text = String::with_capacity(36);
        for (at, byte) in self.take::<16>()?.into_iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.extend(halves(byte).map(|half| char::from(digits[half])));
        }
        Ok(text)
    }

    fn guid_value(&mut self) -> Result<String> {
        let first = u32::from_le_bytes(self.take()?);
        let second = u16::from_le_bytes(self.take()?);
        let third = u16::from_le_bytes(self.take()?);
        let [a, b, rest @ ..] = self.take::<8>()?;
        let rest = rest.iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
        Ok(format!(
            "{first:08x}-{second:04x}-{third:04x}-{a:02x}{b:02x}-{rest:012x}"
        ))
    }

    /// Characters of an alphabet of 16.
    fn digits(&mut self, alphabet: &[u8; 16]) -> Result<String> {
        let at = self.at;
        let length = usize::from(self.byte()?);
        let bytes = self.slice(length.div_ceil(2))?;
        let mut halves = bytes.iter().copied().flat_map(halves);
        let text = halves
            .by_ref()
            .take(length)
            .map(|half| char::from(alphabet[half]))
            .collect();
        if halves.any(|half| half != 0) {
            return Err(bad("something follows the last digit of a string", at));
        }
        Ok(text)
    }

    /// Characters of `bits` bits, each added to `base`.
    fn packed(&mut self, length: usize, bits: usize, base: u8) -> Result<String> {
        let at = self.at;
        let bytes = self.slice((length * bits).div_ceil(8))?;
        let character = |index: usize| {
            let (byte, shift) = (index * bits / 8, index * bits % 8);
            let high = bytes.get(byte + 1).copied().unwrap_or_default();
            let window = u16::from_le_bytes([bytes[byte], high]) >> shift;
            let character = base.checked_add((window & ((1 << bits) - 1)) as u8)?;
            Some(char::from(character)).filter(char::is_ascii)
        };
        let text: Option<String> = (0..length).map(character).collect();
        text.ok_or_else(|| bad("a packed string is not ASCII", at))
    }
}

fn halves(byte: u8) -> [usize; 2] {
    [usize::from(byte & 0x0F), usize::from(byte >> 4)]
}
