//! Effective partition keys: the position of a logical partition in its container.
//!
//! An [`Epk`] is a byte string, ordered bytewise; a container's physical partitions are [`EpkRange`]s of `""..FF`. On the wire it is hex. The
//! definition's kind and version determine how it is computed:
//!
//! ```text
//!   Hash, version 2     murmur3_x64_128(components), 16 bytes from the top down, the two top bits cleared
//!   MultiHash           that hash of each component, concatenated: a prefix of the key is a prefix of the bytes
//!   Hash, version 1     encode(murmur3_x86_32(components) as a number), then encode(each component)
//!   Range               encode(each component)
//!
//!   hashed component    marker, then: number  8 bytes, IEEE double, little-endian
//!                                     string  UTF-8, then FF (version 2) or 00 (version 1)
//!   encode(component)   marker, then: number  the double with its sign turned, 8 bits, then groups of 7 bits; the lowest bit of a
//!                                             byte says whether another follows
//!                                     string  UTF-8, each byte + 1, then 00; of more than 100 bytes, 101 and no end
//!   marker              00 undefined, 01 null, 02 false, 03 true, 05 number, 08 string
//! ```
//!
//! Under version 1 strings are first cut to 100 UTF-16 units. In a container without a partition key, items without one have the lowest hash, but
//! clients expect them at `""`, in the first range. Source: cosmos-rest §§7.2, 7.4, whose vectors are the tests.

use std::borrow::Cow;
use std::fmt;

use data_encoding::{HEXUPPER, HEXUPPER_PERMISSIVE};

use crate::error::{Error, Result, excerpt};
use crate::partition_key::{Component, PartitionKey, PartitionKeyDefinition, PartitionKeyVersion, PartitionKind};

/// Keeps the 126 bits of a version 2 hash, so that every hash sorts before `FF`.
const V2_MASK: u128 = u128::MAX >> 2;

/// Bytes of a version 2 hash.
const V2_BYTES: usize = 16;

/// Version 1 cuts strings to this length: in UTF-16 units before hashing the key, in bytes when encoding.
const V1_STRING: usize = 100;

mod marker {
    pub(super) const UNDEFINED: u8 = 0x00;
    pub(super) const NULL: u8 = 0x01;
    pub(super) const FALSE: u8 = 0x02;
    pub(super) const TRUE: u8 = 0x03;
    pub(super) const NUMBER: u8 = 0x05;
    pub(super) const STRING: u8 = 0x08;
}

/// An effective partition key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epk(Vec<u8>);

impl Epk {
    /// The lowest key: of the empty partition key, and the start of the first range.
    pub fn start() -> Epk {
        Epk(Vec::new())
    }

    /// Above every key: the end of the last range.
    pub fn end() -> Epk {
        Epk(vec![0xFF])
    }

    /// The effective partition key of `key` under `definition`. A prefix of a hierarchical key gives a prefix of the bytes; an empty key gives [`Epk::start`].
    pub fn of(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Epk {
        if key.is_empty() {
            return Epk::start();
        }
        if definition.key_of_none().as_ref() == Some(key) {
            return Epk::of_none(definition.version);
        }
        match (definition.kind, definition.version) {
            (PartitionKind::Range, _) => Epk(encode(&key.0)),
            (PartitionKind::MultiHash, _) => Epk(key
                .0
                .iter()
                .flat_map(|component| hash_v2(std::slice::from_ref(component)))
                .collect()),
            (PartitionKind::Hash, PartitionKeyVersion::V2) => Epk(hash_v2(&key.0).to_vec()),
            (PartitionKind::Hash, PartitionKeyVersion::V1) => of_v1(&key.0),
        }
    }

    /// The lowest value of a complete key.
    fn of_none(version: PartitionKeyVersion) -> Epk {
        match version {
            PartitionKeyVersion::V1 => Epk(encode(&[Component::Number(0.0), Component::Undefined])),
            PartitionKeyVersion::V2 => Epk(vec![0; V2_BYTES]),
        }
    }

    /// The key with these bytes, from a storage key.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Epk {
        Epk(bytes.into())
    }

