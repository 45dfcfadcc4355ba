//! Updates of elements of arrays, `$[]` and `$[x]`, against the literal model of one element after the other (mongo.md §12).

use bson::raw::CString;
use bson::{Bson, Document, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, doc, rawdoc};
use proptest::prelude::*;

use super::model::{Step, Tree, document, run, sorted, step, tree_of, value};
use super::{context, parse_filtered};
use crate::filter::MatchDetails;
use crate::filter::tests::model::matches;

/// A part of a path: a name, all elements, or those that match the filter.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Name(String),
    All,
    Filtered,
}

/// Returns the paths of the elements; `None` if there is no array where one must be.
fn expand(document: &Tree, path: &[Part], filter: &Document) -> Option<Vec<Vec<String>>> {
    let mut expanded = vec![Vec::new()];
    for part in path {
        let mut next = Vec::new();
        for path in expanded {
            if let Part::Name(name) = part {
                next.push([path, vec![name.clone()]].concat());
                continue;
            }
            let Some(Tree::Array(elements)) = document.get(&path) else {
                return None;
            };
            for (index, element) in elements.iter().enumerate() {
                if *part == Part::All || matches(filter, &doc! {"i": bson_of(element)}) {
                    next.push([path.clone(), vec![index.to_string()]].concat());
                }
            }
        }
        expanded = next;
    }
    Some(expanded)
}

fn bson_of(tree: &Tree) -> Bson {
    Bson::try_from(tree.to_bson()).unwrap()
}

/// Applies a step to each element; `None` for an error.
fn model(document: &Tree, path: &[Part], step: &Step, filter: &Document) -> Option<Tree> {
    let mut document = document.clone();
    for path in expand(&document, path, filter)? {
        run(&mut document, &path, step.clone())?;
    }
    Some(document)
}

fn path() -> impl Strategy<Value = Vec<Part>> {
    let name = || "[ab]".prop_map(Part::Name);
    let element = || prop_oneof![1 => Just(Part::All), 2 => Just(Part::Filtered)];
    prop_oneof![
        (name(), element()).prop_map(|(a, b)| vec![a, b]),
        (name(), element(), name()).prop_map(|(a, b, c)| vec![a, b, c]),
        (name(), name(), element()).prop_map(|(a, b, c)| vec![a, b, c]),
        (name(), element(), element()).prop_map(|(a, b, c)| vec![a, b, c]),
        (name(), element(), name(), element()).prop_map(|(a, b, c, d)| vec![a, b, c, d]),
    ]
}

fn filter() -> impl Strategy<Value = Document> {
    let condition = || {
        prop_oneof![
            value().prop_map(|value| doc! {"$eq": bson_of(&value)}),
            (0_i32..4).prop_map(|least| doc! {"$gte": least}),
            (0_i32..4).prop_map(|other| doc! {"$ne": other}),
            any::<bool>().prop_map(|exists| doc! {"$exists": exists}),
        ]
    };
    prop_oneof![
        condition().prop_map(|condition| doc! {"i": condition}),
        condition().prop_map(|condition| doc! {"i.a": condition}),
        (condition(), condition()).prop_map(|(one, other)| doc! {"$or": [{"i": one}, {"i.b": other}]}),
        (condition(), condition()).prop_map(|(one, other)| doc! {"i": one, "i.a": other}),
    ]
}

fn update_of(path: &[Part], step: &Step) -> Option<RawDocumentBuf> {
    let (operator, argument) = match step {
        Step::Set(value) => ("$set", value.to_bson()),
        Step::Unset => ("$unset", RawBson::Boolean(true)),
        Step::Inc(amount) => ("$inc", RawBson::Int32(*amount)),
        Step::Min(amount) => ("$min", RawBson::Int32(*amount)),
        Step::Push(value) => ("$push", value.to_bson()),
        Step::AddToSet(value) => ("$addToSet", value.to_bson()),
        Step::Pull(value) => ("$pull", value.to_bson()),
        Step::PullAll(values) => ("$pullAll", Tree::Array(values.clone()).to_bson()),
        Step::Pop(end) => ("$pop", RawBson::Int32(*end)),
        // It cannot have elements in its paths.
        Step::Rename(_) => return None,
    };
    let parts = path.iter().map(|part| match part {
        Part::Name(name) => name.as_str(),
        Part::All => "$[]",
        Part::Filtered => "$[i]",
    });
    let name = CString::try_from(parts.collect::<Vec<_>>().join(".")).unwrap();
    let mut fields = RawDocumentBuf::new();
    fields.append(name, argument);
    let mut update = RawDocumentBuf::new();
    update.append(CString::try_from(operator).unwrap(), fields);
    Some(update)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn elements_are_updated_as_the_model_does(
        document in document(),
        path in path(),
        step in step(),
        filter in filter(),
    ) {
        let Some(update) = update_of(&path, &step) else { return Ok(()) };
        let mut filters = RawArrayBuf::new();
        if path.contains(&Part::Filtered) {
            filters.push(RawDocumentBuf::try_from(&filter).unwrap());
        }
        let applied = parse_filtered(&update, &filters)
            .and_then(|parsed| parsed.apply(&document.to_document(), &MatchDetails::default(), &context()));
        let found = applied.as_ref().ok().map(|updated| sorted(tree_of(RawBsonRef::Document(&updated.document))));
        let expected = model(&document, &path, &step, &filter).map(sorted);
        prop_assert_eq!(&found, &expected, "{:?} {:?} {} {:?}", document, update, filter, applied.err());
    }
}

#[test]
fn nested_arrays_are_updated_at_every_level() {
    let document = rawdoc! {"_id": 1, "a": [{"b": [1, 5]}, {"b": [7]}, {"c": 1, "b": []}]};
    let update = rawdoc! {"$inc": {"a.$[].b.$[i]": 10}};
    let mut filters = RawArrayBuf::new();
    filters.push(rawdoc! {"i": {"$gte": 5}});
    let parsed = parse_filtered(&update, &filters).unwrap();
    let updated = parsed.apply(&document, &MatchDetails::default(), &context()).unwrap();
    let expected = rawdoc! {"_id": 1, "a": [{"b": [1, 15]}, {"b": [17]}, {"c": 1, "b": []}]};
    assert_eq!(updated.document, expected);
}
