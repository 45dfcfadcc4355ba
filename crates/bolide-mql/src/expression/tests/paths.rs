use bson::{RawBson, RawBsonRef, RawDocumentBuf, rawbson, rawdoc};

use super::{codes, context, date, document, evaluate, missing, values};
use crate::expression::{Expression, ParseScope, Scope};

#[test]
fn paths_go_through_documents_and_arrays() {
    values! {
        "$n" => 5,
        "$sub.k" => "v",
        "$sub.deep.z" => true,
        "$items.x" => [1, 2],
        "$list.x" => [],
        "$$ROOT.n" => 5,
        "$$CURRENT.sub.k" => "v",
        "$$given" => 42,
        "$$NOW" => (date(super::LEAP_DAY)),
        "plain" => "plain",
    }
    missing! {
        "$missing",
        "$n.x",
        "$$REMOVE",
        "$$REMOVE.x",
        "$$given.x",
    }
    values! {
        "$list.0" => [],
    }
    codes! {
        "$" => 16872,
        "$a." => 40353,
        "$a..b" => 15998,
        "$.a" => 15998,
        "$a.$b" => 16410,
        "$$" => 9,
        "$$x" => 17276,
        "$$1x" => 9,
        "$$KEEP" => 17276,
        "$$CLUSTER_TIME" => 51144,
        "$$USER_ROLES" => 238,
    }
}

#[test]
fn literals_of_documents_and_arrays() {
    values! {
        {} => {},
        {"a": "$n", "b": {"c": "$sub.k"}} => {"a": 5, "b": {"c": "v"}},
        {"a": "$missing", "b": 1} => {"b": 1},
        ["$n", "$missing"] => [5, null],
        {"$literal": "$n"} => "$n",
        {"$literal": {"$add": [1, 2]}} => {"$add": [1, 2]},
        {"$const": 1} => 1,
    }
    codes! {
        {"$foo": 1} => 168,
        {"$add": [1], "$subtract": [1]} => 15983,
        {"a": 1, "$add": [1]} => 16410,
        {"a.b": 1} => 16412,
        {"": 1} => 15998,
        {"$function": {}} => 238,
    }
}

#[test]
fn variables_of_let_hide_outer_ones() {
    values! {
        {"$let": {"vars": {"x": 1}, "in": "$$x"}} => 1,
        {"$let": {"vars": {"x": 1, "y": "$n"}, "in": {"$add": ["$$x", "$$y"]}}} => 6,
        {"$let": {"vars": {"x": 1}, "in": {"$let": {"vars": {"x": 2, "y": "$$x"}, "in": ["$$x", "$$y"]}}}} => [2, 1],
        {"$let": {"vars": {"CURRENT": "$sub"}, "in": "$k"}} => "v",
        {"$let": {"vars": {"x": "$items"}, "in": "$$x.x"}} => [1, 2],
        {"$let": {"vars": {"given": 1}, "in": "$$given"}} => 1,
    }
    missing! {
        {"$let": {"vars": {"x": "$missing"}, "in": "$$x"}},
    }
    codes! {
        {"$let": 1} => 16874,
        {"$let": {"vars": {}, "in": 1, "x": 1}} => 16875,
        {"$let": {"in": 1}} => 16876,
        {"$let": {"vars": {}}} => 16877,
        {"$let": {"vars": 1, "in": 1}} => 10065,
        {"$let": {"vars": {"X": 1}, "in": 1}} => 9,
        {"$let": {"vars": {"x": 1, "y": "$$x"}, "in": 1}} => 17276,
        {"$add": [{"$let": {"vars": {"x": 1}, "in": 1}}, "$$x"]} => 17276,
    }
}

#[test]
fn a_stage_can_define_variables_and_metadata() {
    let (context, document) = (context(), document());
    let mut names = ParseScope::new(&context);
    names.define("KEEP");
    let parse = |value: RawBson, names: &mut ParseScope| Expression::parse(value.as_raw_bson_ref(), names).unwrap();
    let keep = parse(rawbson!("$$KEEP.a"), &mut names);
    let score = parse(rawbson!({"$meta": "textScore"}), &mut names);
    let value = rawdoc! { "a": 3 };
    let metadata = rawdoc! { "textScore": 1.5 };
    let scope = Scope::new(&context, &document).with_metadata(&metadata);
    let inner = scope.with_variable("KEEP", Some(RawBsonRef::Document(&value)));
    assert_eq!(keep.evaluate(&inner).unwrap(), Some(RawBson::Int32(3)));
    assert_eq!(score.evaluate(&inner).unwrap(), Some(RawBson::Double(1.5)));
}

