use bolide_model::UnixMillis;
use bson::raw::RawDocumentBuf;
use bson::{Document, doc};
use fastrand::Rng;

use super::super::super::stored::{is_cut, stored_keys};
use super::super::tests::{ROUNDS, Random, filter, index, of};
use super::*;
use crate::context::Context;
use crate::filter::Filter;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("BSON")
}

fn sort(order: &Document) -> Sort {
    Sort::parse(&raw(order)).expect("a sort")
}

/// The direction, the fields of the whole order, and the bounds as they are shown.
fn shown(definition: &IndexDefinition, query: &Document, wanted: &Document) -> Option<String> {
    let filter = filter(query);
    let order = order(definition, &filter.conditions(), None, &sort(wanted))?;
    let keys = order.sort.keys().iter().map(|key| {
        let SortSource::Path(path) = &key.source else {
            panic!("a score")
        };
        format!("{}{}", if key.is_descending { "-" } else { "" }, path.text())
    });
    let keys: Vec<String> = keys.collect();
    let fields = order.bounds.shown(false).iter();
    let fields = fields.map(|(name, intervals)| format!("{name} {}", intervals.join(" ")));
    let fields: Vec<String> = fields.collect();
    let direction = if order.is_backward { "backward" } else { "forward" };
    Some(format!(
        "{direction} by {}: {} in {}",
        keys.join(" "),
        fields.join("; "),
        order.parts.len()
    ))
}

#[test]
fn an_index_has_the_orders_of_its_fields() {
    let a = of(doc! {"a": 1});
    let ab = of(doc! {"a": 1, "b": -1});
    let all = "[MinKey, MaxKey]";
    let down = "[MaxKey, MinKey]";
    let cases = [
        (&a, doc! {}, doc! {"a": 1}, Some(format!("forward by a: a {all} in 2"))),
        (
            &a,
            doc! {},
            doc! {"a": -1},
            Some(format!("backward by -a: a {down} in 2")),
        ),
        (&a, doc! {}, doc! {"b": 1}, None),
        (&a, doc! {}, doc! {"a": 1, "b": 1}, None),
        (
            &a,
            doc! {"a": {"$gt": 3}, "c": 1},
            doc! {"a": -1},
            Some("backward by -a: a [inf.0, 3) in 2".to_owned()),
        ),
        (
            &ab,
            doc! {},
            doc! {"a": 1},
            Some(format!("forward by a -b: a {all}; b {down} in 2")),
        ),
        (
            &ab,
            doc! {},
            doc! {"a": -1, "b": 1},
            Some(format!("backward by -a b: a {down}; b {all} in 2")),
        ),
        (&ab, doc! {}, doc! {"a": 1, "b": 1}, None),
        (&ab, doc! {}, doc! {"b": 1}, None),
        // Behind an equality: no documents with arrays.
        (
            &ab,
            doc! {"a": 5},
            doc! {"b": 1},
            Some(format!("backward by b: a [5, 5]; b {all} in 1")),
        ),
        (
            &ab,
            doc! {"a": 5},
            doc! {"a": -1, "b": -1},
            Some(format!("forward by -a -b: a [5, 5]; b {down} in 1")),
        ),
        (
            &ab,
            doc! {"a": {"$in": [5, 7]}, "b": {"$lt": 2}},
            doc! {"b": -1},
            Some("forward by -b: a [5, 5] [7, 7]; b (2, -inf.0] in 2".to_owned()),
        ),
        // Every document has the same value of b.
        (
            &of(doc! {"a": 1, "b": 1, "c": 1}),
            doc! {"b": 5},
            doc! {"a": 1, "c": 1},
            Some(format!("forward by a c b: a {all}; b {all}; c {all} in 1")),
        ),
        (&of(doc! {"a": "hashed"}), doc! {}, doc! {"a": 1}, None),
        (&of(doc! {"$**": 1}), doc! {"a": {"$gt": 1}}, doc! {"a": 1}, None),
        (&of(doc! {"a.0": 1}), doc! {}, doc! {"a.0": 1}, None),
    ];
    for (definition, query, wanted, expected) in cases {
        assert_eq!(shown(definition, &query, &wanted), expected, "{query} {wanted}");
    }
}

#[test]
fn an_index_that_leaves_documents_out_has_only_the_orders_of_others() {
    let sparse = index(&doc! {"key": {"a": 1}, "name": "n", "sparse": true});
    let by_a = doc! {"a": 1};
    assert_eq!(shown(&sparse, &doc! {}, &by_a), None);
    assert_eq!(shown(&sparse, &doc! {"a": null}, &by_a), None);
    assert!(shown(&sparse, &doc! {"a": {"$gt": 1}}, &by_a).is_some());
    let partial = index(&doc! {"key": {"a": 1}, "name": "n", "partialFilterExpression": {"b": {"$gt": 5}}});
    assert_eq!(shown(&partial, &doc! {}, &by_a), None);
    assert!(shown(&partial, &doc! {"b": 6}, &by_a).is_some());
    let german = index(&doc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "de", "strength": 2}});
    assert_eq!(shown(&german, &doc! {}, &by_a), None);
    let none = filter(&doc! {});
    let collation = german.collation().map(|collation| &**collation);
    assert!(order(&german, &none.conditions(), collation, &sort(&by_a)).is_some());
}

