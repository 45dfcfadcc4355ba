//! Time to live: items expire at their exact second for every kind of request.
//!
//! The server's clock is virtual, so a test of thirty days takes milliseconds. An item expires at `_ts` plus its time to live; it is live at the last
//! millisecond before that second and gone from the second on.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ThroughputProperties, TimeToLive};
use serde_json::{Value, json};

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::{World, add, properties, query, sorted};

const THIRTY_DAYS: i64 = 30 * 24 * 3600;

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        item_ends_at_its_exact_second_for_every_kind_of_request,
        own_ttl_of_an_item_outweighs_the_default,
        write_renews_an_item_and_a_read_does_not,
        id_of_an_expired_item_is_free,
        shorter_default_ends_older_items_at_once_and_switching_off_revives_none,
        items_end_on_every_range_at_the_same_second,
        invalid_ttl_of_an_item_is_refused_with_400,
    );
}

async fn item_ends_at_its_exact_second_for_every_kind_of_request(world: &World) -> Outcome {
    let container = world.create(properties("ends").with_default_ttl(100), None).await?;
    let end = born(&add(&container, json!({"id": "a", "pk": "p"})).await?)? + 100;
    world.clock.set_ms(end * 1000 - 1)?;
    container.read_item("p", "a", None).await?;
    equal(
        (seen(&container).await?, count(&container).await?),
        (vec![json!("a")], 1),
        "before its second",
    )?;
    world.clock.set_seconds(end)?;
    let body = json!({"id": "a", "pk": "p"});
    refused(404, container.read_item("p", "a", None)).await?;
    refused(404, container.replace_item("p", "a", body, None)).await?;
    refused(404, container.delete_item("p", "a", None)).await?;
    equal(
        (seen(&container).await?, count(&container).await?),
        (vec![], 0),
        "at its second",
    )
}

async fn own_ttl_of_an_item_outweighs_the_default(world: &World) -> Outcome {
    let container = world.create(properties("own").with_default_ttl(100), None).await?;
    let start = born(&add(&container, json!({"id": "default", "pk": "p"})).await?)?;
    for (id, ttl) in [("shorter", 10), ("longer", THIRTY_DAYS), ("never", -1)] {
        add(&container, json!({"id": id, "pk": "p", "ttl": ttl})).await?;
    }
    for (age, alive) in [
        (9, json!(["default", "longer", "never", "shorter"])),
        (10, json!(["default", "longer", "never"])),
        (100, json!(["longer", "never"])),
        (THIRTY_DAYS - 1, json!(["longer", "never"])),
        (THIRTY_DAYS, json!(["never"])),
    ] {
        world.clock.set_seconds(start + age)?;
        equal(Value::Array(seen(&container).await?), alive, &format!("after {age} s"))?;
    }
    Ok(())
}

async fn write_renews_an_item_and_a_read_does_not(world: &World) -> Outcome {
    let container = world.create(properties("renew").with_default_ttl(100), None).await?;
    let start = born(&add(&container, json!({"id": "written", "pk": "p"})).await?)?;
    add(&container, json!({"id": "read", "pk": "p"})).await?;
    world.clock.set_seconds(start + 60)?;
    container
        .replace_item("p", "written", json!({"id": "written", "pk": "p"}), None)
        .await?;
    container.read_item("p", "read", None).await?;
    world.clock.set_seconds(start + 100)?;
    equal(seen(&container).await?, vec![json!("written")], "after the default")?;
    world.clock.set_seconds(start + 160)?;
    equal(seen(&container).await?, Vec::<Value>::new(), "after the renewed time")
}

async fn id_of_an_expired_item_is_free(world: &World) -> Outcome {
    let container = world.create(properties("free").with_default_ttl(10), None).await?;
    let end = born(&add(&container, json!({"id": "a", "pk": "p"})).await?)? + 10;
    add(&container, json!({"id": "b", "pk": "p"})).await?;
    world.clock.set_seconds(end)?;
    add(&container, json!({"id": "a", "pk": "p"})).await?;
    let upserted = container
        .upsert_item("p", "b", json!({"id": "b", "pk": "p"}), None)
        .await?;
    equal(u16::from(upserted.status().status_code()), 201, "status of the upsert")
}

async fn shorter_default_ends_older_items_at_once_and_switching_off_revives_none(world: &World) -> Outcome {
    let container = world.create(properties("change").with_default_ttl(1000), None).await?;
    let start = born(&add(&container, json!({"id": "old", "pk": "p"})).await?)?;
    world.clock.set_seconds(start + 50)?;
    add(&container, json!({"id": "new", "pk": "p"})).await?;
    for ttl in [TimeToLive::Seconds(50), TimeToLive::Forever] {
        let changed = container.read(None).await?.into_model()?.with_default_ttl(ttl.clone());
        container.replace(changed, None).await?;
        equal(seen(&container).await?, vec![json!("new")], &format!("under {ttl:?}"))?;
    }
    Ok(())
}

async fn items_end_on_every_range_at_the_same_second(world: &World) -> Outcome {
    let wide = Some(ThroughputProperties::manual(30_000));
    let container = world.create(properties("wide end").with_default_ttl(100), wide).await?;
    let mut end = 0;
    for n in 0..20 {
        end = born(&add(&container, json!({"id": format!("i{n}"), "pk": format!("p{n}")})).await?)? + 100;
    }
    world.clock.set_ms(end * 1000 - 1)?;
    equal(seen(&container).await?.len(), 20, "items before")?;
    world.clock.set_seconds(end)?;
    equal(seen(&container).await?.len(), 0, "items at the second")
}

async fn invalid_ttl_of_an_item_is_refused_with_400(world: &World) -> Outcome {
    let container = world
        .create(properties("invalid").with_default_ttl(TimeToLive::NoDefault), None)
        .await?;
    for ttl in [
        json!(0),
        json!(-2),
        json!(null),
        json!("10"),
        json!(1.5),
        json!(true),
        json!(1_i64 << 31),
    ] {
        refused(
            400,
            container.create_item("p", "a", json!({"id": "a", "pk": "p", "ttl": ttl}), None),
        )
        .await?;
    }
    Ok(())
}

/// Returns the second in which the item was written.
fn born(item: &Value) -> Outcome<i64> {
    item["_ts"].as_i64().ok_or_else(|| format!("no `_ts` in {item}").into())
}

/// Returns the sorted ids that a query over the whole container shows.
async fn seen(container: &ContainerClient) -> Outcome<Vec<Value>> {
    Ok(sorted(
        query(container, "SELECT VALUE c.id FROM c", FeedScope::full_container()).await?,
    ))
}

/// Returns the count of the items in partition `p`.
async fn count(container: &ContainerClient) -> Outcome<i64> {
    let rows = query(container, "SELECT VALUE COUNT(1) FROM c", FeedScope::partition("p")).await?;
    rows.first()
        .and_then(Value::as_i64)
        .ok_or_else(|| format!("no count in {rows:?}").into())
}
