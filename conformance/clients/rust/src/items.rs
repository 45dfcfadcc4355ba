//! Items: writes, reads, conditions, patches, ids, hierarchical keys, sessions, the change feed.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ChangeFeedItem, PatchInstructions, PatchOperation};
use azure_data_cosmos::options::{
    BinaryEncodingOptions, ChangeFeedStartFrom, ItemReadOptions, ItemWriteOptions, PatchItemOptions, PatchStrategy,
    Precondition,
};
use azure_data_cosmos::{PartitionKey, TransactionalBatch};
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::{DATA, World, add, keyed, query, read, sorted, with_content};

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        created_item_is_read_back_with_its_system_properties,
        values_of_every_kind_survive_binary_and_text_bodies,
        second_item_of_the_same_id_is_refused_with_409,
        upsert_creates_with_201_and_then_replaces_with_200,
        replaced_item_has_a_new_etag_and_the_new_body,
        stale_etag_is_refused_with_412_and_changes_nothing,
        read_of_an_unchanged_item_answers_304,
        write_without_content_in_the_response_returns_headers_only,
        patch_applies_every_operation_in_order,
        patch_with_a_stale_etag_is_refused_with_412,
        deleted_item_is_404_and_its_id_is_free,
        unusual_ids_and_partition_keys_are_kept_exactly,
        partition_keys_of_every_type_are_kept_apart,
        hierarchical_key_finds_items_by_the_full_key_and_queries_by_a_prefix,
        every_write_under_a_hierarchical_key_takes_binary_and_text_bodies,
        read_right_after_a_write_carries_the_same_session_token,
        change_feed_shows_the_latest_version_of_each_item_in_order,
        change_feed_covers_every_range,
    );
}

async fn created_item_is_read_back_with_its_system_properties(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let body = json!({"id": "a", "pk": "p", "text": "grüße"});
    let created = add(&container, body.clone()).await?;
    equal(&read(&container, "p", "a").await?, &created, "read item")?;
    equal(user_part(&created), body, "user properties")?;
    equal(
        created["_ts"].is_i64() && created["_etag"].is_string(),
        true,
        "system properties",
    )
}

async fn values_of_every_kind_survive_binary_and_text_bodies(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let body = json!({
        "id": "binary", "pk": "p", "none": null, "yes": true, "no": false, "small": 31, "whole": 32, "negative": -1,
        "large": 9_007_199_254_740_991_i64, "part": 0.5, "empty": "", "long": "é".repeat(40_000), "list": [1, [2, {}], []],
        "many": (0..300).collect::<Vec<_>>(), "nested": {"deep": {"deeper": "日本🎉"}},
    });
    equal(&user_part(&add(&container, body.clone()).await?), &body, "binary body")?;
    let mut text = with_content();
    text.operation.binary_encoding = Some(BinaryEncodingOptions::new().with_enabled(false));
    let replaced: Value = container
        .replace_item("p", "binary", &body, Some(text))
        .await?
        .into_model()?;
    equal(&user_part(&replaced), &body, "text body")
}

async fn second_item_of_the_same_id_is_refused_with_409(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let body = json!({"id": "a", "pk": "p"});
    add(&container, body.clone()).await?;
    refused(409, container.create_item("p", "a", &body, None)).await?;
    add(&container, json!({"id": "a", "pk": "another partition"}))
        .await
        .map(drop)
}

async fn upsert_creates_with_201_and_then_replaces_with_200(world: &World) -> Outcome {
    let container = world.container("items").await?;
    for (v, status) in [(1, 201), (2, 200)] {
        let answer = container
            .upsert_item("p", "a", json!({"id": "a", "pk": "p", "v": v}), None)
            .await?;
        equal(u16::from(answer.status().status_code()), status, "status")?;
    }
    equal(&read(&container, "p", "a").await?["v"], &json!(2), "v")
}

