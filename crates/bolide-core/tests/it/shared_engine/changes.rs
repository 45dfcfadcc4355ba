//! Changes one by one: each is made in one account and checked in the other.

use std::sync::Arc;

use bolide_core::{
    Account, Container, CreateItem, ItemTarget, PacingSettings, PermissionMode, PermissionProperties, ReadItem,
    ScriptDraft, ScriptKind, ScriptName, Throughput,
};
use bolide_model::ErrorKind;
use bolide_model::document::Document;
use serde_json::json;

use super::{Two, container, container_text};
use crate::probe::Probe;
use crate::test_container::key;

async fn read(account: &Account, container: &Arc<Container>) -> Result<(), ErrorKind> {
    let ctx = account.begin().await.unwrap();
    let read = ReadItem {
        target: ItemTarget::Id("a".into()),
        partition_key: key("p"),
        if_none_match: None,
    };
    let answer = account.read_item(&ctx, container, &read).await;
    answer.map(drop).map_err(|refusal| refusal.error.kind)
}

#[tokio::test]
async fn what_one_account_creates_the_other_finds_and_what_it_deletes_is_gone_there() {
    let two = Two::open().await;
    let (first, second) = (&two.first, &two.second);
    let ctx = first.begin().await.unwrap();
    let database = first.create_database(&ctx, "d", None).await.unwrap();
    let created = first
        .create_container(&ctx, database.rid, container("c", &json!({})), None)
        .await
        .unwrap();

    assert_eq!(second.database_by_name("d").unwrap_err().kind, ErrorKind::NotFound);
    second.refresh_catalog().await.unwrap();
    assert_eq!(second.database_by_name("d").unwrap(), database);
    let seen = second.container_by_name(database.rid, "c").unwrap();
    assert_eq!((seen.rid(), seen.info().etag), (created.rid(), created.info().etag));
    // Names are taken, and numbers continue, whether the other account's change was read or not.
    let taken = second.create_database(&ctx, "d", None).await;
    assert_eq!(taken.unwrap_err().kind, ErrorKind::Conflict);
    first.create_database(&ctx, "e", None).await.unwrap();
    let next = second.create_database(&ctx, "f", None).await.unwrap();
    let databases = second.list_databases().into_iter();
    assert_eq!(
        databases.map(|database| database.id).collect::<Vec<_>>(),
        ["d", "e", "f"]
    );
    assert!(first.list_databases().iter().all(|known| known.rid != next.rid));

    second.delete_container(&ctx, seen.rid(), None).await.unwrap();
    first.refresh_catalog().await.unwrap();
    let gone = first.container_by_name(database.rid, "c").map(|known| known.rid());
    assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(read(first, &created).await, Err(ErrorKind::NotFound));
    let replaced = first
        .replace_container(&ctx, &created, &container_text("c", &json!({})), None)
        .await;
    assert_eq!(replaced.unwrap_err().kind, ErrorKind::NotFound);
    // The name is free again; the container that has it now is another one.
    let anew = first
        .create_container(&ctx, database.rid, container("c", &json!({})), None)
        .await
        .unwrap();
    assert_ne!(anew.rid(), created.rid());
    second.refresh_catalog().await.unwrap();
    assert_eq!(second.container_by_name(database.rid, "c").unwrap().rid(), anew.rid());

    first.delete_database(&ctx, database.rid, None).await.unwrap();
    second.refresh_catalog().await.unwrap();
    assert_eq!(
        second.database_by_rid(database.rid).unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert!(second.all_containers().is_empty());
}

#[tokio::test]
async fn settings_that_one_account_changed_hold_in_the_other() {
    let two = Two::open().await;
    let (first, second) = (&two.first, &two.second);
    let ctx = first.begin().await.unwrap();
    let database = first.create_database(&ctx, "d", None).await.unwrap().rid;
    let here = first
        .create_container(&ctx, database, container("c", &json!({})), None)
        .await
        .unwrap();
    let document = Document::parse(br#"{"id":"a","pk":"p"}"#).unwrap();
    let create = CreateItem {
        document,
        partition_key: None,
    };
    first.create_item(&ctx, &here, create).await.unwrap();
    second.refresh_catalog().await.unwrap();
    let there = second.container_by_name(database, "c").unwrap();

    first
        .replace_container(&ctx, &here, &container_text("c", &json!({"defaultTtl": 10})), None)
        .await
        .unwrap();
    // The other account makes another change, without having read this one.
    let pacing = PacingSettings {
        delete_ru: Some(7.0),
        ..PacingSettings::of(None)
    };
    second.set_pacing(&there, pacing).await.unwrap();
    assert_eq!(there.properties().policy.to_number(), Some(10));
    assert_eq!(there.info().etag, here.info().etag);
    let stale = second
        .replace_container(&ctx, &there, &container_text("c", &json!({})), Some("\"old\""))
        .await;
    assert_eq!(stale.unwrap_err().kind, ErrorKind::PreconditionFailed);

    second
        .replace_container(&ctx, &there, &container_text("c", &json!({"defaultTtl": 5})), None)
        .await
        .unwrap();
    two.clock.set(bolide_model::UnixMillis(107_000));
    first.refresh_catalog().await.unwrap();
    assert_eq!(here.properties().policy.to_number(), Some(5));
    assert_eq!(read(first, &here).await, Err(ErrorKind::NotFound));
    let report = first.ttl_report(&here).await.unwrap();
    assert_eq!(report.state, second.ttl_report(&there).await.unwrap().state);
}

#[tokio::test]
async fn offers_scripts_users_and_permissions_of_one_account_are_changed_by_the_other() {
    let two = Two::open().await;
    let (first, second) = (&two.first, &two.second);
    let ctx = first.begin().await.unwrap();
    let shared = Some(Throughput::Manual { ru: 400 });
    let database = first.create_database(&ctx, "d", shared).await.unwrap().rid;
    let here = first
        .create_container(&ctx, database, container("c", &json!({})), shared)
        .await
        .unwrap();
    let user = first.create_user(&ctx, database, "ada").await.unwrap();
    let script = |id: &str| ScriptDraft {
        id: id.into(),
        body: "x".into(),
        fires: None,
    };
    let kind = ScriptKind::StoredProcedure;
    first
        .create_script(&ctx, &here, kind, script("s"), false)
        .await
        .unwrap();

    // The second account has read none of it before: a change reads what it needs.
    for offer in first.list_offers() {
        let throughput = Throughput::Manual { ru: 500 };
        second.replace_offer(&ctx, offer.rid, throughput, None).await.unwrap();
        let again = first
            .replace_offer(&ctx, offer.rid, throughput, Some(&offer.etag.to_string()))
            .await;
        assert_eq!(again.unwrap_err().kind, ErrorKind::PreconditionFailed);
    }
    let there = second.container_by_rid(here.rid()).unwrap();
    let grant = PermissionProperties {
        id: "p".into(),
        mode: PermissionMode::Read,
        mode_text: "read".into(),
        resource: "dbs/d/colls/c".into(),
        partition_key: None,
    };
    second.create_permission(&ctx, user.rid, grant.clone()).await.unwrap();
    second.replace_user(&ctx, user.rid, "eve", None).await.unwrap();
    let name = ScriptName::Id("s".into());
    second
        .replace_script(&ctx, &there, kind, &name, script("t"), None)
        .await
        .unwrap();
    second
        .create_script(&ctx, &there, kind, script("u"), false)
        .await
        .unwrap();

    first.refresh_catalog().await.unwrap();
    assert!(
        first
            .list_offers()
            .iter()
            .all(|offer| offer.throughput == Throughput::Manual { ru: 500 })
    );
    assert_eq!(first.user_by_name(database, "eve").unwrap().rid, user.rid);
    assert_eq!(
        first.user_by_name(database, "ada").unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(first.list_permissions(user.rid).unwrap()[0].properties.id, "p");
    let taken = first
        .create_permission(
            &ctx,
            user.rid,
            PermissionProperties {
                id: "q".into(),
                ..grant
            },
        )
        .await;
    assert_eq!(taken.unwrap_err().kind, ErrorKind::Conflict);
    let ids: Vec<String> = first
        .list_scripts(&here, kind)
        .iter()
        .map(|script| script.id.clone())
        .collect();
    assert_eq!(ids, ["t", "u"]);
    first.delete_user(&ctx, user.rid, None).await.unwrap();
    let gone = second.replace_user(&ctx, user.rid, "eve", None).await;
    assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(
        first.definitions().used_bytes,
        two.third().await.definitions().used_bytes
    );
}

#[tokio::test]
async fn a_range_that_one_account_split_is_served_by_the_other() {
    let two = Two::open().await;
    let (first, second) = (&two.first, &two.second);
    let ctx = first.begin().await.unwrap();
    let database = first.create_database(&ctx, "d", None).await.unwrap().rid;
    let here = first
        .create_container(&ctx, database, container("c", &json!({})), None)
        .await
        .unwrap();
    second.refresh_catalog().await.unwrap();
    let there = second.container_by_rid(here.rid()).unwrap();
    first.split(&here, None).await.unwrap();
    let ranges =
        |container: &Container| -> Vec<u32> { container.ranges().ranges.iter().map(|range| range.id).collect() };
    assert_eq!(ranges(&there), [0]);
    second.refresh_catalog().await.unwrap();
    assert_eq!(ranges(&there), [1, 2]);
    let document = Document::parse(br#"{"id":"a","pk":"p"}"#).unwrap();
    let create = CreateItem {
        document,
        partition_key: None,
    };
    second.create_item(&ctx, &there, create).await.unwrap();
    second.split(&there, None).await.unwrap();
    first.refresh_catalog().await.unwrap();
    assert_eq!(ranges(&here), ranges(&there));
}

#[tokio::test]
async fn known_names_are_found_without_reading_and_an_engine_of_one_account_is_not_asked_for_others() {
    let two = Two::through(|engine, _| Arc::new(Probe::new(engine))).await;
    let probe = Arc::new(Probe::new(two.engine.clone()));
    let account = Account::open(probe.clone(), crate::test_container::options())
        .await
        .unwrap();
    let ctx = account.begin().await.unwrap();
    let database = account.create_database(&ctx, "d", None).await.unwrap().rid;
    account
        .create_container(&ctx, database, container("c", &json!({})), None)
        .await
        .unwrap();
    probe.traffic();
    account.database_by_name("d").unwrap();
    account.container_by_name(database, "c").unwrap();
    assert_eq!(probe.traffic().reads, 0);
    account.refresh_catalog().await.unwrap();
    assert!(probe.traffic().reads > 0);

    let alone = crate::test_container::TestContainer::with(json!({})).await;
    alone.engine.traffic();
    alone.account.refresh_catalog().await.unwrap();
    assert_eq!(alone.engine.traffic().reads, 0);
}
