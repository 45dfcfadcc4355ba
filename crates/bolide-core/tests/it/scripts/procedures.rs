//! A stored procedure is one transaction on the live items of one logical partition.

use std::sync::Arc;

use bolide_core::{ItemTarget, ScriptDraft, ScriptKind, ScriptName};
use bolide_model::ErrorKind;
use bolide_model::UnixMillis;
use bolide_model::time::Clock;
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::memory::MemoryEngine;
use serde_json::{Value, json};

use super::run_script::procedure;
use crate::test_container::{TestContainer, define_procedure, key, options, shown};

#[tokio::test]
async fn what_it_writes_is_one_commit() {
    let test = TestContainer::with_ttl(-1).await;
    test.create(json!({"id": "old"})).await.unwrap();
    let before = test.container.ranges().ranges[0].lsn;
    let body = test
        .execute(
            "c.createDocument(l, {id: 'a', pk: 'p'}, function (e, a) { c.replaceDocument(a._self, {id: 'a', pk: 'p', n: 2}, function (e, b) { \
             c.upsertDocument(l, {id: 'b', pk: 'p'}, function (e, d) { c.deleteDocument(c.getAltLink() + '/docs/old', function (e) { \
             r.setBody([a._etag !== b._etag, b.n, d._ts, e === undefined]) }) }) }) });",
        )
        .await;
    assert_eq!(body, Ok(json!([true, 2, 100, true])));
    assert_eq!(
        test.container.ranges().ranges[0].lsn.0,
        before.0 + 1,
        "one LSN for all of it (TTL-252)"
    );
    let (a, b) = (test.read("a").await.unwrap(), test.read("b").await.unwrap());
    assert_eq!((a.lsn(), a.last_modified()), (b.lsn(), b.last_modified()));
    assert_eq!(shown(&a)["n"], 2);
    assert!(!test.has("old").await);
    test.assert_sound().await;
}

#[tokio::test]
async fn what_fails_leaves_nothing_behind() {
    for end in [
        "throw new Error('no')",
        "x.abort(new Error('no'))",
        "c.replaceDocument(l + 'docs/none', {id: 'none', pk: 'p'})",
        "r.setBody('x'.repeat(3e6))",
    ] {
        let test = TestContainer::with_ttl(-1).await;
        test.create(json!({"id": "old"})).await.unwrap();
        let before = test.container.ranges().ranges[0].lsn;
        let source = format!(
            "c.createDocument(l, {{id: 'a', pk: 'p'}}); c.deleteDocument(c.getAltLink() + '/docs/old', function (e) {{ {end} }});"
        );
        assert!(
            matches!(test.execute(&source).await, Err(ErrorKind::ScriptFailed { .. })),
            "{end}"
        );
        assert_eq!(test.listed().await, ["old"], "{end}");
        assert_eq!(test.container.ranges().ranges[0].lsn, before, "{end}");
        test.create(json!({"id": "a"})).await.expect(end);
        test.assert_sound().await;
    }
}

#[tokio::test]
async fn an_error_that_is_handled_does_not_end_the_transaction() {
    let test = TestContainer::with_ttl(-1).await;
    test.create(json!({"id": "a"})).await.unwrap();
    let body = test
        .execute(
            "var seen = []; function note(e) { seen.push(e ? e.number : 0); r.setBody(seen) } \
             c.createDocument(l, {id: 'a', pk: 'p'}, note); c.createDocument(l, {id: 'b', pk: 'p'}, note); \
             c.replaceDocument(c.getAltLink() + '/docs/a', {id: 'a', pk: 'p'}, {etag: '\"other\"'}, note); \
             c.readDocument(c.getAltLink() + '/docs/none', note); c.createDocument(l, {id: 'x', pk: 'other'}, note); \
             c.createDocument(l, {pk: 'p'}, {disableAutomaticIdGeneration: true}, note); c.createDocument(l, {id: 'y', pk: 'p', ttl: 0}, note);",
        )
        .await;
    assert_eq!(body, Ok(json!([409, 0, 412, 404, 400, 400, 400])));
    assert_eq!(test.listed().await, ["a", "b"]);
}

#[tokio::test]
async fn it_sees_its_own_writes() {
    let test = TestContainer::with_ttl(-1).await;
    for id in ["a", "b", "c"] {
        test.create(json!({"id": id, "n": 1})).await.unwrap();
    }
    let body = test
        .execute(
            "c.createDocument(l, {id: 'd', pk: 'p', n: 4}); c.deleteDocument(c.getAltLink() + '/docs/b'); \
             c.replaceDocument(c.getAltLink() + '/docs/a', {id: 'e', pk: 'p', n: 5}); \
             c.queryDocuments(l, 'SELECT VALUE c.id FROM c ORDER BY c.id DESC', function (e, d) { r.setBody(d) });",
        )
        .await;
    assert_eq!(body, Ok(json!(["e", "d", "c"])));
    test.assert_sound().await;
}

