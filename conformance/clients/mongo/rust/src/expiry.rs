//! Time to live: the index on `_ts` with the field `ttl`, and indexes on dates, to the millisecond.

use std::time::Duration;

use bson::{Bson, DateTime, Document, doc};
use futures::TryStreamExt;
use mongodb::options::IndexOptions;
use mongodb::{Collection, IndexModel};

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::World;

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        documents_end_seconds_after_their_last_change,
        a_document_has_a_time_to_live_of_its_own,
        dates_end_documents_to_the_millisecond,
        an_expired_document_holds_neither_its_id_nor_unique_keys,
    );
}

async fn expiring(world: &World, name: &str, field: &str, seconds: u64) -> Outcome<Collection<Document>> {
    let collection = world.collection(name, &[]).await?;
    let options = IndexOptions::builder()
        .expire_after(Duration::from_secs(seconds))
        .build();
    collection
        .create_index(IndexModel::builder().keys(doc! { field: 1 }).options(options).build())
        .await?;
    Ok(collection)
}

async fn visible_at(world: &World, collection: &Collection<Document>, instant: i64, ids: &[i32]) -> Outcome {
    world.clock.set_ms(instant)?;
    let found: Vec<Document> = collection
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await?
        .try_collect()
        .await?;
    let found: Vec<Bson> = found.iter().filter_map(|one| one.get("_id").cloned()).collect();
    equal(found, ids.to_vec(), "find")?;
    let count = i64::try_from(ids.len())?;
    equal(
        collection.count_documents(doc! {}).await? as i64,
        count,
        "count_documents",
    )?;
    equal(
        collection.estimated_document_count().await? as i64,
        count,
        "estimated_document_count",
    )
}

async fn documents_end_seconds_after_their_last_change(world: &World) -> Outcome {
    let collection = expiring(world, "sessions", "_ts", 10).await?;
    let start = world.clock.next_second()?;
    collection.insert_many([doc! { "_id": 1 }, doc! { "_id": 2 }]).await?;
    world.clock.set_ms(start + 5_000)?;
    collection
        .update_one(doc! { "_id": 2 }, doc! { "$set": { "seen": true } })
        .await?;
    visible_at(world, &collection, start + 9_999, &[1, 2]).await?;
    visible_at(world, &collection, start + 10_000, &[2]).await?;
    visible_at(world, &collection, start + 15_000, &[]).await
}

async fn a_document_has_a_time_to_live_of_its_own(world: &World) -> Outcome {
    let collection = expiring(world, "sessions", "_ts", 10).await?;
    let start = world.clock.next_second()?;
    let documents = [
        doc! { "_id": 1, "ttl": 20.0 },
        doc! { "_id": 2, "ttl": 20_i32 },
        doc! { "_id": 3, "ttl": 20_i64 },
        doc! { "_id": 4, "ttl": 20.5 },
        doc! { "_id": 5, "ttl": 2_147_483_649_i64 },
    ];
    collection.insert_many(documents).await?;
    visible_at(world, &collection, start + 9_999, &[1, 2, 3, 4, 5]).await?;
    visible_at(world, &collection, start + 10_000, &[1, 2, 3]).await?;
    visible_at(world, &collection, start + 20_000, &[]).await
}

async fn dates_end_documents_to_the_millisecond(world: &World) -> Outcome {
    let collection = expiring(world, "dates", "expireAt", 0).await?;
    let start = world.clock.next_second()?;
    let at = |instant| DateTime::from_millis(start + instant);
    let documents = [
        doc! { "_id": 1, "expireAt": at(1_234) },
        doc! { "_id": 2, "expireAt": at(1_235) },
        doc! { "_id": 3 },
    ];
    collection.insert_many(documents).await?;
    visible_at(world, &collection, start + 1_233, &[1, 2, 3]).await?;
    visible_at(world, &collection, start + 1_234, &[2, 3]).await?;
    visible_at(world, &collection, start + 1_235, &[3]).await
}

async fn an_expired_document_holds_neither_its_id_nor_unique_keys(world: &World) -> Outcome {
    let collection = expiring(world, "dates", "expireAt", 0).await?;
    let unique = IndexOptions::builder().unique(true).build();
    collection
        .create_index(IndexModel::builder().keys(doc! { "email": 1 }).options(unique).build())
        .await?;
    let start = world.clock.next_second()?;
    let end = DateTime::from_millis(start + 1_000);
    collection
        .insert_one(doc! { "_id": 1, "email": "a@x", "expireAt": end })
        .await?;
    refused(11000, collection.insert_one(doc! { "_id": 2, "email": "a@x" }).await)?;
    world.clock.set_ms(start + 1_000)?;
    collection.insert_one(doc! { "_id": 2, "email": "a@x" }).await?;
    collection.insert_one(doc! { "_id": 1, "email": "b@x" }).await?;
    Ok(())
}