    /// The number of bytes at the start of `bytes` that are a complete effective partition key under `definition`, whatever follows; `None` if they
    /// do not start with one.
    pub fn length_in(definition: &PartitionKeyDefinition, bytes: &[u8]) -> Option<usize> {
        let components = definition.paths.len();
        let length = match (definition.kind, definition.version) {
            (PartitionKind::Range, _) => encoded_length(bytes, components)?,
            (PartitionKind::MultiHash, _) => V2_BYTES * components,
            (PartitionKind::Hash, PartitionKeyVersion::V2) => V2_BYTES,
            // The hash is one more component, before the others.
            (PartitionKind::Hash, PartitionKeyVersion::V1) => encoded_length(bytes, 1 + components)?,
        };
        (length <= bytes.len()).then_some(length)
    }

    /// The bytes, whose order is the order of keys.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads hex digits of either case.
    ///
    /// # Errors
    /// `BadRequest`: other characters, or an odd number of digits.
    pub fn from_hex(text: &str) -> Result<Epk> {
        let invalid = || {
            Error::bad_request(format!(
                "The effective partition key '{}' is invalid: expected pairs of hexadecimal digits.",
                excerpt(text)
            ))
        };
        let bytes = HEXUPPER_PERMISSIVE.decode(text.as_bytes());
        bytes.map(Epk).map_err(|_| invalid())
    }

    /// Upper-case hex, as on the wire.
    pub fn to_hex(&self) -> String {
        HEXUPPER.encode(&self.0)
    }

    /// The lowest key above all keys with this prefix.
    fn after_prefix(&self) -> Epk {
        let mut bytes = self.0.clone();
        while bytes.pop_if(|byte| *byte == 0xFF).is_some() {}
        match bytes.last_mut() {
            None => Epk::end(),
            Some(last) => {
                *last += 1;
                Epk(bytes)
            }
        }
    }
}

impl fmt::Display for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// A range of effective partition keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EpkRange {
    /// Inclusive.
    pub min: Epk,
    /// Exclusive.
    pub max: Epk,
}

impl EpkRange {
    /// From `min`, inclusive, to `max`, exclusive.
    pub fn new(min: Epk, max: Epk) -> EpkRange {
        EpkRange { min, max }
    }

    /// All keys.
    pub fn all() -> EpkRange {
        EpkRange::new(Epk::start(), Epk::end())
    }

    /// The single key `epk`. The range ends at the hex digits plus one: no other complete key lies between.
    pub fn point(epk: Epk) -> EpkRange {
        let max = epk.after_prefix();
        EpkRange::new(epk, max)
    }

    /// The range of `key`: one point for a complete key, all keys below a prefix of a hierarchy, everything for an empty key.
    pub fn of_prefix(definition: &PartitionKeyDefinition, key: &PartitionKey) -> EpkRange {
        let min = Epk::of(definition, key);
        if key.is_empty() || definition.is_full(key) {
            return EpkRange::point(min);
        }
        let mut max = min.clone();
        max.0.push(0xFF);
        EpkRange::new(min, max)
    }

