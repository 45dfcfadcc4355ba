//! Updates that make no sense: they are refused, or leave a document that can be stored.

use bson::raw::CString;
use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};
use proptest::prelude::*;

use super::{context, parse_with};
use crate::filter::{Filter, MatchDetails};
use crate::update::ParseOptions;
use crate::value::validate;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("_id".to_owned()),
        Just("$each".to_owned()),
        Just("$slice".to_owned()),
        Just("$sort".to_owned()),
        Just("$position".to_owned()),
        Just("$type".to_owned()),
        Just("and".to_owned()),
        Just("$in".to_owned()),
        "[abx]",
    ]
}

fn scalar() -> impl Strategy<Value = RawBson> {
    prop_oneof![
        Just(RawBson::Null),
        Just(RawBson::Undefined),
        Just(RawBson::MinKey),
        any::<bool>().prop_map(RawBson::Boolean),
        any::<i32>().prop_map(RawBson::Int32),
        any::<i64>().prop_map(RawBson::Int64),
        any::<f64>().prop_map(RawBson::Double),
        (-2_i32..3).prop_map(RawBson::Int32),
        any::<[u8; 16]>().prop_map(|bytes| RawBson::Decimal128(bson::Decimal128::from_bytes(bytes))),
        any::<i64>().prop_map(|millis| RawBson::DateTime(bson::DateTime::from_millis(millis))),
        path().prop_map(RawBson::String),
    ]
}

fn value() -> impl Strategy<Value = RawBson> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|elements| {
                let mut array = RawArrayBuf::new();
                elements.into_iter().for_each(|element| array.push(element));
                RawBson::Array(array)
            }),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (CString::try_from(name).unwrap(), value));
                RawBson::Document(fields.collect())
            }),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[abx]",
        1 => Just("_id".to_owned()),
        1 => "[0-3]",
        1 => Just("$".to_owned()),
        1 => Just("$[]".to_owned()),
        2 => Just("$[i]".to_owned()),
        1 => Just("$[j]".to_owned()),
        1 => "[$.\\[\\]]{0,2}",
        1 => Just("18446744073709551617".to_owned()),
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("."))
}

/// An operator with any argument.
fn any_operation() -> impl Strategy<Value = (&'static str, RawBson)> {
    let operator = prop::sample::select(vec![
        "$set",
        "$unset",
        "$setOnInsert",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$rename",
        "$currentDate",
        "$push",
        "$addToSet",
        "$pull",
        "$pullAll",
        "$pop",
        "$bit",
        "$foo",
    ]);
    (operator, value())
}

/// An operator with an argument of the right form.
fn formed_operation() -> impl Strategy<Value = (&'static str, RawBson)> {
    prop_oneof![
        any::<i32>().prop_map(|amount| ("$inc", amount.into())),
        any::<f64>().prop_map(|factor| ("$mul", factor.into())),
        any::<i64>().prop_map(|bits| ("$bit", rawdoc! {"xor": bits}.into())),
        prop::sample::select(vec!["$pop", "$unset"]).prop_map(|operator| (operator, 1.into())),
        value().prop_map(|value| ("$addToSet", rawdoc! {"$each": [value, 1]}.into())),
        value().prop_map(|value| ("$pull", rawdoc! {"$in": [value, 1]}.into())),
        value().prop_map(|value| ("$pullAll", rawdoc! {"x": [value, 1]}.get("x").unwrap().unwrap().into())),
        (value(), -3..4, -3..4, prop::sample::select(vec![-1, 1])).prop_map(|(value, position, slice, sort)| {
            let push = rawdoc! {"$each": [value, 1], "$position": position, "$slice": slice, "$sort": sort};
            ("$push", push.into())
        }),
    ]
}

fn update() -> impl Strategy<Value = RawDocumentBuf> {
    let operation = prop_oneof![any_operation(), formed_operation()];
    let path = prop_oneof![
        path(),
        prop::sample::select(vec!["a", "b.x", "a.$[i]", "b.$[].x", "x", "a.$.b", "a.0"]).prop_map(str::to_owned),
    ];
    prop::collection::vec((operation, path), 1..3).prop_map(|operations| {
        let mut update = RawDocumentBuf::new();
        for ((operator, argument), path) in operations {
            let mut fields = RawDocumentBuf::new();
            fields.append(CString::try_from(path).unwrap(), argument);
            update.append(CString::try_from(operator).unwrap(), fields);
        }
        update
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn updates_without_sense_do_no_harm(
        update in update(),
        a in value(),
        b in value(),
        filtered in any::<bool>(),
        array_index in prop::option::of(0_usize..4),
    ) {
        let mut filters = RawArrayBuf::new();
        filters.push(rawdoc! {"i": {"$gte": 0}});
        let filters = filtered.then_some(&filters);
        let Ok(update) = parse_with(update.into(), filters, ParseOptions::default()) else {
            return Ok(());
        };
        let old = rawdoc! {"_id": 1, "a": a, "b": b};
        let matched = MatchDetails { array_index };
        if let Ok(updated) = update.apply(&old, &matched, &context()) {
            prop_assert!(validate(updated.document.as_bytes()).is_ok());
            prop_assert_eq!(updated.document.get("_id").unwrap(), old.get("_id").unwrap());
        }
        let filter = Filter::parse(&rawdoc! {"a": 1, "x.b": 2}).unwrap();
        if let Ok(document) = update.upsert(&filter, &context()) {
            prop_assert!(validate(document.as_bytes()).is_ok());
            prop_assert_eq!(document.iter().next().unwrap().unwrap().0.as_str(), "_id");
        }
    }
}