async fn replaced_item_has_a_new_etag_and_the_new_body(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let created = add(&container, json!({"id": "a", "pk": "p", "old": true})).await?;
    let body = json!({"id": "a", "pk": "p", "new": true});
    let replaced: Value = container
        .replace_item("p", "a", &body, Some(with_content()))
        .await?
        .into_model()?;
    equal(user_part(&replaced), body, "replaced item")?;
    equal(replaced["_etag"] == created["_etag"], false, "etag stays")?;
    refused(
        404,
        container.replace_item("p", "b", json!({"id": "b", "pk": "p"}), None),
    )
    .await
}

async fn stale_etag_is_refused_with_412_and_changes_nothing(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let stale = etag(&add(&container, json!({"id": "a", "pk": "p", "v": 1})).await?);
    let when = || Some(ItemWriteOptions::default().with_precondition(Precondition::if_match(stale.clone())));
    let body = |v: u8| json!({"id": "a", "pk": "p", "v": v});
    container.replace_item("p", "a", body(2), when()).await?;
    refused(412, container.replace_item("p", "a", body(3), when())).await?;
    refused(412, container.upsert_item("p", "a", body(3), when())).await?;
    refused(412, container.delete_item("p", "a", when())).await?;
    equal(&read(&container, "p", "a").await?["v"], &json!(2), "v")
}

async fn read_of_an_unchanged_item_answers_304(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let current = etag(&add(&container, json!({"id": "a", "pk": "p"})).await?);
    let unless = |etag: String| Some(ItemReadOptions::default().with_precondition(Precondition::if_none_match(etag)));
    // The SDK returns a 304 as a response or as an error, depending on its version; only the status matters.
    let status = match container.read_item("p", "a", unless(current)).await {
        Ok(answer) => answer.status().status_code(),
        Err(error) => error.status().status_code(),
    };
    equal(u16::from(status), 304, "status")?;
    container.read_item("p", "a", unless("\"another\"".to_owned())).await?;
    Ok(())
}

async fn write_without_content_in_the_response_returns_headers_only(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let answer = container
        .create_item("p", "a", json!({"id": "a", "pk": "p"}), None)
        .await?;
    let tag = answer.headers().etag().map(ToString::to_string);
    equal(answer.into_body().is_empty(), true, "empty body")?;
    equal(tag, Some(etag(&read(&container, "p", "a").await?)), "etag")
}

async fn patch_applies_every_operation_in_order(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let body = json!({"id": "a", "pk": "p", "keep": 1, "gone": 1, "n": 3, "list": ["x"], "from": "here"});
    add(&container, body).await?;
    let patch = PatchInstructions::new()
        .with_operation(PatchOperation::add("/list/-", json!("y")))
        .with_operation(PatchOperation::set("/fresh", json!({"deep": true})))
        .with_operation(PatchOperation::replace("/keep", json!(2)))
        .with_operation(PatchOperation::remove("/gone"))
        .with_operation(PatchOperation::increment("/n", 4_i64))
        .with_operation(PatchOperation::move_value("/from", "/to"));
    container.patch_item("p", "a", patch, Some(on_the_server())).await?;
    let expected =
        json!({"id": "a", "pk": "p", "keep": 2, "n": 7, "list": ["x", "y"], "fresh": {"deep": true}, "to": "here"});
    equal(user_part(&read(&container, "p", "a").await?), expected, "patched item")
}

async fn patch_with_a_stale_etag_is_refused_with_412(world: &World) -> Outcome {
    let container = world.container("items").await?;
    let stale = etag(&add(&container, json!({"id": "a", "pk": "p", "v": 1})).await?);
    container
        .upsert_item("p", "a", json!({"id": "a", "pk": "p", "v": 2}), None)
        .await?;
    let patch = PatchInstructions::new().with_operation(PatchOperation::set("/v", json!(3)));
    let when = on_the_server().with_precondition(Precondition::if_match(stale));
    refused(412, container.patch_item("p", "a", patch, Some(when))).await
}

async fn deleted_item_is_404_and_its_id_is_free(world: &World) -> Outcome {
    let container = world.container("items").await?;
    add(&container, json!({"id": "a", "pk": "p"})).await?;
    container.delete_item("p", "a", None).await?;
    refused(404, container.read_item("p", "a", None)).await?;
    refused(404, container.delete_item("p", "a", None)).await?;
    add(&container, json!({"id": "a", "pk": "p"})).await.map(drop)
}

