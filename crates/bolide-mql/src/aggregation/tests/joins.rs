//! `$lookup`, `$graphLookup`, `$unionWith`, views.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Memory, check, check_error, check_with, context, documents, memory, parse, run_with};
use crate::aggregation::{Collections, Document, Documents, Namespace, Pipeline, View, open_namespace};
use crate::value::testing::{array, document};

#[test]
fn equality_joins_as_match_does() {
    let foreign = memory(&[(
        "b",
        r#"[{"_id": 1, "k": 1}, {"_id": 2, "k": [1, 2]}, {"_id": 3}, {"_id": 4, "k": null}, {"_id": 5, "k": 2.0}, {"_id": 6, "k": "x"},
            {"_id": 7, "k": []}]"#,
    )]);
    check_with(
        r#"[{"$lookup": {"from": "b", "localField": "a", "foreignField": "k", "as": "j"}}, {"$set": {"j": "$j._id"}}]"#,
        r#"[{"_id": 1, "a": 1}, {"_id": 2, "a": [2, "x"]}, {"_id": 3}, {"_id": 4, "a": "none"}, {"_id": 5, "a": [[1, 2]]}, {"_id": 6, "a": []},
            {"_id": 7, "a": {"$regex": "x"}}]"#,
        &Arc::new(foreign),
        r#"[{"_id": 1, "a": 1, "j": [1, 2]}, {"_id": 2, "a": [2, "x"], "j": [2, 5, 6]}, {"_id": 3, "j": [3, 4]}, {"_id": 4, "a": "none", "j": []},
            {"_id": 5, "a": [[1, 2]], "j": [2]}, {"_id": 6, "a": [], "j": [3, 4]}, {"_id": 7, "a": {"$regex": "x"}, "j": []}]"#,
    );
}

#[test]
fn paths_of_joins_go_through_arrays() {
    let foreign = memory(&[(
        "b",
        r#"[{"_id": 1, "k": [{"v": 1}, {"v": 2}]}, {"_id": 2, "k": {"v": 3}}, {"_id": 3, "k": [{"w": 1}]}]"#,
    )]);
    check_with(
        r#"[{"$lookup": {"from": "b", "localField": "a.x", "foreignField": "k.v", "as": "j.found"}}, {"$set": {"j.found": "$j.found._id"}}]"#,
        r#"[{"_id": 1, "a": [{"x": 2}, {"x": 3}]}, {"_id": 2, "j": 5}]"#,
        &Arc::new(foreign),
        r#"[{"_id": 1, "a": [{"x": 2}, {"x": 3}], "j": {"found": [1, 2]}}, {"_id": 2, "j": {"found": [3]}}]"#,
    );
}

#[test]
fn pipelines_of_joins_see_variables() {
    let foreign = Arc::new(memory(&[(
        "b",
        r#"[{"_id": 1, "k": 1, "q": 5}, {"_id": 2, "k": 1, "q": 9}, {"_id": 3, "k": 2, "q": 7}]"#,
    )]));
    check_with(
        r#"[{"$lookup": {"from": "b", "let": {"low": "$low"}, "pipeline": [{"$match": {"$expr": {"$gte": ["$q", "$$low"]}}}, {"$project": {"_id": 1}}],
            "as": "j"}}]"#,
        r#"[{"_id": 1, "low": 6}, {"_id": 2, "low": 9}]"#,
        &foreign,
        r#"[{"_id": 1, "low": 6, "j": [{"_id": 2}, {"_id": 3}]}, {"_id": 2, "low": 9, "j": [{"_id": 2}]}]"#,
    );
    // The collection was read once for both.
    assert_eq!(foreign.opened.load(Ordering::Relaxed), 1);
    check_with(
        r#"[{"$lookup": {"from": "b", "let": {"x": "$none"}, "pipeline": [{"$match": {"_id": 1}}, {"$project": {"t": {"$type": "$$x"}, "x": "$$x"}}],
            "as": "j"}}]"#,
        r#"[{"_id": 1}]"#,
        &foreign,
        r#"[{"_id": 1, "j": [{"_id": 1, "t": "missing"}]}]"#,
    );
    check_with(
        r#"[{"$lookup": {"from": "b", "localField": "a", "foreignField": "k", "let": {"low": "$low"},
            "pipeline": [{"$match": {"$expr": {"$gte": ["$q", "$$low"]}}}, {"$count": "n"}], "as": "j"}}]"#,
        r#"[{"_id": 1, "a": 1, "low": 6}, {"_id": 2, "a": 2, "low": 9}]"#,
        &foreign,
        r#"[{"_id": 1, "a": 1, "low": 6, "j": [{"n": 1}]}, {"_id": 2, "a": 2, "low": 9, "j": []}]"#,
    );
    check(
        r#"[{"$lookup": {"pipeline": [{"$documents": [{"x": 1}, {"x": 2}]}], "as": "j"}}]"#,
        r#"[{"_id": 1}]"#,
        r#"[{"_id": 1, "j": [{"x": 1}, {"x": 2}]}]"#,
    );
}

