//! Import, splits, statistics.

use std::pin::pin;

use bolide_core::{AccountOptions, FeedStart};
use bolide_model::container::ContainerProperties;
use bolide_model::{ErrorKind, RequestUnits};
use bytes::Bytes;
use futures_util::future::poll_immediate;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use crate::test_container::{TestContainer, definition, ids, options};

async fn import(test: &TestContainer, lines: &str) -> Result<u64, ErrorKind> {
    import_parts(test, &[lines]).await
}

/// As [`import`], for a text that arrives in parts.
async fn import_parts(test: &TestContainer, parts: &[&str]) -> Result<u64, ErrorKind> {
    let parts = parts.iter().map(|part| Ok(Bytes::copy_from_slice(part.as_bytes())));
    let imported = test.account.import(&test.container, stream::iter(parts)).await;
    imported.map_err(|error| error.kind)
}

#[tokio::test]
async fn imported_items_keep_their_age() {
    // TTL-275
    let test = TestContainer::with_ttl(50).await;
    let lines = r#"{"id":"young","pk":"p","_ts":90}
        {"id":"expired on arrival","pk":"p","_ts":50}

        {"id":"from the future","pk":"p","_ts":500}"#;
    assert_eq!(import(&test, lines).await, Ok(3));
    assert_eq!(test.count().await, 2);
    assert_eq!(test.read("from the future").await.unwrap().last_modified().0, 100);
    let (changes, _) = test.changes(FeedStart::Beginning, 10).await;
    assert_eq!(ids(&changes), ["young", "from the future"], "in the order of _ts");
    test.at(140);
    assert_eq!(test.listed().await, ["from the future"]);
    assert_eq!(test.purge().await, 2);
    test.assert_sound().await;
}

#[tokio::test]
async fn only_a_fresh_container_takes_an_import() {
    // TTL-275
    let line = r#"{"id":"a","pk":"p","_ts":90}"#;
    let written = TestContainer::with_ttl(50).await;
    written.create(json!({"id": "b"})).await.unwrap();
    written.delete("b", None).await.unwrap();
    assert_eq!(import(&written, line).await, Err(ErrorKind::BadRequest));
    let changed = TestContainer::with_ttl(50).await;
    changed.define(json!({"defaultTtl": 60})).await.unwrap();
    assert_eq!(import(&changed, line).await, Err(ErrorKind::BadRequest));
}

#[tokio::test]
async fn an_import_with_a_bad_line_writes_nothing() {
    let test = TestContainer::with_ttl(50).await;
    let good = r#"{"id":"a","pk":"p","_ts":90}"#;
    for bad in [
        "{",
        r#"{"id":"b","pk":"p"}"#,
        r#"{"pk":"p","_ts":1}"#,
        r#"{"id":"b","pk":"p","_ts":1,"ttl":0}"#,
    ] {
        assert_eq!(
            import(&test, &format!("{good}\n{bad}")).await,
            Err(ErrorKind::BadRequest),
            "{bad}"
        );
    }
    assert_eq!(
        import(&test, &format!("{good}\n{good}")).await,
        Err(ErrorKind::Conflict)
    );
    assert_eq!(import(&test, good).await, Ok(1), "still fresh");
}