async fn unusual_ids_and_partition_keys_are_kept_exactly(world: &World) -> Outcome {
    let container = world.container("unusual ids").await?;
    for id in DATA["unusualIds"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let key = || PartitionKey::from(id.to_owned());
        add(&container, json!({"id": id, "pk": id})).await?;
        equal(&read(&container, key(), id).await?["id"], &json!(id), "id")?;
        container
            .replace_item(key(), id, json!({"id": id, "pk": id, "again": true}), None)
            .await?;
        container.delete_item(key(), id, None).await?;
        refused(404, container.read_item(key(), id, None)).await?;
    }
    Ok(())
}

async fn partition_keys_of_every_type_are_kept_apart(world: &World) -> Outcome {
    let container = world.wide_container("key types").await?;
    let keys = || -> Outcome<Vec<(PartitionKey, Value)>> {
        Ok(vec![
            ("1".into(), json!("1")),
            (1.into(), json!(1)),
            (1.5.try_into()?, json!(1.5)),
            (true.into(), json!(true)),
            (false.into(), json!(false)),
            (None::<String>.into(), json!(null)),
        ])
    };
    for (key, pk) in keys()? {
        container
            .create_item(key, "same", json!({"id": "same", "pk": pk}), None)
            .await?;
    }
    for (key, pk) in keys()? {
        equal(&read(&container, key, "same").await?["pk"], &pk, "partition key")?;
    }
    Ok(())
}

async fn hierarchical_key_finds_items_by_the_full_key_and_queries_by_a_prefix(world: &World) -> Outcome {
    let container = world
        .create(keyed("tree", ("/tenant", "/user", "/session").into()), None)
        .await?;
    for (tenant, user, session) in [
        ("t1", "u1", "s1"),
        ("t1", "u2", "s1"),
        ("t1", "u2", "s2"),
        ("t2", "u1", "s1"),
    ] {
        let id = format!("{tenant}{user}{session}");
        let body = json!({"id": id, "tenant": tenant, "user": user, "session": session});
        container.create_item((tenant, user, session), &id, body, None).await?;
    }
    equal(
        &read(&container, ("t1", "u2", "s1"), "t1u2s1").await?["user"],
        &json!("u2"),
        "user",
    )?;
    refused(404, container.read_item(("t1", "u1", "s1"), "t1u2s1", None)).await?;
    for (prefix, count) in [
        (PartitionKey::from("t1"), 3),
        (("t1", "u2").into(), 2),
        (("t1", "u2", "s2").into(), 1),
    ] {
        let found = query(&container, "SELECT * FROM c", FeedScope::partition(prefix)).await?;
        equal(found.len(), count, "items under the prefix")?;
    }
    Ok(())
}

async fn every_write_under_a_hierarchical_key_takes_binary_and_text_bodies(world: &World) -> Outcome {
    let container = world.create(keyed("tree", ("/tenant", "/user").into()), None).await?;
    for (id, is_binary) in [("binary", true), ("text", false)] {
        let options = || {
            let mut options = with_content();
            options.operation.binary_encoding = Some(BinaryEncodingOptions::new().with_enabled(is_binary));
            Some(options)
        };
        let key = || PartitionKey::from(("t1", "u1"));
        let body = |v: u8| json!({"id": id, "tenant": "t1", "user": "u1", "v": v, "part": 0.5, "type": "Point"});
        let created = container.create_item(key(), id, body(1), options()).await?;
        equal(user_part(&created.into_model()?), body(1), "created item")?;
        container.upsert_item(key(), id, body(2), options()).await?;
        let replaced = container.replace_item(key(), id, body(3), options()).await?;
        equal(user_part(&replaced.into_model()?), body(3), "replaced item")?;
        let patch = PatchInstructions::new().with_operation(PatchOperation::set("/v", json!(4)));
        container.patch_item(key(), id, patch, Some(on_the_server())).await?;
        equal(user_part(&read(&container, key(), id).await?), body(4), "patched item")?;
        let batch = TransactionalBatch::new(key())
            .replace_item(id, body(5), None)?
            .read_item(id, None);
        let results = container.execute_transactional_batch(batch, None).await?.into_model()?;
        let statuses = results.results().iter().map(|result| result.status_code());
        equal(statuses.collect::<Vec<_>>(), vec![200, 200], "batch")?;
        let found = query(&container, "SELECT * FROM c", FeedScope::partition(key())).await?;
        equal(found.iter().map(user_part).collect::<Vec<_>>(), vec![body(5)], "query")?;
        container.delete_item(key(), id, options()).await?;
    }
    Ok(())
}

