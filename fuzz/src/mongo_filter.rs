//! Filters: a filter as extended JSON, then documents by line. The opposite of a filter matches what the filter does not.

use bolide_mql::bson::{RawDocument, RawDocumentBuf, rawdoc};
use bolide_mql::filter::Filter;

use super::input::Input;
use super::mongo_json;
use super::mongo_work::{context, is_repeatable};

/// Matches documents against a filter.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let text = input.until(b'\n');
    let Some(source) = mongo_json::document(text) else {
        return;
    };
    let Ok(filter) = Filter::parse(&source) else { return };
    let _ = (
        filter.paths(),
        filter.equalities(),
        filter.id_in(None),
        filter.has_near(),
    );
    let documents = mongo_json::documents(input.0);
    let wrapped = |name: &str| -> Option<Filter> {
        let wrapped = match name {
            "$and" => rawdoc! {"$and": [source.clone()]},
            _ => rawdoc! {"$nor": [source.clone()]},
        };
        Filter::parse(&wrapped).ok()
    };
    let (same, opposite) = (wrapped("$and"), wrapped("$nor"));
    for document in &documents {
        let Some(found) = matches(&filter, document) else {
            continue;
        };
        if !is_repeatable(text) {
            continue;
        }
        for (other, expected) in [(&same, found), (&opposite, !found)] {
            if let Some(other) = other.as_ref().and_then(|other| matches(other, document)) {
                assert_eq!(other, expected, "{source:?} {document:?}");
            }
        }
    }
    round(&filter, &documents);
}

fn matches(filter: &Filter, document: &RawDocument) -> Option<bool> {
    filter.matches(document, &context()).ok()
}

/// A match tells which element matched, and agrees with the plain answer.
fn round(filter: &Filter, documents: &[RawDocumentBuf]) {
    for document in documents {
        let _ = filter.matches_with(document, &context());
        let _ = filter.near_distance(document);
    }
}
