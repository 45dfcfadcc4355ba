//! Documents and indexes: writes of one and of many, findAndModify, cursors, uniqueness.

use bson::{Bson, Document, doc};
use futures::TryStreamExt;
use mongodb::IndexModel;
use mongodb::options::{IndexOptions, ReturnDocument};

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::World;

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        an_inserted_document_is_read_back,
        a_taken_id_is_refused,
        updates_count_what_matched_and_what_changed,
        deletes_count_what_they_deleted,
        an_unordered_bulk_does_all_it_can,
        find_and_modify_returns_the_document_before_or_after,
        a_cursor_gives_every_document_in_batches,
        counts_and_distinct_values,
        indexes_are_created_listed_and_dropped,
        a_unique_index_refuses_a_second_document_with_mongodbs_text,
    );
}

fn numbered(count: i32) -> Vec<Document> {
    (0..count).map(|id| doc! { "_id": id, "a": id % 2 }).collect()
}

async fn an_inserted_document_is_read_back(world: &World) -> Outcome {
    let collection = world.collection("documents", &[]).await?;
    let document = doc! { "_id": 1, "a": [1, { "b": null }], "l": 5_i64 };
    collection.insert_one(&document).await?;
    let found = collection.find_one(doc! { "_id": 1 }).await?.ok_or("it is not there")?;
    if found == document {
        Ok(())
    } else {
        Err(format!("another document: {found}").into())
    }
}

async fn a_taken_id_is_refused(world: &World) -> Outcome {
    let collection = world.collection("documents", &[doc! { "_id": 1 }]).await?;
    refused(11000, collection.insert_one(doc! { "_id": 1 }).await).map(drop)
}

async fn updates_count_what_matched_and_what_changed(world: &World) -> Outcome {
    let collection = world.collection("documents", &numbered(4)).await?;
    let done = collection
        .update_many(doc! { "a": { "$lte": 1 } }, doc! { "$set": { "a": 1 } })
        .await?;
    equal(
        doc! { "m": done.matched_count as i64, "n": done.modified_count as i64 },
        doc! { "m": 4, "n": 2 },
        "counts",
    )?;
    let done = collection
        .replace_one(doc! { "_id": 9 }, doc! { "b": 1 })
        .upsert(true)
        .await?;
    equal(done.upserted_id, Some(Bson::Int32(9)), "upserted")
}

async fn deletes_count_what_they_deleted(world: &World) -> Outcome {
    let collection = world.collection("documents", &numbered(4)).await?;
    equal(collection.delete_one(doc! {}).await?.deleted_count as i64, 1, "one")?;
    equal(
        collection
            .delete_many(doc! { "_id": { "$gte": 2 } })
            .await?
            .deleted_count as i64,
        2,
        "many",
    )
}

async fn an_unordered_bulk_does_all_it_can(world: &World) -> Outcome {
    let collection = world.collection("documents", &[doc! { "_id": 1 }]).await?;
    let documents = [1, 2, 1, 3].map(|id| doc! { "_id": id });
    refused(11000, collection.insert_many(documents).ordered(false).await)?;
    equal(collection.count_documents(doc! {}).await? as i64, 3, "documents")
}

async fn find_and_modify_returns_the_document_before_or_after(world: &World) -> Outcome {
    let collection = world
        .collection("documents", &[doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": 5 }])
        .await?;
    let add = doc! { "$inc": { "n": 1 } };
    let before = collection
        .find_one_and_update(doc! {}, add.clone())
        .sort(doc! { "n": -1 })
        .await?;
    equal(before, Some(doc! { "_id": 2, "n": 5 }), "before")?;
    let after = collection
        .find_one_and_update(doc! { "_id": 1 }, add)
        .return_document(ReturnDocument::After)
        .projection(doc! { "_id": 0 })
        .await?;
    equal(after, Some(doc! { "n": 2 }), "after")?;
    equal(
        collection.find_one_and_delete(doc! { "_id": 1 }).await?,
        Some(doc! { "_id": 1, "n": 2 }),
        "deleted",
    )
}

async fn a_cursor_gives_every_document_in_batches(world: &World) -> Outcome {
    let collection = world.collection("documents", &numbered(250)).await?;
    let found: Vec<Document> = collection
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .batch_size(40)
        .await?
        .try_collect()
        .await?;
    let expected = numbered(250).into_iter().map(Bson::Document).collect::<Vec<_>>();
    equal(
        found.into_iter().map(Bson::Document).collect::<Vec<_>>(),
        expected,
        "documents",
    )
}

async fn counts_and_distinct_values(world: &World) -> Outcome {
    let collection = world.collection("documents", &numbered(6)).await?;
    equal(collection.estimated_document_count().await? as i64, 6, "estimated")?;
    equal(collection.count_documents(doc! { "a": 1 }).await? as i64, 3, "counted")?;
    equal(collection.distinct("a", doc! {}).await?.len() as i64, 2, "distinct")
}

async fn indexes_are_created_listed_and_dropped(world: &World) -> Outcome {
    let collection = world.collection("indexes", &[doc! { "_id": 1 }]).await?;
    let index = IndexModel::builder().keys(doc! { "a": 1, "b.c": -1 }).build();
    equal(collection.create_index(index).await?.index_name, "a_1_b.c_-1", "name")?;
    equal(
        collection.list_index_names().await?,
        vec!["_id_".to_owned(), "a_1_b.c_-1".to_owned()],
        "names",
    )?;
    collection.drop_index("a_1_b.c_-1").await?;
    equal(collection.list_index_names().await?, vec!["_id_".to_owned()], "names")
}

async fn a_unique_index_refuses_a_second_document_with_mongodbs_text(world: &World) -> Outcome {
    let collection = world.collection("unique", &[]).await?;
    let unique = IndexOptions::builder().unique(true).build();
    collection
        .create_index(IndexModel::builder().keys(doc! { "email": 1 }).options(unique).build())
        .await?;
    collection.insert_one(doc! { "_id": 1, "email": "a@x" }).await?;
    let error = refused(11000, collection.insert_one(doc! { "_id": 2, "email": "a@x" }).await)?;
    let namespace = format!("{}.unique", world.database.name());
    let text =
        format!(r#"E11000 duplicate key error collection: {namespace} index: email_1 dup key: {{ email: "a@x" }}"#);
    // The driver shows the server's text as a literal, with its quotes escaped.
    if error.to_string().replace('\\', "").contains(&text) {
        Ok(())
    } else {
        Err(format!("another text: {error}").into())
    }
}
