//! Random pipelines over random nested documents against a naive evaluator of trees, written from mongo.md §9, §11 and §13.

mod evaluator;

use std::sync::Arc;

use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc};
use proptest::prelude::*;

use super::{Memory, context, run_documents};
use crate::aggregation::{Namespace, Pipeline, PipelineOptions};
use crate::expression::ParseScope;
use crate::filter::tests::model::{any_fields, any_filter, any_value};

/// A field, or a field of a field.
fn path() -> impl Strategy<Value = String> {
    "[ab](\\.[ab])?"
}

fn field_path() -> impl Strategy<Value = String> {
    path().prop_map(|path| format!("${path}"))
}

/// Expressions on the fields of documents, as the value of a field: a plain document there would be fields of the field.
fn field_expression() -> impl Strategy<Value = Bson> {
    expression().prop_map(|expression| match &expression {
        Bson::Document(fields) if !fields.keys().any(|name| name.starts_with('$')) => {
            doc! {"$ifNull": [expression, Bson::Null]}.into()
        }
        // In a projection a number says whether a field is kept.
        Bson::Int32(_) => doc! {"$literal": expression}.into(),
        _ => expression,
    })
}

fn expression() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        4 => field_path().prop_map(Bson::String),
        1 => (0_i32..3).prop_map(Bson::Int32),
        1 => Just(doc! {"$literal": "$a"}.into()),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let comparison = prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"]);
        prop_oneof![
            (comparison, two.clone()).prop_map(|(operator, (a, b))| doc! {operator: [a, b]}.into()),
            two.clone().prop_map(|(a, b)| doc! {"$ifNull": [a, b]}.into()),
            (inner.clone(), two).prop_map(|(a, (b, c))| doc! {"$cond": [a, b, c]}.into()),
            inner.clone().prop_map(|a| doc! {"$isArray": [a]}.into()),
            inner.clone().prop_map(|a| doc! {"$type": [a]}.into()),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| doc! {"$and": all}.into()),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| doc! {"$or": all}.into()),
            inner.clone().prop_map(|a| doc! {"$not": [a]}.into()),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
            inner.prop_map(|a| doc! {"k": a}.into()),
        ]
    })
}

fn projection() -> impl Strategy<Value = Document> {
    let inclusion = (
        prop::collection::btree_set("[ab]", 0..3),
        prop::option::of(field_expression()),
        any::<bool>(),
    );
    let inclusion = inclusion.prop_map(|(names, computed, has_id)| {
        let mut spec: Document = names.into_iter().map(|name| (name, Bson::Int32(1))).collect();
        if let Some(computed) = computed {
            spec.insert("x", computed);
        }
        if spec.is_empty() || !has_id {
            spec.insert("_id", i32::from(has_id));
        }
        spec
    });
    prop_oneof![
        3 => inclusion,
        1 => path().prop_map(|path| doc! {path: 1}),
        1 => path().prop_map(|path| doc! {path: 0}),
        1 => Just(doc! {"_id": 0, "a": 0}),
    ]
}

fn group() -> impl Strategy<Value = Document> {
    let operators = vec!["$sum", "$avg", "$min", "$max", "$first", "$last", "$push"];
    let key = prop_oneof![
        2 => field_path().prop_map(Bson::String),
        1 => Just(Bson::Null),
        1 => (field_path(), field_path()).prop_map(|(a, b)| doc! {"k": a, "l": b}.into()),
    ];
    let accumulator = (prop::sample::select(operators), field_path());
    (key, prop::collection::vec(accumulator, 0..3)).prop_map(|(key, accumulators)| {
        let mut spec = doc! {"_id": key};
        for ((operator, argument), name) in accumulators.into_iter().zip(["a", "b", "n"]) {
            spec.insert(name, doc! {operator: argument});
        }
        spec
    })
}