#[tokio::test]
async fn it_sees_no_ghosts_and_none_is_in_its_way() {
    // TTL-252, TTL-241
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.create(json!({"id": "b", "ttl": -1})).await.unwrap();
    test.at(109);
    let count = "c.queryDocuments(l, 'SELECT * FROM c', function (e, d) { r.setBody(d.length) });";
    assert_eq!(test.execute(count).await, Ok(json!(2)));
    test.at(110);
    assert_eq!(test.execute(count).await, Ok(json!(1)));
    let each = "var seen = []; function note(e, d) { seen.push(e ? e.number : d.id || d.length); r.setBody(seen) } var a = c.getAltLink() + '/docs/a'; \
        c.readDocument(a, note); c.replaceDocument(a, {id: 'a', pk: 'p'}, note); c.deleteDocument(a, note); c.readDocuments(l, note); \
        c.createDocument(l, {id: 'a', pk: 'p'}, note); c.readDocument(a, note);";
    assert_eq!(test.execute(each).await, Ok(json!([404, 404, 404, 1, "a", "a"])));
    assert_eq!(test.read("a").await.unwrap().last_modified().0, 110);
    test.assert_sound().await;
}

#[tokio::test]
async fn it_sees_nothing_of_a_key_that_was_deleted_as_a_whole() {
    let test = TestContainer::with_ttl(-1).await;
    test.create(json!({"id": "a"})).await.unwrap();
    let ctx = test.begin().await;
    let deleted = test.account.delete_all_of_key(&ctx, &test.container, &key("p")).await;
    deleted.unwrap();
    let body = test
        .execute(
            "var seen = []; function note(e, d) { seen.push(e ? e.number : d.id || d.length); r.setBody(seen) } \
             c.readDocuments(l, note); c.readDocument(c.getAltLink() + '/docs/a', note); \
             c.createDocument(l, {id: 'a', pk: 'p'}, note); c.readDocuments(l, note);",
        )
        .await;
    assert_eq!(body, Ok(json!([0, 404, "a", 1])));
    test.assert_sound().await;
}

#[tokio::test]
async fn it_reaches_its_own_logical_partition_only() {
    let test = TestContainer::with_ttl(-1).await;
    let other = test.create(json!({"id": "a", "pk": "q"})).await.unwrap();
    let rid = other.rid();
    assert_eq!(
        test.execute("c.queryDocuments(l, 'SELECT * FROM c', function (e, d) { r.setBody(d) });")
            .await,
        Ok(json!([]))
    );
    let read = format!("c.readDocument(l + 'docs/{rid}', function (e) {{ r.setBody(e.number) }});");
    assert_eq!(test.execute(&read).await, Ok(json!(404)));
    let executed = test
        .execute_in(
            "q",
            &procedure(&read.replace("e.number", "e === undefined")),
            &json!([]),
        )
        .await;
    assert_eq!(executed.unwrap().body.as_deref(), Some("true"));
}

#[tokio::test]
async fn pages_go_on_where_they_stopped() {
    let test = TestContainer::with_ttl(-1).await;
    for n in 0..7 {
        test.create(json!({"id": format!("i{n}"), "n": n})).await.unwrap();
    }
    for (query, expected) in [
        ("SELECT VALUE c.n FROM c", json!([[0, 1, 2], [3, 4, 5], [6]])),
        (
            "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
            json!([[6, 5, 4], [3, 2, 1], [0]]),
        ),
        ("SELECT DISTINCT VALUE c.n % 5 FROM c", json!([[0, 1, 2], [3, 4]])),
    ] {
        let source = format!(
            "var pages = []; (function next(continuation) {{ c.queryDocuments(l, '{query}', {{pageSize: 3, continuation}}, function (e, d, i) {{ \
             if (e) throw e; pages.push(d); r.setBody(pages); if (i.continuation) next(i.continuation); }}) }})();"
        );
        let mut pages = test.execute(&source).await.expect(query);
        // An empty page at the end is allowed.
        pages.as_array_mut().unwrap().retain(|page| *page != json!([]));
        assert_eq!(pages, expected, "{query}");
    }
    let foreign =
        "c.queryDocuments(l, 'SELECT * FROM c', {continuation: 'AAAA'}, function (e) { r.setBody(e.number) });";
    assert_eq!(test.execute(foreign).await, Ok(json!(400)));
    let broken = "c.queryDocuments(l, 'SELEC', function (e) { r.setBody(e.number) });";
    assert_eq!(test.execute(broken).await, Ok(json!(400)));
}

