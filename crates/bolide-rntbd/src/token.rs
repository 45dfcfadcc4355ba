//! Tokens: the values of a frame, each with its id and its type.
//!
//! ```text
//!   type           value                        type              value
//!   00 Byte        u8                           08 String         u16 length, UTF-8
//!   01 UShort      u16                          09 ULongString    u32 length, UTF-8
//!   02 ULong       u32                          0A SmallBytes     u8 length, bytes
//!   03 Long        i32                          0B Bytes          u16 length, bytes
//!   04 ULongLong   u64                          0C ULongBytes     u32 length, bytes
//!   05 LongLong    i64                          0D Float          f32
//!   06 Guid        16 bytes                     0E Double         f64
//!   07 SmallString u8 length, UTF-8
//! ```
//!
//! Source: rntbd.md §3.4.

use bytes::Bytes;

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A frame whose length cannot be.
    #[error("a frame of {length} bytes, which must have from {least} to {most}")]
    Length {
        /// What the frame says.
        length: usize,
        /// The head of a frame without tokens.
        least: usize,
        /// The limit of the reader.
        most: usize,
    },
    /// A token that goes on behind the end of the head.
    #[error("token {0:#06x} is cut off")]
    CutOff(u16),
    /// Bytes behind the last token that are too few for another one.
    #[error("{0} bytes behind the last token")]
    Rest(usize),
    /// A type that does not exist.
    #[error("token {id:#06x} has the unknown type {kind:#04x}")]
    Kind {
        /// The token.
        id: u16,
        /// Its type.
        kind: u8,
    },
    /// More tokens than any client sends.
    #[error("more than {MOST} tokens")]
    TooMany,
    /// An id that is there twice.
    #[error("token {0:#06x} is there twice")]
    Twice(u16),
    /// Text that is no UTF-8.
    #[error("the text of token {0:#06x} is not UTF-8")]
    Text(u16),
    /// A token that must be there and is not.
    #[error("token {0:#06x} is missing")]
    Missing(u16),
    /// A value of another type than the token has.
    #[error("token {0:#06x} has another type")]
    Other(u16),
}

/// Tokens of a frame, at most. There are some 300.
const MOST: usize = 1024;
/// Most requests have fewer.
const USUAL: usize = 20;
/// Most responses are shorter.
const USUAL_BYTES: usize = 512;

/// The type of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A byte.
    Byte = 0x00,
    /// 16 bits.
    UShort = 0x01,
    /// 32 bits.
    ULong = 0x02,
    /// 32 bits, signed.
    Long = 0x03,
    /// 64 bits.
    ULongLong = 0x04,
    /// 64 bits, signed.
    LongLong = 0x05,
    /// 16 bytes.
    Guid = 0x06,
    /// Text of up to 255 bytes.
    SmallString = 0x07,
    /// Text of up to 64 KiB.
    String = 0x08,
    /// Text.
    ULongString = 0x09,
    /// Up to 255 bytes.
    SmallBytes = 0x0A,
    /// Up to 64 KiB.
    Bytes = 0x0B,
    /// Bytes.
    ULongBytes = 0x0C,
    /// A float.
    Float = 0x0D,
    /// A double.
    Double = 0x0E,
}

impl Kind {
    /// All of them, by their numbers.
    pub const ALL: [Kind; 15] = [
        Kind::Byte,
        Kind::UShort,
        Kind::ULong,
        Kind::Long,
        Kind::ULongLong,
        Kind::LongLong,
        Kind::Guid,
        Kind::SmallString,
        Kind::String,
        Kind::ULongString,
        Kind::SmallBytes,
        Kind::Bytes,
        Kind::ULongBytes,
        Kind::Float,
        Kind::Double,
    ];

    fn of(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }

    /// How the value is laid out.
    fn layout(self) -> Layout {
        match self {
            Kind::Byte => Layout::Fixed(1),
            Kind::UShort => Layout::Fixed(2),
            Kind::ULong | Kind::Long | Kind::Float => Layout::Fixed(4),
            Kind::ULongLong | Kind::LongLong | Kind::Double => Layout::Fixed(8),
            Kind::Guid => Layout::Fixed(16),
            Kind::SmallString | Kind::SmallBytes => Layout::Counted(1),
            Kind::String | Kind::Bytes => Layout::Counted(2),
            Kind::ULongString | Kind::ULongBytes => Layout::Counted(4),
        }
    }