#[test]
fn dependencies_and_constants() {
    let parsed = |value: RawBson| {
        let mut names = ParseScope::new(&context());
        Expression::parse(value.as_raw_bson_ref(), &mut names).unwrap()
    };
    let paths =
        parsed(rawbson!({"$add": ["$a.b", {"$let": {"vars": {"x": "$c"}, "in": "$$x.y"}}, "$$NOW"]})).field_paths();
    assert_eq!(paths.paths.into_iter().collect::<Vec<_>>(), ["a.b", "c"]);
    assert!(!paths.is_whole_document);
    assert!(parsed(rawbson!("$$ROOT")).field_paths().is_whole_document);
    assert!(parsed(rawbson!({"$getField": "a"})).field_paths().is_whole_document);
    assert!(parsed(rawbson!({"$concatArrays": [[1], [{"x": 2}]]})).is_constant());
    assert!(!parsed(rawbson!({"$rand": {}})).is_constant());
    assert!(!parsed(rawbson!("$a")).is_constant());
}

/// `{v: {v: … }}` with the operator `$add` at each level.
fn nested(levels: usize) -> RawBson {
    let mut value = rawbson!(1);
    for _ in 0..levels {
        value = rawbson!({ "$add": [value] });
    }
    value
}

#[test]
fn deep_expressions_fit_the_stack() {
    for (levels, wrap) in [
        (198, (|inner| rawbson!({ "$abs": inner })) as fn(RawBson) -> RawBson),
        (98, |inner| rawbson!({ "$add": [inner] })),
        (98, |inner| rawbson!({"$let": {"vars": {}, "in": inner}})),
        (98, |inner| rawbson!({"$cond": {"if": true, "then": inner, "else": 1}})),
        (98, |inner| rawbson!({"$first": [[inner]]})),
        (
            65,
            |inner| rawbson!({"$switch": {"branches": [{"case": true, "then": inner}]}}),
        ),
        (
            98,
            |inner| rawbson!({"$reduce": {"input": [1], "initialValue": 1, "in": inner}}),
        ),
    ] {
        let deep = (0..levels).fold(rawbson!("$n"), |inner, _| wrap(inner));
        assert_eq!(evaluate(deep.as_raw_bson_ref()).unwrap(), Some(RawBson::Int32(5)));
    }
}

#[test]
fn nesting_is_bounded() {
    assert_eq!(
        evaluate(nested(150).as_raw_bson_ref()).unwrap(),
        Some(RawBson::Int32(1))
    );
    let error = evaluate(nested(300).as_raw_bson_ref()).unwrap_err();
    assert_eq!(error.code, crate::error::Code::OVERFLOW);
}

#[test]
fn values_are_bounded() {
    // Each level doubles a string, or an array, or a document.
    for double in [
        rawbson!({"$concat": ["$$s", "$$s"]}),
        rawbson!({"$concatArrays": [["$$s"], ["$$s"]]}),
        rawbson!({"a": "$$s", "b": "$$s"}),
        rawbson!(["$$s", "$$s"]),
    ] {
        let mut expression = rawbson!("$$s");
        for _ in 0..40 {
            expression = rawbson!({"$let": {"vars": {"s": double.clone()}, "in": expression}});
        }
        let start = rawbson!({"$let": {"vars": {"s": "0123456789"}, "in": expression}});
        let error = evaluate(start.as_raw_bson_ref()).unwrap_err();
        assert_eq!(error.code, crate::error::Code::EXCEEDED_MEMORY_LIMIT);
    }
    codes! {
        {"$range": [0, 2_147_483_647]} => 146,
        {"$reduce": {"input": {"$range": [0, 300]}, "initialValue": 0, "in": ["$$value"]}} => 15,
    }
}

#[test]
fn documents_of_names_and_expressions() {
    let (context, document) = (context(), document());
    let mut names = ParseScope::new(&context);
    let mut field = |name: &str, value: RawBson| {
        let expression = Expression::parse(value.as_raw_bson_ref(), &mut names).unwrap();
        (bson::raw::CString::try_from(name).unwrap(), expression)
    };
    let fields = [
        field("a", rawbson!("$n")),
        field("b", rawbson!("$missing")),
        field("c", rawbson!(1)),
    ];
    let made = crate::expression::evaluate_document(&fields, &Scope::new(&context, &document)).unwrap();
    let expected: RawDocumentBuf = rawdoc! { "a": 5, "c": 1 };
    assert_eq!(made, expected);
}