    /// Converts a range from a client of a container: clients expect items without a partition key at `""`, unless a query plan told them the real position.
    pub fn meant_by_client(self, definition: &PartitionKeyDefinition) -> EpkRange {
        let Some(none) = definition.key_of_none() else {
            return self;
        };
        let none = EpkRange::point(Epk::of(definition, &none));
        let bound = |epk: Epk| {
            if epk == Epk::start() || epk >= none.min {
                epk
            } else {
                none.max.clone()
            }
        };
        EpkRange::new(bound(self.min), bound(self.max))
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    /// Whether `epk` lies in the range.
    pub fn contains(&self, epk: &Epk) -> bool {
        self.min <= *epk && *epk < self.max
    }

    /// Whether all of `other` lies in the range.
    pub fn covers(&self, other: &EpkRange) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    /// Whether the ranges share a key.
    pub fn overlaps(&self, other: &EpkRange) -> bool {
        self.min < other.max && other.min < self.max && !self.is_empty() && !other.is_empty()
    }

    /// The keys in both ranges.
    pub fn intersect(&self, other: &EpkRange) -> Option<EpkRange> {
        self.overlaps(other).then(|| {
            let min = Ord::max(&self.min, &other.min);
            let max = Ord::min(&self.max, &other.max);
            EpkRange::new(min.clone(), max.clone())
        })
    }

    /// The key at which to split the range so that each part gets about half of the hashes.
    ///
    /// `None` if there is no key between the ends, or if the kind is Range, which has no hashes.
    pub fn midpoint(&self, definition: &PartitionKeyDefinition) -> Option<Epk> {
        self.cuts(definition, 2).pop()
    }

    /// The share of the hashes of `whole` that are in this range, which lies in it: from 0 to 1. `None` for the kind Range, which has no hashes.
    pub fn share_of(&self, definition: &PartitionKeyDefinition, whole: &EpkRange) -> Option<f64> {
        let space = HashSpace::of(definition)?;
        let width = |range: &EpkRange| Some(space.position(&range.max)?.saturating_sub(space.position(&range.min)?));
        match width(whole)? {
            0 => None,
            all => Some(width(self)? as f64 / all as f64),
        }
    }

    /// The keys at which to cut the range into `parts` parts with equal shares of the hashes, in order; none if there are too few keys between the ends,
    /// or for the kind Range.
    pub fn cuts(&self, definition: &PartitionKeyDefinition, parts: u32) -> Vec<Epk> {
        let cuts = || {
            let space = HashSpace::of(definition)?;
            let (low, high) = (space.position(&self.min)?, space.position(&self.max)?);
            let step = high.checked_sub(low)? / u128::from(parts.max(1));
            let inside = |epk: &Epk| self.min < *epk && *epk < self.max;
            let cuts = (1..parts)
                .map(|nth| space.epk(low + u128::from(nth) * step))
                .filter(inside);
            (step > 0).then(|| cuts.collect())
        };
        cuts().unwrap_or_default()
    }
}

/// The ranges of a new container with `n` physical partitions: they cover all keys, in order, with equal shares of the hashes.
///
/// Kind Range has no hashes to divide and gets one range.
///
/// Source: cosmos-rest §7.2.
pub fn boundaries(definition: &PartitionKeyDefinition, n: u32) -> Vec<EpkRange> {
    let inner = EpkRange::all().cuts(definition, n);
    let starts = std::iter::once(Epk::start()).chain(inner.iter().cloned());
    let ends = inner.iter().cloned().chain(std::iter::once(Epk::end()));
    starts.zip(ends).map(|(min, max)| EpkRange::new(min, max)).collect()
}

/// The hash values at the start of effective partition keys, as whole numbers.
#[derive(Debug, Clone, Copy)]
enum HashSpace {
    V1,
    V2,
}

impl HashSpace {
    fn of(definition: &PartitionKeyDefinition) -> Option<HashSpace> {
        match (definition.kind, definition.version) {
            (PartitionKind::Range, _) => None,
            (PartitionKind::Hash, PartitionKeyVersion::V1) => Some(HashSpace::V1),
            (PartitionKind::Hash | PartitionKind::MultiHash, _) => Some(HashSpace::V2),
        }
    }

    fn last(self) -> u128 {
        match self {
            HashSpace::V1 => u128::from(u32::MAX),
            HashSpace::V2 => V2_MASK,
        }
    }

    fn epk(self, position: u128) -> Epk {
        match self {
            HashSpace::V1 => Epk(encode(&[Component::Number(position as f64)])),
            HashSpace::V2 => Epk(position.to_be_bytes().to_vec()),
        }
    }

    /// The hash at the start of `epk`; `None` for bytes that are not a key.
    fn position(self, epk: &Epk) -> Option<u128> {
        if *epk == Epk::start() {
            return Some(0);
        }
        if *epk == Epk::end() {
            return Some(self.last());
        }
        match self {
            HashSpace::V1 => decode_number(epk.as_bytes()).map(|number| number as u128),
            HashSpace::V2 => {
                let mut bytes = [0; V2_BYTES];
                let given = epk.0.len().min(V2_BYTES);
                bytes[..given].copy_from_slice(&epk.0[..given]);
                Some(u128::from_be_bytes(bytes))
            }
        }
    }
}

/// Bytes that represent these components and no others: the input of the version 2 hash.
pub fn canonical(components: &[Component]) -> Vec<u8> {
    hash_input(components, 0xFF)
}

fn hash_v2(components: &[Component]) -> [u8; V2_BYTES] {
    let input = hash_input(components, 0xFF);
    let hash = murmur3::murmur3_x64_128(&mut input.as_slice(), 0).expect("a slice can be read");
    (hash & V2_MASK).to_be_bytes()
}

fn of_v1(components: &[Component]) -> Epk {
    let components: Vec<Component> = components.iter().map(cut_v1).collect();
    let input = hash_input(&components, 0x00);
    let hash = murmur3::murmur3_32(&mut input.as_slice(), 0).expect("a slice can be read");
    let mut bytes = encode(&[Component::Number(f64::from(hash))]);
    bytes.extend(encode(&components));
    Epk(bytes)
}

fn cut_v1(component: &Component) -> Component {
    match component {
        Component::String(text) => Component::String(cut_utf16(text).into_owned()),
        other => other.clone(),
    }
}

/// The first [`V1_STRING`] UTF-16 units. A surrogate pair that is cut becomes U+FFFD.
fn cut_utf16(text: &str) -> Cow<'_, str> {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units == V1_STRING + 1 && c.len_utf16() == 2 {
            return Cow::Owned(format!("{}\u{FFFD}", &text[..at]));
        }
        if units > V1_STRING {
            return Cow::Borrowed(&text[..at]);
        }
    }
    Cow::Borrowed(text)
}

