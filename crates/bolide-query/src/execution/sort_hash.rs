//! The sort order of arrays and objects: a hash of their content that clients know (cosmos-rest §6.1).
//!
//! A client that merges several ranges compares arrays and objects by this hash, and continues after it; the rows of a range must be in its order. It
//! is MurmurHash3 (x64, 128 bits) with a seed of 128 bits, which the usual crates do not support: the hash of a part is the seed of the next. Source:
//! `DistinctHash`, `Number64` and `UInt128BinaryComparer` of the .NET SDK, and the hashes listed in its tests.

use crate::number::Number;
use crate::value::{Kind, Value};

const ROOT: u128 = seed(0xbfc2_359e_afc0_e2b7, 0x8846_e002_84c4_cf1f);
const NULL: u128 = seed(0x1380_f68b_b3b0_cfe4, 0x156c_918b_f564_ee48);
const FALSE: u128 = seed(0xc1be_517f_e893_b40c, 0xe9fc_8a4c_531c_d0dd);
const TRUE: u128 = seed(0xf86d_4abf_9a41_2e74, 0x7884_8836_5c8a_985d);
const NUMBER: u128 = seed(0x2400_e8b8_94ce_9c2a, 0x790b_e1ea_bd7b_9481);
const STRING: u128 = seed(0x61f5_3f0a_4420_4cfb, 0x0948_1be8_ef4b_56dd);
const ARRAY: u128 = seed(0xfa57_3b01_4c4d_c18e, 0xa014_512c_858e_b115);
const OBJECT: u128 = seed(0x77b2_85ac_511a_ef30, 0x3dcf_1872_4582_2449);
const ARRAY_INDEX: u128 = seed(0xfe05_7204_216d_b999, 0x5b1c_c317_8bd9_c593);
const MEMBER_NAME: u128 = seed(0xc915_dde0_5849_2a8a, 0x7c8b_e2eb_a72e_4634);

const fn seed(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

/// The hash of a value, in the byte order in which such hashes are compared.
pub fn sort_hash(value: &Value<'_>) -> [u8; 16] {
    hash(value, ROOT).to_le_bytes()
}

/// The hash from its two halves, as a client sends them.
pub fn from_halves(low: i64, high: i64) -> [u8; 16] {
    seed(low.cast_unsigned(), high.cast_unsigned()).to_le_bytes()
}

fn hash(value: &Value<'_>, seed: u128) -> u128 {
    match value {
        Value::Undefined => seed,
        Value::Null => then(seed, NULL),
        Value::Bool(false) => then(seed, FALSE),
        Value::Bool(true) => then(seed, TRUE),
        Value::Number(number) => murmur(&extended_double(*number), then(seed, NUMBER)),
        Value::String(text) => murmur(text.as_str().as_bytes(), then(seed, STRING)),
        other if other.kind() == Kind::Array => {
            let elements = other.elements().unwrap_or_default();
            let defined = (0u128..)
                .zip(elements.iter())
                .filter(|(_, element)| element.is_defined());
            defined.fold(then(seed, ARRAY), |so_far, (index, element)| {
                then(so_far, hash(element, ARRAY_INDEX.wrapping_add(index)))
            })
        }
        other => {
            let members = other.members().unwrap_or_default();
            let named = then(MEMBER_NAME, STRING);
            let defined = members.iter().filter(|(_, member)| member.is_defined());
            // The order of members does not matter.
            let members = defined.fold(0, |so_far, (name, member)| {
                so_far ^ hash(member, murmur(name.as_str().as_bytes(), named))
            });
            let empty = then(seed, OBJECT);
            if members == 0 { empty } else { then(empty, members) }
        }
    }
}

fn then(seed: u128, part: u128) -> u128 {
    murmur(&part.to_le_bytes(), seed)
}

/// A double, and 16 bits for those bits of a 64-bit integer that exceed a double's 52 bits of fraction. The double is truncated then, not rounded.
fn extended_double(number: Number) -> [u8; 10] {
    const FRACTION_BITS: u32 = 52;
    let (double, more) = match number {
        Number::Float(value) => (value.to_bits(), 0),
        Number::Int(value) => {
            let magnitude = value.unsigned_abs();
            let highest = magnitude.checked_ilog2().unwrap_or(0);
            let is_exact = highest - magnitude.trailing_zeros().min(highest) <= FRACTION_BITS;
            if is_exact {
                ((value as f64).to_bits(), 0)
            } else {
                // The bits below the highest one, shifted up to 62 bits: a double's fraction, then ten more.
                let below = (magnitude << (62 - highest)) & (u64::MAX >> 2);
                let exponent = u64::from(highest + 1023) << FRACTION_BITS;
                let sign = u64::from(value < 0) << 63;
                (sign | exponent | below >> 10, ((below & 0x3ff) << 6) as u16)
            }
        }
    };
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&double.to_le_bytes());
    bytes[8..].copy_from_slice(&more.to_le_bytes());
    bytes
}

/// MurmurHash3, x64, 128 bits.
fn murmur(bytes: &[u8], seed: u128) -> u128 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (seed as u64, (seed >> 64) as u64);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 = (h1 ^ mix1(k1)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(k2)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(&last);
    h1 ^= mix1(k1) ^ bytes.len() as u64;
    h2 ^= mix2(k2) ^ bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    self::seed(h1, h2)
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let block = u128::from_le_bytes(*block);
    (block as u64, (block >> 64) as u64)
}

fn finish(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

#[cfg(test)]
mod tests;
