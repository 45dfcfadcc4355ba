//! The order-preserving encoding of values.
//!
//! Bytes compare as the values do (`mongo.md §9`), and equal values have equal bytes: 1, 1.0 and the decimal 1.00 are one key. Each value ends where
//! its own bytes say so, so values written one after another compare field by field. A descending field is the same bytes, inverted.
//!
//! | value | bytes after the [`rank`] |
//! | --- | --- |
//! | number | see `number.rs`; the rank is increased by the class of the number |
//! | string | UTF-8 with NUL as `00 FF`, then `00 00`; with a collation its sort key in the same way |
//! | object | for each field: rank of the value, name, `00`, value; at the end `00` |
//! | array | the values; at the end `00` |
//! | binary data | length (u32), subtype, bytes |
//! | object id | 12 bytes |
//! | boolean | none; the rank is increased by one for true |
//! | date | milliseconds (i64, sign inverted) |
//! | timestamp | seconds (u32), increment (u32) |
//! | regular expression | pattern, `00`, options, `00` |
//! | DBPointer | length of the namespace (u32), namespace, 12 bytes |
//! | JavaScript | as a string; its scope follows as an object |
//! | null, undefined, MinKey, MaxKey | none |
//!
//! Whole numbers are big-endian.
//!
//! Values of the SQL language are encoded in the same way, with the types of [`sql_rank`].

mod number;
mod sql_scalar;

pub use sql_scalar::{SqlScalar, decode_sql_scalar, sql_scalar_length};

/// First bytes of encoded values, in the order of types.
///
/// Numbers use the six bytes from [`rank::NUMBER`], booleans the two from [`rank::BOOLEAN`].
pub mod rank {
    /// Before every other value.
    pub const MIN_KEY: u8 = 0x10;
    /// Also the key of an empty array.
    pub const UNDEFINED: u8 = 0x18;
    /// Also the key of a missing field.
    pub const NULL: u8 = 0x20;
    /// Every numeric type.
    pub const NUMBER: u8 = 0x28;
    /// Strings and symbols.
    pub const STRING: u8 = 0x30;
    /// Embedded documents.
    pub const OBJECT: u8 = 0x38;
    /// Arrays as whole values.
    pub const ARRAY: u8 = 0x40;
    /// Binary data of every subtype.
    pub const BINARY: u8 = 0x48;
    /// Object ids.
    pub const OBJECT_ID: u8 = 0x50;
    /// False, and true one above it.
    pub const BOOLEAN: u8 = 0x58;
    /// Dates.
    pub const DATE: u8 = 0x60;
    /// Timestamps.
    pub const TIMESTAMP: u8 = 0x68;
    /// Regular expressions.
    pub const REGEX: u8 = 0x70;
    /// DBPointers, a deprecated type.
    pub const DB_POINTER: u8 = 0x78;
    /// JavaScript without scope.
    pub const CODE: u8 = 0x80;
    /// JavaScript with scope.
    pub const CODE_WITH_SCOPE: u8 = 0x88;
    /// After every other value.
    pub const MAX_KEY: u8 = 0xF0;
}

/// First bytes of encoded values of the SQL language, in its order of types (cosmos-sql §13).
///
/// An index has values of one language only. Null, numbers and strings are encoded as for BSON; every other byte is used by one language.
pub mod sql_rank {
    use super::rank;

    /// A missing value.
    pub const UNDEFINED: u8 = rank::UNDEFINED;
    /// Null.
    pub const NULL: u8 = rank::NULL;
    /// False, and true one above it.
    pub const FALSE: u8 = 0x24;
    /// The first of the six bytes of numbers.
    pub const NUMBER: u8 = rank::NUMBER;
    /// Strings.
    pub const STRING: u8 = rank::STRING;
    /// Arrays.
    pub const ARRAY: u8 = 0x34;
    /// Objects.
    pub const OBJECT: u8 = 0x36;
    /// After every value.
    pub const END: u8 = 0x37;

    // The six bytes of numbers are before strings.
    const _: () = assert!(UNDEFINED < NULL && NULL < FALSE && FALSE + 1 < NUMBER && NUMBER + 5 < STRING);
    const _: () = assert!(STRING < ARRAY && ARRAY < OBJECT && OBJECT < END);
}

/// The direction of one field of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Appends encoded values to a buffer.
///
/// An object is [`Encoder::begin_object`], then [`Encoder::field`] and one value for each field, then [`Encoder::end`]; an array is
/// [`Encoder::begin_array`], its values, then [`Encoder::end`]. The caller keeps to that order.
#[derive(Debug)]
pub struct Encoder<'a> {
    bytes: &'a mut Vec<u8>,
}