fn marker_of(component: &Component) -> u8 {
    match component {
        Component::Undefined => marker::UNDEFINED,
        Component::Null => marker::NULL,
        Component::Bool(false) => marker::FALSE,
        Component::Bool(true) => marker::TRUE,
        Component::Number(_) => marker::NUMBER,
        Component::String(_) => marker::STRING,
    }
}

fn hash_input(components: &[Component], string_end: u8) -> Vec<u8> {
    let mut input = Vec::with_capacity(64);
    for component in components {
        input.push(marker_of(component));
        match component {
            Component::Number(number) => input.extend(Component::number_bits(*number).to_le_bytes()),
            Component::String(text) => {
                input.extend(text.as_bytes());
                input.push(string_end);
            }
            Component::Undefined | Component::Null | Component::Bool(_) => {}
        }
    }
    input
}

fn encode(components: &[Component]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for component in components {
        bytes.push(marker_of(component));
        match component {
            Component::Number(number) => encode_number(Component::number_bits(*number), &mut bytes),
            Component::String(text) => encode_string(text.as_bytes(), &mut bytes),
            Component::Undefined | Component::Null | Component::Bool(_) => {}
        }
    }
    bytes
}

/// The number of bytes at the start of `bytes` that encode this many components.
fn encoded_length(bytes: &[u8], components: usize) -> Option<usize> {
    (0..components).try_fold(0, |length, _| Some(length + component_length(bytes.get(length..)?)?))
}

/// The number of bytes at the start of `bytes` that encode one component.
fn component_length(bytes: &[u8]) -> Option<usize> {
    let (marker, rest) = bytes.split_first()?;
    let value = match *marker {
        marker::UNDEFINED | marker::NULL | marker::FALSE | marker::TRUE => 0,
        marker::NUMBER => 2 + rest.get(1..)?.iter().position(|group| group & 1 == 0)?,
        marker::STRING => {
            let text = rest.get(..V1_STRING + 1).unwrap_or(rest);
            match text.iter().position(|byte| *byte == 0) {
                Some(end) => end + 1,
                None => (text.len() > V1_STRING).then_some(text.len())?,
            }
        }
        _ => return None,
    };
    Some(1 + value)
}

/// The top bit of a double's bits: its sign.
const SIGN: u64 = 1 << 63;

fn encode_number(bits: u64, bytes: &mut Vec<u8>) {
    let ordered = if bits < SIGN { bits ^ SIGN } else { bits.wrapping_neg() };
    bytes.push((ordered >> 56) as u8);
    let mut rest = ordered << 8;
    loop {
        let group = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            bytes.push(group & !1);
            return;
        }
        bytes.push(group | 1);
    }
}

/// The number at the start of `bytes`; `None` if they start with something else.
fn decode_number(bytes: &[u8]) -> Option<f64> {
    let [marker::NUMBER, first, groups @ ..] = bytes else {
        return None;
    };
    let mut ordered = u64::from(*first) << 56;
    let mut shift = 56;
    for group in groups {
        shift = u32::checked_sub(shift, 7)?;
        ordered |= u64::from(group >> 1) << shift;
        if group & 1 == 0 {
            let bits = if ordered >= SIGN {
                ordered ^ SIGN
            } else {
                ordered.wrapping_neg()
            };
            return Some(f64::from_bits(bits));
        }
    }
    None
}

fn encode_string(text: &[u8], bytes: &mut Vec<u8>) {
    let is_whole = text.len() <= V1_STRING;
    // UTF-8 has no byte FF, so adding one never overflows.
    bytes.extend(text.iter().take(V1_STRING + 1).map(|byte| byte + 1));
    if is_whole {
        bytes.push(0);
    }
}

#[cfg(test)]
mod tests;
