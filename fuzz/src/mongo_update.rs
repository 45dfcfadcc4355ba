//! Updates: an update, its array filters and a filter as extended JSON by line, then documents by line. What they make can be stored, and has the `_id` of
//! before.

use bolide_mql::bson::RawDocument;
use bolide_mql::filter::{Filter, MatchDetails};
use bolide_mql::update::{ParseOptions, Update};
use bolide_mql::value;

use super::input::Input;
use super::mongo_json;
use super::mongo_work::{context, is_repeatable};

/// Updates documents.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (text, array_filters, filter) = (input.until(b'\n'), input.until(b'\n'), input.until(b'\n'));
    let Some(source) = mongo_json::value(text) else { return };
    let array_filters = mongo_json::array(array_filters);
    let array_filters = array_filters.as_deref();
    let parsed = Update::parse(
        source.as_raw_bson_ref(),
        array_filters,
        ParseOptions::default(),
        &context(),
    );
    let Ok(update) = parsed else { return };
    let filter = mongo_json::document(filter).and_then(|filter| Filter::parse(&filter).ok());
    for document in mongo_json::documents(input.0) {
        let matched = match &filter {
            Some(filter) => match filter.matches_with(&document, &context()) {
                Ok(Some(matched)) => matched,
                _ => continue,
            },
            None => MatchDetails::default(),
        };
        let before = document.clone();
        let Ok(updated) = update.apply(&document, &matched, &context()) else {
            continue;
        };
        assert_eq!(document, before);
        value::validate(updated.document.as_bytes()).expect("it can be stored");
        assert_eq!(updated.changed, updated.document != document, "{document:?} {source:?}");
        assert_eq!(id(&updated.document), id(&document).or_else(|| id(&updated.document)));
        if is_repeatable(text) {
            let again = update.apply(&document, &matched, &context()).expect("it was applied");
            assert_eq!(again, updated);
        }
    }
    if let Some(Ok(upserted)) = filter.map(|filter| update.upsert(&filter, &context())) {
        value::validate(upserted.as_bytes()).expect("it can be stored");
        assert!(id(&upserted).is_some());
    }
}

fn id(document: &RawDocument) -> Option<Vec<u8>> {
    let id = document.get("_id").expect("valid")?;
    Some(value::key::of(id, None))
}