#[tokio::test]
async fn an_import_comes_in_parts_of_any_length() {
    let test =
        TestContainer::with(json!({"defaultTtl": 50, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    let line = |n: i64, u: i64| format!("{{\"id\":\"i{n}\",\"pk\":\"p\",\"u\":{u},\"_ts\":{}}}", 99 - n % 40);
    let text: Vec<String> = (0..1_200).map(|n| line(n, n)).collect();
    let text = text.join("\r\n");
    let twin = format!("{text}\n{}", line(5_000, 7));
    assert_eq!(import(&test, &twin).await, Err(ErrorKind::Conflict));
    let mut parts: Vec<&str> = Vec::new();
    let (mut rest, mut length) = (&text[..], 1);
    while !rest.is_empty() {
        let (part, later) = rest.split_at(rest.len().min(length));
        parts.push(part);
        (rest, length) = (later, length * 3 % 1_000 + 1);
    }
    assert_eq!(import_parts(&test, &parts).await, Ok(1_200));
    assert_eq!(test.count().await, 1_200);
    let (changes, _) = test.changes(FeedStart::Beginning, 2_000).await;
    assert!(
        changes.is_sorted_by_key(|item| item.last_modified()),
        "in the order of _ts"
    );
    test.assert_sound().await;
    let test = test.reopen().await;
    assert_eq!(test.count().await, 1_200);
}

#[tokio::test]
async fn an_import_holds_little_of_what_it_loads() {
    // 24 MB of items, in a server with 48 MB of memory for all requests; the text of the import alone used to take 48 MB.
    let options = AccountOptions {
        memory_bytes: 48 << 20,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    let text = "x".repeat(1 << 20);
    let lines = (0..24).map(|n| {
        Ok(Bytes::from(format!(
            "{{\"id\":\"i{n}\",\"pk\":\"p\",\"_ts\":90,\"t\":\"{text}\"}}\n"
        )))
    });
    let held = std::cell::Cell::new(0);
    let lines = lines.inspect(|_| held.set(held.get().max(test.account.memory().used_bytes())));
    let imported = test.account.import(&test.container, stream::iter(lines)).await;
    assert_eq!(imported.map_err(|error| error.kind), Ok(24));
    assert!(held.get() <= 33 << 20, "{} bytes", held.get());
    assert_eq!(test.account.memory().used_bytes(), 0);
}

#[tokio::test]
async fn an_import_whose_client_leaves_writes_nothing() {
    let test = TestContainer::with_ttl(50).await;
    let line = Bytes::from_static(b"{\"id\":\"a\",\"pk\":\"p\",\"_ts\":90}\n");
    let parts = stream::iter([Ok(line)]).chain(stream::pending());
    let mut importing = Box::pin(test.account.import(&test.container, parts));
    for _ in 0..100 {
        assert!(poll_immediate(&mut importing).await.is_none());
        tokio::task::yield_now().await;
    }
    drop(importing);
    let broken = Err(bolide_model::Error::bad_request("the connection broke"));
    let parts = stream::iter([Ok(Bytes::from_static(b"{\"id\":\"a\",")), broken]);
    let imported = test.account.import(&test.container, parts).await;
    assert_eq!(imported.map_err(|error| error.kind), Err(ErrorKind::BadRequest));
    assert_eq!(test.count().await, 0);
    assert_eq!(
        import(&test, r#"{"id":"a","pk":"p","_ts":90}"#).await,
        Ok(1),
        "still fresh"
    );
}

#[tokio::test]
async fn a_split_loses_nothing_and_etags_feeds_and_verdicts_go_on() {
    // TTL-277
    let test = TestContainer::with_ttl(50).await;
    let mut etags = Vec::new();
    for n in 0..40 {
        let item = test
            .create(json!({"id": format!("i{n:02}"), "pk": format!("p{n}")}))
            .await
            .unwrap();
        etags.push(item.etag());
    }
    let (first, place) = test.changes(FeedStart::Beginning, 15).await;
    let (page, continuation) = test.list(15, None).await;
    let before = test.listed().await;
    let split = test.account.split(&test.container, None).await.unwrap();
    assert_eq!((split.parents, split.children.len()), (vec![0], 2));
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(test.listed().await), before);
    let (mut rest, mut place) = (Vec::new(), place);
    loop {
        let (page, next) = test.changes(FeedStart::After(place), 100).await;
        if page.is_empty() {
            break;
        }
        rest.extend(page);
        place = next;
    }
    assert_eq!(first.len() + rest.len(), 40);
    assert!(
        first
            .iter()
            .all(|item| rest.iter().all(|later| later.id() != item.id()))
    );
    let (mut rest, mut continuation) = (Vec::new(), continuation);
    while continuation.is_some() {
        let (page, next) = test.list(100, continuation).await;
        rest.extend(page);
        continuation = next;
    }
    let seen = [ids(&page), ids(&rest)].concat();
    assert_eq!(sorted(seen.into_iter().map(str::to_owned).collect()), before);
    assert!(rest.iter().all(|item| etags.contains(&item.etag())));
    test.assert_sound().await;
    test.at(150);
    assert_eq!(test.count().await, 0);
    assert_eq!(test.purge().await, 40);
    let test = test.reopen().await;
    assert_eq!(test.container.ranges().ranges.len(), 2);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_split_keeps_the_figures_of_the_purge() {
    // TTL-272: since the creation of the container
    let test = TestContainer::with_ttl(10).await;
    for n in 0..3 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string()}))
            .await
            .unwrap();
    }
    test.at(110);
    assert_eq!(test.purge().await, 3);
    test.account.split(&test.container, None).await.unwrap();
    let report = test.account.ttl_report(&test.container).await.unwrap();
    assert_eq!(
        (report.purged_total, report.ru_spent_total.rounded()),
        (3, RequestUnits(14.85))
    );
}

/// All metrics requests were answered 404 while one container was being deleted.
#[tokio::test]
async fn figures_leave_out_a_container_that_is_deleted_meanwhile() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let database = test.container.info().database_rid;
    let second = ContainerProperties::from_json(&definition(&json!({"id": "second"}))).unwrap();
    let second = test.account.create_container(&ctx, database, second, None).await;
    let mut figures = pin!(test.account.container_figures());
    assert!(
        poll_immediate(&mut figures).await.is_none(),
        "it stops after each container, with all of them listed"
    );
    let second = second.unwrap().rid();
    test.account.delete_container(&ctx, second, None).await.unwrap();
    let figures = figures.await.unwrap();
    let names: Vec<&str> = figures.iter().map(|figures| figures.id.as_str()).collect();
    assert_eq!(names, ["c"]);
}