/// Appends what `write` encodes, in the direction of the field.
pub fn encode_in(bytes: &mut Vec<u8>, direction: Direction, write: impl FnOnce(&mut Encoder<'_>)) {
    let start = bytes.len();
    write(&mut Encoder::new(bytes));
    if direction == Direction::Descending {
        invert(&mut bytes[start..]);
    }
}

/// Reverses the order of encoded values.
pub fn invert(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

impl<'a> Encoder<'a> {
    /// Returns an encoder that appends to the buffer.
    pub fn new(bytes: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder { bytes }
    }

    /// Appends a value that its rank tells whole: null, undefined, MinKey, MaxKey.
    pub fn rank_only(&mut self, rank: u8) {
        self.bytes.push(rank);
    }

    /// Appends a string.
    pub fn string(&mut self, text: &str) {
        self.bytes.push(rank::STRING);
        self.escaped(text.as_bytes());
    }

    /// Appends a string as its sort key under a collation.
    pub fn sort_key(&mut self, sort_key: &[u8]) {
        self.bytes.push(rank::STRING);
        self.escaped(sort_key);
    }

    /// Begins an object.
    pub fn begin_object(&mut self) {
        self.bytes.push(rank::OBJECT);
    }

    /// Appends the name of a field; its value follows. `rank` is that of the value, as the type is compared before the name.
    pub fn field(&mut self, rank: u8, name: &str) {
        self.bytes.push(rank);
        self.terminated(name);
    }

    /// Begins an array.
    pub fn begin_array(&mut self) {
        self.bytes.push(rank::ARRAY);
    }

    /// Ends an object or array.
    pub fn end(&mut self) {
        self.bytes.push(0);
    }

    /// Appends binary data. `length` is compared first: it is that of the data, or of what is stored for it where that is longer.
    pub fn binary(&mut self, length: usize, subtype: u8, data: &[u8]) {
        self.bytes.push(rank::BINARY);
        self.length(length);
        self.bytes.push(subtype);
        self.bytes.extend_from_slice(data);
    }

    /// Appends an object id.
    pub fn object_id(&mut self, id: [u8; 12]) {
        self.bytes.push(rank::OBJECT_ID);
        self.bytes.extend_from_slice(&id);
    }

    /// Appends a boolean.
    pub fn boolean(&mut self, value: bool) {
        self.bytes.push(rank::BOOLEAN + u8::from(value));
    }

    /// Appends a date in milliseconds since 1970.
    pub fn date(&mut self, millis: i64) {
        self.bytes.push(rank::DATE);
        let ordered = millis.cast_unsigned() ^ (1 << 63);
        self.bytes.extend_from_slice(&ordered.to_be_bytes());
    }

    /// Appends a timestamp.
    pub fn timestamp(&mut self, seconds: u32, increment: u32) {
        self.bytes.push(rank::TIMESTAMP);
        self.bytes.extend_from_slice(&seconds.to_be_bytes());
        self.bytes.extend_from_slice(&increment.to_be_bytes());
    }

    /// Appends a regular expression. Neither text has a NUL.
    pub fn regex(&mut self, pattern: &str, options: &str) {
        self.bytes.push(rank::REGEX);
        self.terminated(pattern);
        self.terminated(options);
    }

    /// Appends a DBPointer.
    pub fn db_pointer(&mut self, namespace: &[u8], id: [u8; 12]) {
        self.bytes.push(rank::DB_POINTER);
        self.length(namespace.len());
        self.bytes.extend_from_slice(namespace);
        self.bytes.extend_from_slice(&id);
    }

    /// Appends JavaScript without scope.
    pub fn code(&mut self, code: &str) {
        self.bytes.push(rank::CODE);
        self.escaped(code.as_bytes());
    }

    /// Appends JavaScript with scope; the scope follows as an object.
    pub fn code_with_scope(&mut self, code: &str) {
        self.bytes.push(rank::CODE_WITH_SCOPE);
        self.escaped(code.as_bytes());
    }

    fn escaped(&mut self, text: &[u8]) {
        for part in text.split_inclusive(|byte| *byte == 0) {
            self.bytes.extend_from_slice(part);
            if part.last() == Some(&0) {
                self.bytes.push(0xFF);
            }
        }
        self.bytes.extend_from_slice(&[0, 0]);
    }

    fn terminated(&mut self, text: &str) {
        // A NUL cannot come from BSON, where these texts end at their NUL.
        debug_assert!(!text.contains('\0'), "a name with a NUL");
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    fn length(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
