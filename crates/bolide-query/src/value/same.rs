//! Sameness for DISTINCT, GROUP BY and the set functions (cosmos-sql §8.4): canonical bytes.
//!
//! # Shape
//! A kind byte, then: numbers as the bits of their double (integers that no double holds: `i` and 64 bits), strings as length and bytes, arrays as
//! count and elements, objects as count and members sorted by name. Two values are the same if and only if their bytes are equal.

use sha2::{Digest, Sha256};

use super::Value;
use crate::number::Number;

/// Keys up to this length are kept as they are; longer ones as their SHA-256.
const INLINE_KEY_BYTES: usize = 64;

/// The key that identifies a value, small enough to keep millions of them.
pub type SameKey = Box<[u8]>;

/// Whether canonical bytes are used as the key unchanged.
pub fn is_inline(canonical: &[u8]) -> bool {
    canonical.len() <= INLINE_KEY_BYTES
}

/// Makes a key from canonical bytes.
pub fn same_key(canonical: &[u8]) -> SameKey {
    if is_inline(canonical) {
        return canonical.into();
    }
    let mut key = vec![b'#'];
    key.extend_from_slice(&Sha256::digest(canonical));
    key.into()
}

/// Appends the canonical bytes of a value.
pub fn append_same_key(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(b'u'),
        Value::Null => out.push(b'0'),
        Value::Bool(false) => out.push(b'1'),
        Value::Bool(true) => out.push(b'2'),
        Value::Number(number) => append_number(*number, out),
        Value::String(text) => append_string(text.as_str(), out),
        Value::Json(_) | Value::Array(_) | Value::Object(_) => append_container(value, out),
    }
}

fn append_container(value: &Value<'_>, out: &mut Vec<u8>) {
    if let Some(items) = value.elements() {
        out.push(b'a');
        out.extend_from_slice(&(items.len() as u64).to_be_bytes());
        items.iter().for_each(|item| append_same_key(item, out));
    } else if let Some(members) = value.members() {
        let mut members: Vec<_> = members.iter().collect();
        members.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
        out.push(b'o');
        out.extend_from_slice(&(members.len() as u64).to_be_bytes());
        for (name, member) in members {
            append_string(name.as_str(), out);
            append_same_key(member, out);
        }
    }
}

fn append_string(text: &str, out: &mut Vec<u8>) {
    out.push(b's');
    out.extend_from_slice(&(text.len() as u64).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn append_number(number: Number, out: &mut Vec<u8>) {
    match number {
        Number::Int(value) if Number::Float(value as f64) != number => {
            out.push(b'i');
            out.extend_from_slice(&value.to_be_bytes());
        }
        _ => {
            // NaN has one representation, and so has zero.
            let value = number.as_f64();
            let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
            out.push(b'n');
            out.extend_from_slice(&value.to_bits().to_be_bytes());
        }
    }
}
