//! Registers as documents: `{_id: register, list: [numbers of the writers], slot}`.

use std::sync::Arc;

use bolide_core::{Account, Container, DocumentDraft, DocumentId, StoredDocument};
use bolide_mql::bson::{RawArrayBuf, RawBsonRef, RawDocument, rawdoc};

/// Returns the id of the document of a register.
pub fn id_of(register: usize) -> DocumentId {
    DocumentId::of(RawBsonRef::Int64(register as i64), None)
}

/// Returns the collection in which a register begins: the writers of a new one meet there.
pub fn first_place(register: usize) -> usize {
    register % 2
}

/// Returns the numbers in a document.
pub fn list_in(found: &StoredDocument) -> Vec<u64> {
    let list = found.document().get_array("list").expect("a list");
    let numbers = list.into_iter().map(|number| number.ok().and_then(RawBsonRef::as_i64));
    numbers.map(|number| number.expect("a number") as u64).collect()
}

/// Returns the slot of a document, which no other one of its collection has.
pub fn slot_in(document: &RawDocument) -> i64 {
    document.get_i64("slot").expect("a slot")
}

/// Returns the register in a document.
pub fn register_in(document: &RawDocument) -> usize {
    document.get_i64("_id").expect("a register") as usize
}

/// Prepares a document for a register with a list, in a slot.
pub fn draft(
    (account, collection): (&Account, &Arc<Container>),
    register: usize,
    list: &[u64],
    slot: i64,
) -> DocumentDraft {
    let mut numbers = RawArrayBuf::new();
    list.iter().for_each(|number| numbers.push(*number as i64));
    let document = rawdoc! {"_id": register as i64, "list": numbers, "slot": slot};
    let definition = collection.collection().expect("a collection");
    DocumentDraft::new(document, &definition, account.draft_options()).expect("valid keys")
}