fn stage() -> impl Strategy<Value = Document> {
    let sort = prop::collection::vec(
        (path(), prop::sample::select(vec![Bson::Int32(1), Bson::Int32(-1)])),
        1..3,
    );
    let sort = sort.prop_map(|fields| fields.into_iter().collect::<Document>());
    // A path and a part of it are refused.
    let sort = sort.prop_filter("no collisions", |sort| {
        sort.len() == 1 || sort.keys().all(|name| !name.contains('.'))
    });
    let unwind = (field_path(), any::<bool>(), any::<bool>()).prop_map(|(path, keeps, has_index)| {
        let mut spec = doc! {"path": path, "preserveNullAndEmptyArrays": keeps};
        if has_index {
            spec.insert("includeArrayIndex", "i");
        }
        doc! {"$unwind": spec}
    });
    prop_oneof![
        3 => any_filter().prop_map(|filter| doc! {"$match": filter}),
        3 => projection().prop_map(|spec| doc! {"$project": spec}),
        2 => (path(), field_expression()).prop_map(|(path, value)| doc! {"$addFields": {path: value}}),
        3 => group().prop_map(|spec| doc! {"$group": spec}),
        3 => sort.prop_map(|spec| doc! {"$sort": spec}),
        3 => unwind,
        2 => ("[ab]", "[ab]").prop_map(|(local, foreign)| {
            doc! {"$lookup": {"from": "other", "localField": local, "foreignField": foreign, "as": "b"}}
        }),
        1 => (0_i64..4).prop_map(|count| doc! {"$skip": count}),
        1 => (1_i64..6).prop_map(|count| doc! {"$limit": count}),
        1 => Just(doc! {"$count": "a"}),
        1 => Just(doc! {"$replaceRoot": {"newRoot": {"$ifNull": ["$$REMOVE", {"a": "$b", "b": "$a"}]}}}),
    ]
}

fn collection() -> impl Strategy<Value = Vec<Document>> {
    let document = any_fields(any_value());
    prop::collection::vec(document, 0..8).prop_map(|documents| {
        let documents = documents.into_iter().enumerate();
        documents
            .map(|(at, fields)| {
                let mut document = doc! {"_id": i32::try_from(at).unwrap()};
                document.extend(fields);
                document
            })
            .collect()
    })
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn answer(pipeline: &[Document], input: &[Document], other: &[Document]) -> crate::Result<Vec<Document>> {
    let mut stages = RawArrayBuf::new();
    pipeline.iter().for_each(|stage| stages.push(raw(stage)));
    let options = PipelineOptions {
        namespace: Namespace::new("test", "main"),
        scope: ParseScope::new(&context()),
        geo_fields: Vec::new(),
    };
    let pipeline = Pipeline::parse(&stages, &options)?;
    let memory = Memory {
        collections: [("other".to_owned(), other.iter().map(raw).collect())].into(),
        ..Memory::default()
    };
    let results = run_documents(&pipeline, input.iter().map(raw).collect(), &Arc::new(memory))?;
    Ok(results
        .iter()
        .map(|document| Document::try_from(&**document).unwrap())
        .collect())
}

/// The bytes, so that the order of fields and the types of numbers count.
fn bytes(documents: &[Document]) -> Vec<Vec<u8>> {
    documents.iter().map(|document| raw(document).into_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn pipelines_give_what_the_naive_evaluator_gives(
        pipeline in prop::collection::vec(stage(), 1..5),
        input in collection(),
        other in collection(),
    ) {
        let expected = evaluator::run(&pipeline, &input, &other);
        let found = answer(&pipeline, &input, &other);
        let Some(expected) = expected else {
            prop_assert!(found.is_err(), "{:?} of {:?}", pipeline, input);
            return Ok(());
        };
        let found = found.map_err(|error| TestCaseError::fail(format!("{pipeline:?}: {error:?}")))?;
        prop_assert_eq!(bytes(&found), bytes(&expected), "{:?}\n of {:?}\n and {:?}\n gave {:?}\n not {:?}", pipeline, input, other, found, expected);
    }
}
