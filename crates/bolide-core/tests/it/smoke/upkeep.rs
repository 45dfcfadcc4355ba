//! Import, split, figures.

use std::pin::pin;

use bolide_core::{AccountOptions, FeedStart};
use bolide_model::container::ContainerProperties;
use bolide_model::{ErrorKind, RequestUnits};
use bytes::Bytes;
use futures_util::future::poll_immediate;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use crate::stage::{Stage, definition, ids, options};

async fn import(stage: &Stage, lines: &str) -> Result<u64, ErrorKind> {
    import_parts(stage, &[lines]).await
}

/// As [`import`], of a text that comes in parts.
async fn import_parts(stage: &Stage, parts: &[&str]) -> Result<u64, ErrorKind> {
    let parts = parts.iter().map(|part| Ok(Bytes::copy_from_slice(part.as_bytes())));
    let imported = stage.account.import(&stage.container, stream::iter(parts)).await;
    imported.map_err(|error| error.kind)
}

#[tokio::test]
async fn imported_items_keep_their_age() {
    // TTL-275
    let stage = Stage::with_ttl(50).await;
    let lines = r#"{"id":"young","pk":"p","_ts":90}
        {"id":"expired on arrival","pk":"p","_ts":50}

        {"id":"from the future","pk":"p","_ts":500}"#;
    assert_eq!(import(&stage, lines).await, Ok(3));
    assert_eq!(stage.count().await, 2);
    assert_eq!(stage.read("from the future").await.unwrap().last_modified().0, 100);
    let (changes, _) = stage.changes(FeedStart::Beginning, 10).await;
    assert_eq!(ids(&changes), ["young", "from the future"], "in the order of _ts");
    stage.at(140);
    assert_eq!(stage.listed().await, ["from the future"]);
    assert_eq!(stage.purge().await, 2);
    stage.assert_sound().await;
}

#[tokio::test]
async fn only_a_fresh_container_takes_an_import() {
    // TTL-275
    let line = r#"{"id":"a","pk":"p","_ts":90}"#;
    let written = Stage::with_ttl(50).await;
    written.create(json!({"id": "b"})).await.unwrap();
    written.delete("b", None).await.unwrap();
    assert_eq!(import(&written, line).await, Err(ErrorKind::BadRequest));
    let changed = Stage::with_ttl(50).await;
    changed.define(json!({"defaultTtl": 60})).await.unwrap();
    assert_eq!(import(&changed, line).await, Err(ErrorKind::BadRequest));
}

#[tokio::test]
async fn an_import_with_a_bad_line_writes_nothing() {
    let stage = Stage::with_ttl(50).await;
    let good = r#"{"id":"a","pk":"p","_ts":90}"#;
    for bad in [
        "{",
        r#"{"id":"b","pk":"p"}"#,
        r#"{"pk":"p","_ts":1}"#,
        r#"{"id":"b","pk":"p","_ts":1,"ttl":0}"#,
    ] {
        assert_eq!(
            import(&stage, &format!("{good}\n{bad}")).await,
            Err(ErrorKind::BadRequest),
            "{bad}"
        );
    }
    assert_eq!(
        import(&stage, &format!("{good}\n{good}")).await,
        Err(ErrorKind::Conflict)
    );
    assert_eq!(import(&stage, good).await, Ok(1), "still fresh");
}

