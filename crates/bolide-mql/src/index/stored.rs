//! The keys of a document as they are stored, so that queries can read by them.
//!
//! ```text
//!   10           the document has too many keys, or none could be made: every query reads it
//!   11 ‖ key     no array was opened: the document has one key
//!   12 ‖ key     an array was opened: the document may have several keys
//! ```
//!
//! Two conditions on one path may hold for different elements of an array, so what they have in common bounds only the keys behind `11`. No stored key is
//! the beginning of another: keys consist of encodings of which none is, and those that are cut have the same length.

use bson::RawDocument;

use super::definition::IndexDefinition;
use super::keys::keys;

/// Longer keys are cut: what is behind is not bounded.
pub(super) const KEY_BYTES: usize = 1_000;
/// A document with more keys has one instead that every query reads.
const MAX_KEYS: usize = 1_000;

pub(super) const MANY: u8 = 0x10;
pub(super) const PLAIN: u8 = 0x11;
pub(super) const MULTIKEY: u8 = 0x12;

/// Returns the keys under which a document is stored in an index, in order.
///
/// Agrees with: [`bounds`](super::bounds()).
pub fn stored_keys(definition: &IndexDefinition, document: &RawDocument) -> Vec<Vec<u8>> {
    // A document that has no valid keys was not written under the index; it is found all the same.
    let Ok(found) = keys(definition, document) else {
        return vec![vec![MANY]];
    };
    if found.keys.len() > MAX_KEYS {
        return vec![vec![MANY]];
    }
    let marker = if found.is_multikey { MULTIKEY } else { PLAIN };
    let mut stored: Vec<Vec<u8>> = found
        .keys
        .iter()
        .map(|key| {
            let end = key.len().min(KEY_BYTES);
            [&[marker], &key[..end]].concat()
        })
        .collect();
    stored.dedup();
    stored
}

/// Whether a stored key may have been cut, so that it does not tell the order of documents.
pub fn is_cut(key: &[u8]) -> bool {
    key.len() > KEY_BYTES
}
