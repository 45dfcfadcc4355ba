//! How explain shows the indexes that a query reads.

use bolide_core::IndexPart;
use bson::raw::{CString, cstr};
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

/// The name and the parameters of the stage that reads parts of indexes: `IXSCAN` for one, `OR` over several.
pub fn stage(parts: &[IndexPart]) -> (&'static str, RawDocumentBuf) {
    if let [only] = parts {
        return ("IXSCAN", details(only, false));
    }
    let mut inputs = RawArrayBuf::new();
    for part in parts {
        let mut input = rawdoc! {"stage": "IXSCAN"};
        for (name, value) in details(part, false).iter().flatten() {
            input.append(name, value);
        }
        inputs.push(input);
    }
    ("OR", rawdoc! {"inputStages": inputs})
}

/// The parameters of the stage that reads an index in its order, or backward.
pub fn in_order(part: &IndexPart, is_backward: bool) -> RawDocumentBuf {
    details(part, is_backward)
}

fn details(part: &IndexPart, is_backward: bool) -> RawDocumentBuf {
    let definition = &part.definition;
    let mut details = rawdoc! {
        "keyPattern": definition.key().document().to_owned(),
        "indexName": definition.name(),
    };
    if let Some(collation) = definition.collation() {
        details.append(cstr!("collation"), collation.to_document());
    }
    details.append(cstr!("isMultiKey"), part.is_multikey);
    details.append(cstr!("isUnique"), definition.is_unique() || definition.is_id());
    details.append(cstr!("isSparse"), definition.is_sparse());
    details.append(cstr!("isPartial"), definition.partial().is_some());
    details.append(cstr!("indexVersion"), 2);
    let direction = if is_backward { "backward" } else { "forward" };
    details.append(cstr!("direction"), direction);
    let mut bounds = RawDocumentBuf::new();
    for (field, intervals) in part.bounds.shown(part.is_multikey) {
        let mut shown = RawArrayBuf::new();
        for interval in intervals {
            shown.push(interval.as_str());
        }
        // Names of fields have no NUL.
        if let Ok(field) = CString::try_from(field.as_str()) {
            bounds.append(field, shown);
        }
    }
    details.append(cstr!("indexBounds"), bounds);
    details
}