async fn read_right_after_a_write_carries_the_same_session_token(world: &World) -> Outcome {
    let container = world.container("sessions").await?;
    let first = container
        .create_item("p", "a", json!({"id": "a", "pk": "p"}), None)
        .await?;
    let after_first = first.headers().session_token().cloned();
    equal(
        container.read_item("p", "a", None).await?.headers().session_token(),
        after_first.as_ref(),
        "token of a read",
    )?;
    let second = container
        .upsert_item("p", "a", json!({"id": "a", "pk": "p", "v": 2}), None)
        .await?;
    let after_second = second.headers().session_token().cloned().ok_or("no session token")?;
    equal(
        after_first == Some(after_second.clone()),
        false,
        "token stays after a write",
    )?;
    let options = ItemReadOptions::default().with_session_token(after_second);
    let item: Value = container.read_item("p", "a", Some(options)).await?.into_model()?;
    equal(&item["v"], &json!(2), "v")
}

async fn change_feed_shows_the_latest_version_of_each_item_in_order(world: &World) -> Outcome {
    let container = world.container("feed").await?;
    for id in ["a", "b", "c"] {
        add(&container, json!({"id": id, "pk": "p", "v": 1})).await?;
    }
    container
        .upsert_item("p", "a", json!({"id": "a", "pk": "p", "v": 2}), None)
        .await?;
    container.delete_item("p", "c", None).await?;
    let changes = changes(&container, FeedScope::partition("p")).await?;
    let seen: Vec<_> = changes
        .iter()
        .map(|change| json!([change["id"], change["v"]]))
        .collect();
    equal(seen, vec![json!(["b", 1]), json!(["a", 2])], "changes")
}

async fn change_feed_covers_every_range(world: &World) -> Outcome {
    let container = world.wide_container("wide feed").await?;
    let ids: Vec<Value> = (0..20).map(|n| json!(format!("i{n}"))).collect();
    for id in &ids {
        add(&container, json!({"id": id, "pk": id})).await?;
    }
    let changes = changes(&container, FeedScope::full_container()).await?;
    equal(
        sorted(changes.iter().map(|change| change["id"].clone()).collect()),
        sorted(ids),
        "changed ids",
    )
}

/// Reads the change feed from the beginning until ten pages in a row are empty; the SDK's stream never ends.
async fn changes(container: &ContainerClient, scope: FeedScope) -> Outcome<Vec<Value>> {
    const EMPTY_PAGES_AT_THE_END: usize = 10;
    let mut pages = container
        .query_change_feed::<Value>(scope, ChangeFeedStartFrom::Beginning, None)
        .await?;
    let (mut changes, mut empty) = (Vec::new(), 0);
    while empty < EMPTY_PAGES_AT_THE_END {
        let Some(page) = pages.try_next().await? else { break };
        empty = if page.items().is_empty() { empty + 1 } else { 0 };
        changes.extend(page.items().iter().filter_map(ChangeFeedItem::current).cloned());
    }
    Ok(changes)
}

/// Options of a patch that the server applies; the SDK's default may read and replace instead.
fn on_the_server() -> PatchItemOptions {
    PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide)
}

/// Returns the item's `_etag`.
fn etag(item: &Value) -> String {
    item["_etag"].as_str().unwrap_or_default().to_owned()
}

/// Returns the item without its system properties.
fn user_part(item: &Value) -> Value {
    let members = item
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !name.starts_with('_'));
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}