#[tokio::test]
async fn a_document_without_id_is_given_one() {
    let test = TestContainer::with_ttl(-1).await;
    let ids = test
        .execute("var ids = []; function note(e, d) { ids.push(d.id); r.setBody(ids) } c.createDocument(l, {pk: 'p'}, note); c.upsertDocument(l, {pk: 'p'}, note);")
        .await
        .unwrap();
    assert_eq!(ids[0].as_str().unwrap().len(), 36);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(test.count().await, 2);
}

/// Increments by reading, then writing, so that lost updates are visible.
const INCREMENT: &str = "var link = c.getAltLink() + '/docs/counter'; c.readDocument(link, function (e, d) { if (e) throw e; d.n++; \
    c.replaceDocument(link, d, function (e) { if (e) throw e; r.setBody(d.n) }) });";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn procedures_and_other_writers_do_not_mix() {
    let test = Arc::new(TestContainer::with_ttl(-1).await);
    test.create(json!({"id": "counter", "n": 0})).await.unwrap();
    test.execute(INCREMENT).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let scripts = test.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                scripts.execute(INCREMENT).await.unwrap();
            }
        }));
        let patches = test.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                patches
                    .patch("counter", json!([{"op": "incr", "path": "/n", "value": 1}]), None)
                    .await
                    .unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(shown(&test.read("counter").await.unwrap())["n"], 81);
    test.assert_sound().await;
}

#[tokio::test]
async fn trouble_of_the_engine_neither_loses_nor_doubles_anything() {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
    let memory = Arc::new(MemoryEngine::new(clock.clone()));
    let test = TestContainer::over(memory.clone(), clock, json!({}), None, options()).await;
    test.create(json!({"id": "counter", "n": 0})).await.unwrap();
    test.execute(INCREMENT).await.unwrap();
    let mut known = 1_i64;
    for seed in 0..30 {
        let faults = Faults {
            stale_percent: 25,
            unknown_percent: 25,
            down_percent: 0,
            span_ms: 0,
            ..Faults::frequent(seed)
        };
        let troubled = test.beside(Arc::new(FaultyEngine::new(memory.clone(), faults))).await;
        let executed = troubled.execute_stored(INCREMENT).await;
        let sober = test.beside(memory.clone()).await;
        let stored = shown(&sober.read("counter").await.unwrap())["n"].as_i64().unwrap();
        match executed {
            Ok(body) => assert_eq!((body.as_i64(), stored), (Some(known + 1), known + 1), "seed {seed}"),
            Err(_) => assert_eq!(stored, known, "seed {seed}: what failed left nothing"),
        }
        known = stored;
        sober.assert_sound().await;
    }
    assert!(known > 10, "most went well: {known}");
}

#[tokio::test]
async fn a_target_that_is_written_over_within_the_call_keeps_its_number() {
    let test = TestContainer::with_ttl(-1).await;
    let body = test
        .execute("c.createDocument(l, {id: 'a', pk: 'p'}, function (e, d) { c.upsertDocument(l, {id: 'a', pk: 'p', n: 1}, function (e, f) { r.setBody(d._rid === f._rid) }) });")
        .await;
    assert_eq!(body, Ok(Value::Bool(true)));
    let rid = test.read("a").await.unwrap().rid().number;
    assert_eq!(ItemTarget::Rid(rid), ItemTarget::Rid(1));
}

#[tokio::test]
async fn scripts_of_a_container_have_room_for_so_many_bytes_together() {
    let test = TestContainer::with(json!({})).await;
    let source = |bytes: usize| format!("function () {{ /* {} */ }}", "x".repeat(bytes));
    for n in 0..8 {
        define_procedure(&test.account, &test.container, &format!("s{n}"), &source(1_900_000)).await;
    }
    let draft = |bytes| ScriptDraft {
        id: "udf".into(),
        body: source(bytes).into(),
        fires: None,
    };
    let ctx = test.begin().await;
    let kind = ScriptKind::UserDefinedFunction;
    let refused = test
        .account
        .create_script(&ctx, &test.container, kind, draft(1_900_000), false);
    let refused = refused.await.err().map(|refusal| refusal.kind);
    assert_eq!(refused, Some(ErrorKind::TooLarge), "of all kinds together");
    let created = test
        .account
        .create_script(&ctx, &test.container, kind, draft(1_000), false);
    assert!(created.await.is_ok());
    let name = ScriptName::Id("udf".into());
    let grown = test
        .account
        .replace_script(&ctx, &test.container, kind, &name, draft(1_900_000), None);
    assert_eq!(grown.await.err().map(|error| error.kind), Some(ErrorKind::TooLarge));
}
