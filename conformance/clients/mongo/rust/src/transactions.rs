//! Retryable writes, transactions, change streams.

use std::time::Duration;

use bson::{Bson, Document, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ChangeStreamEvent;
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::World;

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        a_retried_write_is_done_once,
        a_transaction_is_seen_as_a_whole_once_it_is_committed,
        an_aborted_transaction_leaves_nothing,
        of_two_transactions_on_one_document_the_second_conflicts,
        a_change_stream_shows_every_kind_of_write,
        a_change_stream_goes_on_after_a_token,
    );
}

async fn a_retried_write_is_done_once(world: &World) -> Outcome {
    let collection = world.collection("accounts", &[doc! { "_id": 1, "n": 0 }]).await?;
    let data = doc! { "failCommands": ["update"], "closeConnection": true };
    let fail = doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data };
    world.client.database("admin").run_command(fail).await?;
    collection
        .update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } })
        .await?;
    equal(
        collection.find_one(doc! {}).await?,
        Some(doc! { "_id": 1, "n": 1 }),
        "document",
    )
}

async fn a_transaction_is_seen_as_a_whole_once_it_is_committed(world: &World) -> Outcome {
    let left = world.collection("left", &[doc! { "_id": 1, "n": 5 }]).await?;
    let right = world.collection("right", &[doc! { "_id": 1, "n": 0 }]).await?;
    let mut session = world.client.start_session().await?;
    session.start_transaction().await?;
    left.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": -5 } })
        .session(&mut session)
        .await?;
    right
        .update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 5 } })
        .session(&mut session)
        .await?;
    let inside = right.find_one(doc! {}).session(&mut session).await?;
    equal(inside, Some(doc! { "_id": 1, "n": 5 }), "inside")?;
    equal(
        right.find_one(doc! {}).await?,
        Some(doc! { "_id": 1, "n": 0 }),
        "outside",
    )?;
    session.commit_transaction().await?;
    equal(left.find_one(doc! {}).await?, Some(doc! { "_id": 1, "n": 0 }), "left")?;
    equal(right.find_one(doc! {}).await?, Some(doc! { "_id": 1, "n": 5 }), "right")
}

async fn an_aborted_transaction_leaves_nothing(world: &World) -> Outcome {
    let collection = world.collection("accounts", &[doc! { "_id": 1 }]).await?;
    let mut session = world.client.start_session().await?;
    session.start_transaction().await?;
    collection.delete_one(doc! { "_id": 1 }).session(&mut session).await?;
    collection.insert_one(doc! { "_id": 2 }).session(&mut session).await?;
    session.abort_transaction().await?;
    equal(collection.distinct("_id", doc! {}).await?, vec![1], "documents")
}

async fn of_two_transactions_on_one_document_the_second_conflicts(world: &World) -> Outcome {
    let collection = world.collection("accounts", &[doc! { "_id": 1, "n": 0 }]).await?;
    let add = doc! { "$inc": { "n": 1 } };
    let (mut one, mut other) = (world.client.start_session().await?, world.client.start_session().await?);
    one.start_transaction().await?;
    other.start_transaction().await?;
    collection
        .update_one(doc! { "_id": 1 }, add.clone())
        .session(&mut one)
        .await?;
    let error = refused(
        112,
        collection.update_one(doc! { "_id": 1 }, add).session(&mut other).await,
    )?;
    equal(error.contains_label(TRANSIENT_TRANSACTION_ERROR), true, "the label")?;
    one.commit_transaction().await?;
    other.abort_transaction().await?;
    Ok(())
}

async fn a_change_stream_shows_every_kind_of_write(world: &World) -> Outcome {
    let collection = world.collection("watched", &[doc! { "_id": 0 }]).await?;
    let mut stream = collection.watch().max_await_time(Duration::from_millis(300)).await?;
    collection.insert_one(doc! { "_id": 1, "a": 1 }).await?;
    collection
        .update_one(doc! { "_id": 1 }, doc! { "$set": { "a": 2 } })
        .await?;
    collection.replace_one(doc! { "_id": 1 }, doc! { "c": 1 }).await?;
    collection.delete_one(doc! { "_id": 1 }).await?;
    let mut kinds = Vec::new();
    for event in taken(&mut stream, 4).await? {
        kinds.push(bson::serialize_to_bson(&event.operation_type)?);
        equal(event.document_key, Some(doc! { "_id": 1 }), "document key")?;
    }
    equal(
        kinds,
        ["insert", "update", "replace", "delete"].map(Bson::from).to_vec(),
        "kinds",
    )
}

async fn a_change_stream_goes_on_after_a_token(world: &World) -> Outcome {
    let collection = world.collection("watched", &[doc! { "_id": 0 }]).await?;
    let mut stream = collection.watch().max_await_time(Duration::from_millis(300)).await?;
    collection.insert_many([doc! { "_id": 1 }, doc! { "_id": 2 }]).await?;
    let token = taken(&mut stream, 1).await?.remove(0).id;
    let mut next = collection
        .watch()
        .resume_after(token)
        .max_await_time(Duration::from_millis(300))
        .await?;
    equal(
        taken(&mut next, 1).await?.remove(0).document_key,
        Some(doc! { "_id": 2 }),
        "document key",
    )
}

type Event = ChangeStreamEvent<Document>;

async fn taken(stream: &mut ChangeStream<Event>, count: usize) -> Outcome<Vec<Event>> {
    let mut events = Vec::new();
    for _ in 0..20 {
        events.extend(stream.next_if_any().await?);
        if events.len() == count {
            return Ok(events);
        }
    }
    Err(format!("{} events, expected {count}", events.len()).into())
}