#[test]
fn joins_inside_joins_see_outer_variables() {
    let foreign = memory(&[
        ("b", r#"[{"_id": 1}]"#),
        ("c", r#"[{"_id": 5, "v": 3}, {"_id": 6, "v": 4}]"#),
    ]);
    check_with(
        r#"[{"$lookup": {"from": "b", "let": {"x": "$a"}, "as": "j", "pipeline": [
            {"$lookup": {"from": "c", "let": {"y": "$_id"}, "as": "k", "pipeline": [
                {"$match": {"$expr": {"$eq": ["$v", {"$add": ["$$x", "$$y"]}]}}}]}}]}}]"#,
        r#"[{"_id": 1, "a": 2}]"#,
        &Arc::new(foreign),
        r#"[{"_id": 1, "a": 2, "j": [{"_id": 1, "k": [{"_id": 5, "v": 3}]}]}]"#,
    );
}

#[test]
fn unions_and_views() {
    let mut collections = memory(&[("b", r#"[{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]"#)]);
    let view = |pipeline: &str, source: &str| View {
        source: Namespace::new("test", source),
        pipeline: array(pipeline),
    };
    collections
        .views
        .insert("v".to_owned(), view(r#"[{"$match": {"a": 2}}]"#, "b"));
    collections
        .views
        .insert("w".to_owned(), view(r#"[{"$set": {"w": true}}]"#, "v"));
    collections.views.insert("loop".to_owned(), view("[]", "loop"));
    let collections = Arc::new(collections);
    check_with(
        r#"[{"$unionWith": "b"}]"#,
        r#"[{"_id": 0}]"#,
        &collections,
        r#"[{"_id": 0}, {"_id": 1, "a": 1}, {"_id": 2, "a": 2}]"#,
    );
    check_with(
        r#"[{"$unionWith": {"coll": "w", "pipeline": [{"$project": {"_id": 0}}]}}]"#,
        r#"[{"_id": 0}]"#,
        &collections,
        r#"[{"_id": 0}, {"a": 2, "w": true}]"#,
    );
    check_with(
        r#"[{"$unionWith": "missing"}]"#,
        r#"[{"_id": 0}]"#,
        &collections,
        r#"[{"_id": 0}]"#,
    );
    let error = run_with(r#"[{"$unionWith": "loop"}]"#, "[]", &collections).unwrap_err();
    assert_eq!(error.code.0, 165);
}

#[test]
fn views_are_checked_and_opened() {
    let check = |pipeline: &str| Pipeline::parse_view(&array(pipeline), Namespace::new("test", "b"), &context());
    assert!(check(r#"[{"$match": {}}]"#).is_ok());
    assert_eq!(check(r#"[{"$out": "x"}]"#).unwrap_err().code.0, 167);
    assert_eq!(check(r#"[{"$foo": 1}]"#).unwrap_err().code.0, 40324);

    let mut collections = memory(&[("b", r#"[{"_id": 1}, {"_id": 2}]"#)]);
    let view = View {
        source: Namespace::new("test", "b"),
        pipeline: array(r#"[{"$match": {"_id": 2}}]"#),
    };
    collections.views.insert("v".to_owned(), view);
    let mut source = open_namespace(&Namespace::new("test", "v"), None, context(), Arc::new(collections)).unwrap();
    assert_eq!(source.next().unwrap().unwrap().bytes, document(r#"{"_id": 2}"#));
    assert!(source.next().unwrap().is_none());
}

#[test]
fn a_join_leaves_out_documents_that_have_died_since_it_read_them() {
    let mut foreign = memory(&[("b", r#"[{"_id": 1, "k": 1}, {"_id": 2, "k": 1}]"#)]);
    foreign.dead_after = Some(2);
    let collections: Arc<dyn Collections> = Arc::new(foreign);
    let pipeline = parse(
        r#"[{"$lookup": {"from": "b", "localField": "a", "foreignField": "k", "as": "j"}}, {"$project": {"n": {"$size": "$j"}}}]"#,
    )
    .unwrap();
    let input = documents(r#"[{"_id": 1, "a": 1}, {"_id": 2, "a": 1}]"#);
    let input = Documents::new(input.into_iter().map(Document::new).collect::<Vec<_>>());
    let mut output = pipeline.open(Box::new(input), context(), collections).unwrap();
    // The first join asks for both, and both live; then they have died.
    assert_eq!(output.next().unwrap().unwrap().bytes, document(r#"{"_id": 1, "n": 2}"#));
    assert_eq!(output.next().unwrap().unwrap().bytes, document(r#"{"_id": 2, "n": 0}"#));
}

#[test]
fn graphs_are_searched_breadth_first() {
    let people = r#"[{"_id": 1, "name": "a", "to": ["b", "c"]}, {"_id": 2, "name": "b", "to": ["d"]}, {"_id": 3, "name": "c", "to": ["a"]},
        {"_id": 4, "name": "d", "to": []}, {"_id": 5, "name": "e"}]"#;
    let collections: Arc<Memory> = Arc::new(memory(&[("people", people)]));
    let search = |more: &str| {
        format!(
            r#"[{{"$graphLookup": {{"from": "people", "startWith": "$start", "connectFromField": "to", "connectToField": "name", "as": "r"{more}}}}},
                {{"$set": {{"r": {{"$map": {{"input": "$r", "in": ["$$this._id", "$$this.depth"]}}}}}}}}]"#
        )
    };
    let cases = [
        (
            r#", "depthField": "depth""#,
            r#"[[1, {"$numberLong": "0"}], [2, {"$numberLong": "1"}], [3, {"$numberLong": "1"}], [4, {"$numberLong": "2"}]]"#,
        ),
        (r#", "maxDepth": 0"#, "[[1, null]]"),
        (r#", "maxDepth": 1"#, "[[1, null], [2, null], [3, null]]"),
        (
            r#", "restrictSearchWithMatch": {"name": {"$ne": "b"}}"#,
            "[[1, null], [3, null]]",
        ),
    ];
    for (more, expected) in cases {
        let expected = format!(r#"[{{"start": "a", "r": {expected}}}]"#);
        check_with(&search(more), r#"[{"start": "a"}]"#, &collections, &expected);
    }
    check_with(
        &search(""),
        r#"[{"start": ["d", "e"]}, {}]"#,
        &collections,
        r#"[{"start": ["d", "e"], "r": [[4, null], [5, null]]}, {"r": []}]"#,
    );
}

#[test]
fn bad_joins_have_the_codes_of_mongodb() {
    let cases = [
        (r#"{"$lookup": 1}"#, 9),
        (
            r#"{"$lookup": {"from": "a", "localField": "b", "foreignField": "c"}}"#,
            9,
        ),
        (r#"{"$lookup": {"from": "a", "localField": "b", "as": "c"}}"#, 9),
        (r#"{"$lookup": {"from": "a", "as": "c"}}"#, 9),
        (
            r#"{"$lookup": {"from": 1, "localField": "b", "foreignField": "c", "as": "d"}}"#,
            9,
        ),
        (
            r#"{"$lookup": {"from": "a", "localField": 1, "foreignField": "c", "as": "d"}}"#,
            9,
        ),
        (
            r#"{"$lookup": {"from": "a", "localField": "b", "foreignField": "c", "as": "d", "x": 1}}"#,
            9,
        ),
        (r#"{"$lookup": {"localField": "b", "foreignField": "c", "as": "d"}}"#, 9),
        (r#"{"$lookup": {"from": "a", "pipeline": 1, "as": "d"}}"#, 14),
        (r#"{"$lookup": {"from": "a", "pipeline": [], "let": 1, "as": "d"}}"#, 9),
        (
            r#"{"$lookup": {"from": "a", "pipeline": [], "let": {"X": 1}, "as": "d"}}"#,
            9,
        ),
        (
            r#"{"$lookup": {"from": "a", "pipeline": [{"$project": {"x": "$$nope"}}], "as": "d"}}"#,
            17276,
        ),
        (
            r#"{"$lookup": {"from": "a", "localField": "b", "foreignField": "$c", "as": "d"}}"#,
            16410,
        ),
        (
            r#"{"$lookup": {"from": "", "localField": "b", "foreignField": "c", "as": "d"}}"#,
            73,
        ),
        (r#"{"$unionWith": 1}"#, 9),
        (r#"{"$unionWith": {}}"#, 9),
        (r#"{"$unionWith": {"coll": "a", "x": 1}}"#, 40415),
        (r#"{"$graphLookup": 1}"#, 9),
        (r#"{"$graphLookup": {"from": "a"}}"#, 40105),
        (r#"{"$graphLookup": {"x": 1}}"#, 40104),
        (r#"{"$graphLookup": {"as": 1}}"#, 40103),
        (r#"{"$graphLookup": {"maxDepth": "x"}}"#, 40100),
        (r#"{"$graphLookup": {"maxDepth": -1}}"#, 40101),
        (r#"{"$graphLookup": {"maxDepth": 0.5}}"#, 40102),
        (r#"{"$graphLookup": {"restrictSearchWithMatch": 1}}"#, 40185),
    ];
    for (stage, code) in cases {
        check_error(&format!("[{stage}]"), "[]", code);
    }
}
