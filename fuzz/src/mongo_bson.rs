//! BSON as it comes from a client: bytes that are valid have an order, keys and texts, and can be inserted.

use bolide_mql::bson::{RawBsonRef, RawDocument};
use bolide_mql::document;
use bolide_mql::value::{self, json, key, text};

use super::mongo_work::context;

/// Maximum number of fields that are compared with each other.
const COMPARED: usize = 12;

/// Reads the bytes as a document.
pub fn run(data: &[u8]) {
    let Ok(parsed) = value::validate(data) else { return };
    let values: Vec<RawBsonRef<'_>> = values(parsed);
    for value in &values {
        let _ = text::render(*value);
        let canonical = json::item_id(*value);
        if let Some(again) = json::parse_canonical(&canonical).filter(|_| !matches!(value, RawBsonRef::String(_))) {
            let again = again.as_raw_bson_ref();
            assert!(value::compare(again, *value).is_eq(), "{value:?}: {canonical}");
        }
    }
    for a in &values {
        for b in &values {
            let order = value::compare(*a, *b);
            assert_eq!(order, value::compare(*b, *a).reverse(), "{a:?} {b:?}");
            let keys = key::of(*a, None).cmp(&key::of(*b, None));
            assert_eq!(keys, order, "the keys of {a:?} and {b:?}");
        }
    }
    let item = json::item(parsed);
    assert!(std::str::from_utf8(&item).is_ok());
    insert(parsed);
}

fn values(document: &RawDocument) -> Vec<RawBsonRef<'_>> {
    let fields = document.iter().take(COMPARED);
    fields.map(|field| field.expect("it was validated").1).collect()
}

/// A document that can be inserted has its `_id` first, and stays as it is.
fn insert(document: &RawDocument) {
    let Ok(prepared) = document::prepare_insert(document, &context(), false) else {
        return;
    };
    value::validate(prepared.as_bytes()).expect("it was prepared");
    let first = prepared.iter().next().expect("it has an _id").expect("valid");
    assert_eq!(first.0.as_str(), "_id");
    let again = document::prepare_insert(&prepared, &context(), false).expect("it is prepared");
    assert_eq!(again, prepared);
}
