//! Simple stages, and pipelines as a whole.

use std::sync::Arc;

use super::{Memory, check, context, documents, parse, parse_on, run};
use crate::aggregation::{Collections, Document, Documents, Lifetime, Namespace};

const ITEMS: &str = r#"[{"_id": 1, "a": 3}, {"_id": 2, "a": 1}, {"_id": 3, "a": 2}, {"_id": 4, "a": 1}]"#;

#[test]
fn documents_pass_through_stages_in_order() {
    check("[]", r#"[{"_id": 1}]"#, r#"[{"_id": 1}]"#);
    check(
        r#"[{"$match": {"a": {"$lt": 3}}}]"#,
        ITEMS,
        r#"[{"_id": 2, "a": 1}, {"_id": 3, "a": 2}, {"_id": 4, "a": 1}]"#,
    );
    check(
        r#"[{"$sort": {"a": 1}}, {"$limit": 2}]"#,
        ITEMS,
        r#"[{"_id": 2, "a": 1}, {"_id": 4, "a": 1}]"#,
    );
    check(
        r#"[{"$sort": {"a": 1}}, {"$skip": 1}, {"$limit": 2}]"#,
        ITEMS,
        r#"[{"_id": 4, "a": 1}, {"_id": 3, "a": 2}]"#,
    );
    check(
        r#"[{"$limit": 2}, {"$sort": {"a": 1}}]"#,
        ITEMS,
        r#"[{"_id": 2, "a": 1}, {"_id": 1, "a": 3}]"#,
    );
    check(
        r#"[{"$sort": {"a": -1}}, {"$match": {"a": 1}}, {"$limit": 1}]"#,
        ITEMS,
        r#"[{"_id": 2, "a": 1}]"#,
    );
    check(r#"[{"$skip": 3}]"#, ITEMS, r#"[{"_id": 4, "a": 1}]"#);
    check(r#"[{"$skip": 9}]"#, ITEMS, "[]");
    check(
        r#"[{"$project": {"_id": 0, "b": "$a"}}, {"$skip": 3}]"#,
        ITEMS,
        r#"[{"b": 1}]"#,
    );
    check(r#"[{"$count": "n"}]"#, ITEMS, r#"[{"n": 4}]"#);
    check(r#"[{"$count": "n"}]"#, "[]", "[]");
    check(
        r#"[{"$sortByCount": "$a"}]"#,
        ITEMS,
        r#"[{"_id": 1, "count": 2}, {"_id": 3, "count": 1}, {"_id": 2, "count": 1}]"#,
    );
}

#[test]
fn unwind() {
    let input =
        r#"[{"_id": 1, "a": [1, 2]}, {"_id": 2, "a": []}, {"_id": 3, "a": null}, {"_id": 4}, {"_id": 5, "a": 7}]"#;
    check(
        r#"[{"$unwind": "$a"}]"#,
        input,
        r#"[{"_id": 1, "a": 1}, {"_id": 1, "a": 2}, {"_id": 5, "a": 7}]"#,
    );
    check(
        r#"[{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i"}}]"#,
        input,
        r#"[{"_id": 1, "a": 1, "i": {"$numberLong": "0"}}, {"_id": 1, "a": 2, "i": {"$numberLong": "1"}}, {"_id": 2, "i": null},
            {"_id": 3, "a": null, "i": null}, {"_id": 4, "i": null}, {"_id": 5, "a": 7, "i": null}]"#,
    );
    check(
        r#"[{"$unwind": "$a.b"}]"#,
        r#"[{"_id": 1, "a": {"x": 0, "b": [[1], 2], "y": 0}, "z": 0}, {"_id": 2, "a": [{"b": [1]}]}]"#,
        r#"[{"_id": 1, "a": {"x": 0, "b": [1], "y": 0}, "z": 0}, {"_id": 1, "a": {"x": 0, "b": 2, "y": 0}, "z": 0}]"#,
    );
}

#[test]
fn samples_have_the_size_and_only_documents_of_the_input() {
    let mut found = run(r#"[{"$sample": {"size": 3}}]"#, ITEMS).unwrap();
    found.sort_by_key(|document| document.get_i32("_id").unwrap());
    found.dedup();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|document| documents(ITEMS).contains(document)));
    assert_eq!(run(r#"[{"$sample": {"size": 9}}]"#, ITEMS).unwrap().len(), 4);
}

#[test]
fn documents_and_redact() {
    let pipeline = parse_on(
        r#"[{"$documents": [{"a": 1}, {"a": {"$add": [1, 1]}}]}, {"$match": {"a": 2}}]"#,
        Namespace::of_database("test"),
    )
    .unwrap();
    assert!(!pipeline.reads_input());
    let results = super::run_documents(&pipeline, Vec::new(), &Arc::new(Memory::default())).unwrap();
    assert_eq!(results, documents(r#"[{"a": 2}]"#));

    let redact = r#"[{"$redact": {"$cond": [{"$eq": ["$level", 5]}, "$$PRUNE", "$$DESCEND"]}}]"#;
    check(
        redact,
        r#"[{"_id": 1, "level": 1, "a": {"level": 5, "x": 1}, "b": [{"level": 5}, {"level": 2, "c": {"level": 5}}, 7]}, {"_id": 2, "level": 5}]"#,
        r#"[{"_id": 1, "level": 1, "b": [{"level": 2}, 7]}]"#,
    );
    check(r#"[{"$redact": "$$KEEP"}]"#, r#"[{"_id": 1}]"#, r#"[{"_id": 1}]"#);
    super::check_error(r#"[{"$redact": 1}]"#, r#"[{"_id": 1}]"#, 17053);
}

#[test]
fn facets_see_the_same_input() {
    check(
        r#"[{"$match": {"a": {"$lt": 3}}}, {"$facet": {"all": [], "ones": [{"$match": {"a": 1}}, {"$count": "n"}], "none": [{"$match": {"a": 9}}]}}]"#,
        ITEMS,
        r#"[{"all": [{"_id": 2, "a": 1}, {"_id": 3, "a": 2}, {"_id": 4, "a": 1}], "ones": [{"n": 2}], "none": []}]"#,
    );
    check(r#"[{"$facet": {"a": [{"$count": "n"}]}}]"#, "[]", r#"[{"a": []}]"#);
}

#[test]
fn what_a_caller_learns_of_a_pipeline() {
    let leads = |pipeline: &str| parse(pipeline).unwrap().leading_filter().is_some();
    assert!(leads(r#"[{"$match": {"_id": 1}}, {"$sort": {"a": 1}}]"#));
    assert!(leads(r#"[{"$sort": {"a": 1}}, {"$match": {"_id": 1}}]"#));
    assert!(!leads(r#"[{"$limit": 1}, {"$match": {"_id": 1}}]"#));
    assert!(!leads(
        r#"[{"$sort": {"a": 1}}, {"$limit": 1}, {"$match": {"_id": 1}}]"#
    ));
    assert!(!leads(r#"[{"$set": {"a": 1}}, {"$match": {"a": 1}}]"#));

    let pipeline = parse(r#"[{"$match": {"a": 1}}, {"$sort": {"b": 1}}, {"$skip": 5}, {"$limit": 10}]"#).unwrap();
    let (sort, limit) = pipeline.leading_sort_limit().unwrap();
    assert_eq!((sort.keys().len(), limit), (1, Some(15)));
    assert!(
        parse(r#"[{"$limit": 1}, {"$sort": {"b": 1}}]"#)
            .unwrap()
            .leading_sort_limit()
            .is_none()
    );

    let pipeline = parse(
        r#"[{"$lookup": {"from": "b", "localField": "a", "foreignField": "a", "as": "x"}}, {"$unionWith": "c"},
            {"$facet": {"f": [{"$graphLookup": {"from": "d", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "x"}}]}}]"#,
    )
    .unwrap();
    let read: Vec<String> = pipeline.namespaces().iter().map(ToString::to_string).collect();
    assert_eq!(read, ["test.b", "test.c", "test.d"]);

    let pipeline = parse(r#"[{"$collStats": {"count": {}}}, {"$project": {"count": 1}}]"#).unwrap();
    assert_eq!(pipeline.source().unwrap().name, "$collStats");
    assert!(parse(r#"[{"$changeStream": {}}]"#).unwrap().source().is_some());
}

#[test]
fn lifetimes_stay_with_documents_that_are_passed_on() {
    let lifetimes = |pipeline: &str| -> Vec<Option<u32>> {
        let stored = documents(ITEMS)
            .into_iter()
            .zip(1u32..)
            .map(|(bytes, number)| Document {
                lifetime: Some(Lifetime::new(number)),
                ..Document::new(bytes)
            });
        let input = Documents::new(stored.collect::<Vec<_>>());
        let collections: Arc<dyn Collections> = Arc::new(Memory::default());
        let mut output = parse(pipeline)
            .unwrap()
            .open(Box::new(input), context(), collections)
            .unwrap();
        let mut lifetimes = Vec::new();
        while let Some(document) = output.next().unwrap() {
            lifetimes.push(document.lifetime.and_then(|lifetime| lifetime.get::<u32>().copied()));
        }
        lifetimes
    };
    assert_eq!(lifetimes(r#"[{"$sort": {"a": 1}}, {"$limit": 2}]"#), [Some(2), Some(4)]);
    assert_eq!(
        lifetimes(
            r#"[{"$match": {"a": 3}}, {"$set": {"b": [1, 2]}}, {"$unwind": "$b"}, {"$project": {"b": 1}}, {"$replaceWith": {"x": "$b"}},
                {"$lookup": {"from": "none", "localField": "x", "foreignField": "y", "as": "z"}}, {"$setWindowFields": {"output": {"n": {"$sum": 1}}}}]"#
        ),
        [Some(1), Some(1)]
    );
    assert_eq!(lifetimes(r#"[{"$group": {"_id": null}}]"#), [None]);
    assert_eq!(lifetimes(r#"[{"$facet": {"a": []}}]"#), [None]);
}

#[test]
fn documents_are_counted_between_the_elements_of_a_pipeline() {
    // `$sortByCount` is two stages, and `$limit` ends the reading.
    let stages = r#"[{"$match": {"a": {"$lt": 3}}}, {"$sortByCount": "$a"}, {"$limit": 1}]"#;
    let pipeline = parse(stages).expect("a pipeline");
    let input = Box::new(Documents::new(documents(ITEMS).into_iter().map(Document::new)));
    let (mut source, passed) = pipeline
        .open_counted(input, context(), Arc::new(Memory::default()))
        .expect("opens");
    let counts = || [passed.read(), passed.after(1), passed.after(2), passed.after(3)];
    assert_eq!(counts(), [0; 4]);
    while source.next().expect("no error").is_some() {}
    assert_eq!(counts(), [4, 3, 1, 1]);
    assert_eq!(passed.after(4), 0);
}