    /// Whether it is one of the three types of text.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::SmallString | Kind::String | Kind::ULongString)
    }
}

enum Layout {
    /// So many bytes.
    Fixed(usize),
    /// A length of so many bytes, and then the bytes.
    Counted(usize),
}

/// A token that was read. Its value is a part of the frame's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub id: u16,
    /// Its type, as it was sent.
    pub kind: Kind,
    /// The bytes of the value, without its length.
    value: Bytes,
}

impl Token {
    /// The text.
    ///
    /// # Errors
    /// It is of another type, or no UTF-8.
    pub fn text(&self) -> Result<&str, Malformed> {
        if !self.kind.is_text() {
            return Err(Malformed::Other(self.id));
        }
        str::from_utf8(&self.value).map_err(|_| Malformed::Text(self.id))
    }

    /// The text if it is ASCII, sharing the frame's bytes.
    ///
    /// # Errors
    /// It is of another type.
    pub fn ascii_text(&self) -> Result<Option<Bytes>, Malformed> {
        match self.kind.is_text() {
            true => Ok(self.value.is_ascii().then(|| self.value.clone())),
            false => Err(Malformed::Other(self.id)),
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// It is of another type.
    pub fn bytes(&self) -> Result<&Bytes, Malformed> {
        match self.kind {
            Kind::SmallBytes | Kind::Bytes | Kind::ULongBytes => Ok(&self.value),
            _ => Err(Malformed::Other(self.id)),
        }
    }

    /// The 16 bytes of a GUID, as they were sent.
    ///
    /// # Errors
    /// It is of another type.
    pub fn guid(&self) -> Result<[u8; 16], Malformed> {
        match self.kind {
            Kind::Guid => Ok(self.array()),
            _ => Err(Malformed::Other(self.id)),
        }
    }

    /// A whole number of any type.
    ///
    /// # Errors
    /// It is of another type.
    pub fn whole(&self) -> Result<i128, Malformed> {
        Ok(match self.kind {
            Kind::Byte => u8::from_le_bytes(self.array()).into(),
            Kind::UShort => u16::from_le_bytes(self.array()).into(),
            Kind::ULong => u32::from_le_bytes(self.array()).into(),
            Kind::Long => i32::from_le_bytes(self.array()).into(),
            Kind::ULongLong => u64::from_le_bytes(self.array()).into(),
            Kind::LongLong => i64::from_le_bytes(self.array()).into(),
            _ => return Err(Malformed::Other(self.id)),
        })
    }

    /// A double, or a float.
    ///
    /// # Errors
    /// It is of another type.
    pub fn double(&self) -> Result<f64, Malformed> {
        match self.kind {
            Kind::Float => Ok(f32::from_le_bytes(self.array()).into()),
            Kind::Double => Ok(f64::from_le_bytes(self.array())),
            _ => Err(Malformed::Other(self.id)),
        }
    }

    /// The bytes of a value of fixed length, which the reader has checked.
    fn array<const N: usize>(&self) -> [u8; N] {
        self.value.first_chunk().copied().unwrap_or([0; N])
    }
}

/// The tokens of a frame, in their order. Each id is there once at most.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens(Vec<Token>);

impl Tokens {
    /// Reads all tokens of a head. Tokens that no table knows are kept: their types say how long they are.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn read(bytes: Bytes) -> Result<Tokens, Malformed> {
        let mut tokens: Vec<Token> = Vec::with_capacity(USUAL);
        let mut at = 0;
        while at < bytes.len() {
            if tokens.len() == MOST {
                return Err(Malformed::TooMany);
            }
            tokens.push(read_token(&bytes, &mut at)?);
        }
        match twice(&tokens) {
            Some(id) => Err(Malformed::Twice(id)),
            None => Ok(Tokens(tokens)),
        }
    }

    /// The token of an id.
    pub fn get(&self, id: u16) -> Option<&Token> {
        self.0.iter().find(|token| token.id == id)
    }

    /// The token of an id.
    ///
    /// # Errors
    /// It is not there.
    pub fn required(&self, id: u16) -> Result<&Token, Malformed> {
        self.get(id).ok_or(Malformed::Missing(id))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Token> {
        self.0.iter()
    }
}

/// An id that two tokens have.
fn twice(tokens: &[Token]) -> Option<u16> {
    // Clients send tokens in the order of their ids, or nearly so.
    if tokens.is_sorted_by(|one, next| one.id < next.id) {
        return None;
    }
    let mut ids: Vec<u16> = tokens.iter().map(|token| token.id).collect();
    ids.sort_unstable();
    ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Reads the token at a place, and moves the place behind it.
fn read_token(bytes: &Bytes, at: &mut usize) -> Result<Token, Malformed> {
    let rest = &bytes[*at..];
    let Some(&[low, high, number]) = rest.first_chunk() else {
        return Err(Malformed::Rest(rest.len()));
    };
    let id = u16::from_le_bytes([low, high]);
    let kind = Kind::of(number).ok_or(Malformed::Kind { id, kind: number })?;
    let (skipped, length) = match kind.layout() {
        Layout::Fixed(length) => (3, length),
        Layout::Counted(size) => {
            let sent = rest.get(3..3 + size).ok_or(Malformed::CutOff(id))?;
            let length = sent
                .iter()
                .rev()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (3 + size, length)
        }
    };
    if rest.len() - skipped < length {
        return Err(Malformed::CutOff(id));
    }
    let from = *at + skipped;
    *at = from + length;
    let value = bytes.slice(from..*at);
    Ok(Token { id, kind, value })
}

/// Tokens that are written, one after the other.
#[derive(Debug)]
pub struct TokenWriter(Vec<u8>);

impl Default for TokenWriter {
    /// Without tokens.
    fn default() -> TokenWriter {
        TokenWriter(Vec::with_capacity(USUAL_BYTES))
    }
}

impl TokenWriter {
    /// The bytes of all tokens so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A byte.
    pub fn byte(&mut self, id: u16, value: u8) {
        self.fixed(id, Kind::Byte, &[value]);
    }

    /// 16 bits.
    pub fn u_short(&mut self, id: u16, value: u16) {
        self.fixed(id, Kind::UShort, &value.to_le_bytes());
    }

    /// 32 bits.
    pub fn u_long(&mut self, id: u16, value: u32) {
        self.fixed(id, Kind::ULong, &value.to_le_bytes());
    }

    /// 64 bits, signed.
    pub fn long_long(&mut self, id: u16, value: i64) {
        self.fixed(id, Kind::LongLong, &value.to_le_bytes());
    }

    /// A double.
    pub fn double(&mut self, id: u16, value: f64) {
        self.fixed(id, Kind::Double, &value.to_le_bytes());
    }

    /// A GUID, as bytes.
    pub fn guid(&mut self, id: u16, value: [u8; 16]) {
        self.fixed(id, Kind::Guid, &value);
    }

    /// Text or bytes of a type with a length. What is longer than the type allows is left out; returns whether it was written.
    pub fn counted(&mut self, id: u16, kind: Kind, value: &[u8]) -> bool {
        let Layout::Counted(size) = kind.layout() else {
            return false;
        };
        let length = value.len().to_le_bytes();
        if length[size..].iter().any(|byte| *byte != 0) {
            return false;
        }
        self.head(id, kind);
        self.0.extend_from_slice(&length[..size]);
        self.0.extend_from_slice(value);
        true
    }

    fn fixed(&mut self, id: u16, kind: Kind, value: &[u8]) {
        self.head(id, kind);
        self.0.extend_from_slice(value);
    }

    fn head(&mut self, id: u16, kind: Kind) {
        let [low, high] = id.to_le_bytes();
        self.0.extend_from_slice(&[low, high, kind as u8]);
    }
}

#[cfg(test)]
mod tests;