#[test]
fn too_many_values_have_no_order() {
    let ab = of(doc! {"a": 1, "b": 1});
    let values: Vec<i32> = (0..33).collect();
    let several = |values: &[i32]| shown(&ab, &doc! {"a": {"$in": values.to_vec()}}, &doc! {"b": 1});
    assert!(several(&values[..32]).is_some());
    assert_eq!(several(&values), None);
}

/// Reads the documents in the order of an index, as stored keys and an order say. `None` if there are keys that it does not allow.
fn walked(definition: &IndexDefinition, order: &IndexOrder, documents: &[RawDocumentBuf]) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        let keys = stored_keys(definition, document);
        let is_in = |key: &Vec<u8>, range: &KeyRange| range.from <= *key && *key < range.to;
        let is_obstacle = |key: &Vec<u8>| order.obstacles.iter().any(|range| is_in(key, range));
        if keys.iter().any(|key| is_obstacle(key) || is_cut(key)) {
            return None;
        }
        let first = if order.is_backward { keys.last() } else { keys.first() };
        for part in &order.parts {
            for key in keys
                .iter()
                .filter(|key| part.ranges.iter().any(|range| is_in(key, range)))
            {
                assert!(key.starts_with(&part.begin));
                if Some(key) == first {
                    found.push((key[part.begin.len()..].to_vec(), number));
                }
            }
        }
    }
    found.sort();
    if order.is_backward {
        found.reverse();
    }
    Some(found.into_iter().map(|(_, number)| number).collect())
}

/// An order that the index may have.
fn random_order(random: &mut Random, definition: &IndexDefinition) -> Document {
    let mut wanted = Document::new();
    let is_backward = random.0.bool();
    for field in definition.key.fields().iter().skip(random.0.usize(..2)) {
        if random.0.u8(..4) == 0 {
            break;
        }
        let is_descending = (field.order == Order::Descending) != is_backward;
        wanted.insert(field.name.to_string(), if is_descending { -1 } else { 1 });
    }
    wanted
}

#[test]
fn the_order_of_keys_is_that_of_the_sort() {
    let (mut served, mut ordered) = (0, 0);
    for seed in 0..4 * ROUNDS {
        let mut random = Random(Rng::with_seed(seed), Vec::new());
        let Some(definition) = random.definition() else {
            continue;
        };
        random.1 = definition
            .key
            .fields()
            .iter()
            .map(|field| field.name.to_string())
            .collect();
        let query = match random.0.u8(..3) {
            0 => doc! {},
            _ => random.filter(1),
        };
        let Ok(parsed) = Filter::parse(&raw(&query)) else {
            continue;
        };
        let wanted = random_order(&mut random, &definition);
        let Ok(by) = Sort::parse(&raw(&wanted)) else { continue };
        let collation = definition.collation().cloned();
        let found = order(&definition, &parsed.conditions(), collation.as_deref(), &by);
        let Some(found) = found.filter(|_| !by.is_empty()) else {
            continue;
        };
        served += 1;
        let context = Context {
            collation: collation.clone(),
            ..Context::new(UnixMillis(0))
        };
        let depth = random.0.usize(..3);
        let documents: Vec<RawDocumentBuf> = (0..20).map(|_| raw(&random.document(depth))).collect();
        let Some(walked) = walked(&definition, &found, &documents) else {
            continue;
        };
        let matches = |number: &usize| parsed.matches(&documents[*number], &context).expect("no errors");
        let walked: Vec<usize> = walked.into_iter().filter(matches).collect();
        let key = |number: &usize| {
            found
                .sort
                .key(&documents[*number], collation.as_deref())
                .expect("a key")
        };
        let tie = |number: &usize| {
            if found.is_backward {
                documents.len() - number
            } else {
                *number
            }
        };
        let mut expected: Vec<usize> = (0..documents.len()).filter(matches).collect();
        expected.sort_by_key(|number| (key(number), tie(number)));
        assert_eq!(
            walked, expected,
            "{seed}: {definition:?}\nfilter {query}\nsort {wanted}\n{documents:?}"
        );
        // The order begins with the one that was asked for.
        let asked = |number: &usize| by.key(&documents[*number], collation.as_deref()).expect("a key");
        assert!(walked.iter().map(asked).is_sorted(), "{seed}");
        ordered += usize::from(walked.len() > 1);
    }
    assert!(
        served > ROUNDS as usize / 2 && ordered > ROUNDS as usize / 8,
        "{served} {ordered}"
    );
}
