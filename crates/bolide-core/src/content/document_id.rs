//! The `_id` of a document as index entries have it.

use bolide_mql::bson::RawBsonRef;
use bolide_mql::collation::Collation;
use bolide_mql::value;
use sha2::{Digest, Sha256};

use crate::format::keys::{DIGEST_BYTES, UniqueDigest};

/// An encoded `_id` longer than this is cut, and a digest of the whole follows.
const ID_BYTES: usize = 1_024;

/// An encoded `_id`: equal for equal values, whatever their numeric types.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentId(pub(crate) Vec<u8>);

impl DocumentId {
    /// Encodes an `_id` by the collation of its collection.
    pub fn of(id: RawBsonRef<'_>, collation: Option<&Collation>) -> DocumentId {
        let mut bytes = Vec::new();
        value::key::encode(id, collation, &mut bytes);
        if bytes.len() > ID_BYTES {
            let digest = digest(&bytes);
            bytes.truncate(ID_BYTES);
            bytes.extend_from_slice(&digest);
        }
        DocumentId(bytes)
    }

    /// Whether the bytes of an encoded `_id` may have been cut, so that they are not in its order.
    pub(crate) fn is_cut(bytes: &[u8]) -> bool {
        bytes.len() > ID_BYTES
    }
}

/// Returns the digest that stands for a long key.
pub(crate) fn digest(bytes: &[u8]) -> UniqueDigest {
    let hash = Sha256::digest(bytes);
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&hash[..DIGEST_BYTES]);
    digest
}