#[tokio::test]
async fn an_import_comes_in_parts_of_any_length() {
    let stage = Stage::with(json!({"defaultTtl": 50, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    let line = |n: i64, u: i64| format!("{{\"id\":\"i{n}\",\"pk\":\"p\",\"u\":{u},\"_ts\":{}}}", 99 - n % 40);
    let text: Vec<String> = (0..1_200).map(|n| line(n, n)).collect();
    let text = text.join("\r\n");
    let twin = format!("{text}\n{}", line(5_000, 7));
    assert_eq!(import(&stage, &twin).await, Err(ErrorKind::Conflict));
    let mut parts: Vec<&str> = Vec::new();
    let (mut rest, mut length) = (&text[..], 1);
    while !rest.is_empty() {
        let (part, later) = rest.split_at(rest.len().min(length));
        parts.push(part);
        (rest, length) = (later, length * 3 % 1_000 + 1);
    }
    assert_eq!(import_parts(&stage, &parts).await, Ok(1_200));
    assert_eq!(stage.count().await, 1_200);
    let (changes, _) = stage.changes(FeedStart::Beginning, 2_000).await;
    assert!(
        changes.is_sorted_by_key(|item| item.last_modified()),
        "in the order of _ts"
    );
    stage.assert_sound().await;
    let stage = stage.reopen().await;
    assert_eq!(stage.count().await, 1_200);
}

#[tokio::test]
async fn an_import_holds_little_of_what_it_loads() {
    // 24 MB of items, in a server that has as much memory in all; the text of the import alone took twice that.
    let options = AccountOptions {
        memory_bytes: 48 << 20,
        ..options()
    };
    let stage = Stage::with_options(json!({}), None, options).await;
    let text = "x".repeat(1 << 20);
    let lines = (0..24).map(|n| {
        Ok(Bytes::from(format!(
            "{{\"id\":\"i{n}\",\"pk\":\"p\",\"_ts\":90,\"t\":\"{text}\"}}\n"
        )))
    });
    let held = std::cell::Cell::new(0);
    let lines = lines.inspect(|_| held.set(held.get().max(stage.account.memory().used_bytes())));
    let imported = stage.account.import(&stage.container, stream::iter(lines)).await;
    assert_eq!(imported.map_err(|error| error.kind), Ok(24));
    assert!(held.get() <= 33 << 20, "{} bytes", held.get());
    assert_eq!(stage.account.memory().used_bytes(), 0);
}

#[tokio::test]
async fn an_import_whose_client_leaves_writes_nothing() {
    let stage = Stage::with_ttl(50).await;
    let line = Bytes::from_static(b"{\"id\":\"a\",\"pk\":\"p\",\"_ts\":90}\n");
    let parts = stream::iter([Ok(line)]).chain(stream::pending());
    let mut importing = Box::pin(stage.account.import(&stage.container, parts));
    for _ in 0..100 {
        assert!(poll_immediate(&mut importing).await.is_none());
        tokio::task::yield_now().await;
    }
    drop(importing);
    let broken = Err(bolide_model::Error::bad_request("the connection broke"));
    let parts = stream::iter([Ok(Bytes::from_static(b"{\"id\":\"a\",")), broken]);
    let imported = stage.account.import(&stage.container, parts).await;
    assert_eq!(imported.map_err(|error| error.kind), Err(ErrorKind::BadRequest));
    assert_eq!(stage.count().await, 0);
    assert_eq!(
        import(&stage, r#"{"id":"a","pk":"p","_ts":90}"#).await,
        Ok(1),
        "still fresh"
    );
}

#[tokio::test]
async fn a_split_loses_nothing_and_etags_feeds_and_verdicts_go_on() {
    // TTL-277
    let stage = Stage::with_ttl(50).await;
    let mut etags = Vec::new();
    for n in 0..40 {
        let item = stage
            .create(json!({"id": format!("i{n:02}"), "pk": format!("p{n}")}))
            .await
            .unwrap();
        etags.push(item.etag());
    }
    let (first, place) = stage.changes(FeedStart::Beginning, 15).await;
    let (page, continuation) = stage.list(15, None).await;
    let before = stage.listed().await;
    let split = stage.account.split(&stage.container, None).await.unwrap();
    assert_eq!((split.parents, split.children.len()), (vec![0], 2));
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(stage.listed().await), before);
    let (mut rest, mut place) = (Vec::new(), place);
    loop {
        let (page, next) = stage.changes(FeedStart::After(place), 100).await;
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
        let (page, next) = stage.list(100, continuation).await;
        rest.extend(page);
        continuation = next;
    }
    let seen = [ids(&page), ids(&rest)].concat();
    assert_eq!(sorted(seen.into_iter().map(str::to_owned).collect()), before);
    assert!(rest.iter().all(|item| etags.contains(&item.etag())));
    stage.assert_sound().await;
    stage.at(150);
    assert_eq!(stage.count().await, 0);
    assert_eq!(stage.purge().await, 40);
    let stage = stage.reopen().await;
    assert_eq!(stage.container.ranges().ranges.len(), 2);
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_split_keeps_the_figures_of_the_purge() {
    // TTL-272: since the creation of the container
    let stage = Stage::with_ttl(10).await;
    for n in 0..3 {
        stage
            .create(json!({"id": n.to_string(), "pk": n.to_string()}))
            .await
            .unwrap();
    }
    stage.at(110);
    assert_eq!(stage.purge().await, 3);
    stage.account.split(&stage.container, None).await.unwrap();
    let report = stage.account.ttl_report(&stage.container).await.unwrap();
    assert_eq!(
        (report.purged_total, report.ru_spent_total.rounded()),
        (3, RequestUnits(14.85))
    );
}

/// All metrics were answered 404 while one container was being deleted.
#[tokio::test]
async fn figures_leave_out_a_container_that_is_deleted_meanwhile() {
    let stage = Stage::with_ttl(10).await;
    let ctx = stage.begin().await;
    let database = stage.container.info().database_rid;
    let second = ContainerProperties::from_json(&definition(&json!({"id": "second"}))).unwrap();
    let second = stage.account.create_container(&ctx, database, second, None).await;
    let mut figures = pin!(stage.account.container_figures());
    assert!(
        poll_immediate(&mut figures).await.is_none(),
        "it stops after each container, with all of them listed"
    );
    let second = second.unwrap().rid();
    stage.account.delete_container(&ctx, second, None).await.unwrap();
    let figures = figures.await.unwrap();
    let names: Vec<&str> = figures.iter().map(|figures| figures.id.as_str()).collect();
    assert_eq!(names, ["c"]);
}
