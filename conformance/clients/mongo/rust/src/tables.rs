//! Queries, updates, pipelines and expressions from the tables that the tours of all languages share.

use std::collections::HashMap;

use bson::{Bson, Document, doc};
use futures::TryStreamExt;
use mongodb::Collection;
use mongodb::options::{Collation, UpdateModifications};

use crate::checks::{Outcome, Tour, equal, number, refused};
use crate::world::World;

pub async fn run(tour: &mut Tour, world: &World) -> Outcome {
    let queries = world.table("queries")?;
    world.collection("queries", &documents(&queries, "documents")?).await?;
    for row in documents(&queries, "cases")? {
        tour.check(&format!("find: {}", row.get_str("name")?), find(world, &row))
            .await;
    }
    let updates = world.table("updates")?;
    for row in documents(&updates, "cases")? {
        tour.check(&format!("update: {}", row.get_str("name")?), update(world, &row))
            .await;
    }
    for row in documents(&updates, "refusals")? {
        tour.check(
            &format!("update refused: {}", row.get_str("name")?),
            update_refused(world, &row),
        )
        .await;
    }
    let pipelines = world.table("pipelines")?;
    for (name, member) in [("orders", "documents"), ("others", "others")] {
        world.collection(name, &documents(&pipelines, member)?).await?;
    }
    for row in documents(&pipelines, "cases")? {
        tour.check(&format!("aggregate: {}", row.get_str("name")?), aggregate(world, &row))
            .await;
    }
    for row in documents(&pipelines, "refusals")? {
        tour.check(
            &format!("aggregate refused: {}", row.get_str("name")?),
            pipeline_refused(world, &row),
        )
        .await;
    }
    expressions(tour, world).await
}

async fn expressions(tour: &mut Tour, world: &World) -> Outcome {
    let table = world.table("expressions")?;
    let collection = world
        .collection("expressions", &[table.get_document("document")?.clone()])
        .await?;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for row in table.get_array("cases")? {
        let Bson::Array(row) = row else {
            return Err("a row is no list".into());
        };
        let [Bson::String(name), expression, expected] = row.as_slice() else {
            return Err("a row has another form".into());
        };
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        let label = if *times > 1 {
            format!("expression: {name}, case {times}")
        } else {
            format!("expression: {name}")
        };
        tour.check(&label, evaluate(&collection, expression, expected)).await;
    }
    Ok(())
}

fn documents(table: &Document, member: &str) -> Outcome<Vec<Document>> {
    let Ok(list) = table.get_array(member) else {
        return Ok(Vec::new());
    };
    Ok(list.iter().filter_map(Bson::as_document).cloned().collect())
}

fn as_list(documents: Vec<Document>) -> Bson {
    Bson::Array(documents.into_iter().map(Bson::Document).collect())
}

fn whole(row: &Document, member: &str) -> Option<i64> {
    row.get(member).and_then(number).map(|number| number as i64)
}

async fn find(world: &World, row: &Document) -> Outcome {
    let collection: Collection<Document> = world.database.collection("queries");
    let mut find = collection.find(row.get_document("filter")?.clone());
    find = find.sort(row.get_document("sort").cloned().unwrap_or(doc! { "_id": 1 }));
    if let Ok(projection) = row.get_document("projection") {
        find = find.projection(projection.clone());
    }
    if let Some(skip) = whole(row, "skip") {
        find = find.skip(u64::try_from(skip)?);
    }
    if let Some(limit) = whole(row, "limit") {
        find = find.limit(limit);
    }
    if let Ok(collation) = row.get_document("collation") {
        find = find.collation(bson::deserialize_from_document::<Collation>(collation.clone())?);
    }
    let found: Vec<Document> = find.await?.try_collect().await?;
    match row.get("ids") {
        Some(ids) => {
            let found: Vec<Bson> = found.iter().filter_map(|one| one.get("_id").cloned()).collect();
            equal(found, ids.clone(), "ids")
        }
        None => equal(as_list(found), as_list(documents(row, "documents")?), "documents"),
    }
}

async fn run_update(world: &World, row: &Document) -> Outcome<mongodb::error::Result<Collection<Document>>> {
    let start: Vec<Document> = row.get_document("document").ok().cloned().into_iter().collect();
    let collection = world.collection("updates", &start).await?;
    let filter = row.get_document("filter").cloned().unwrap_or(doc! { "_id": 1 });
    let update = match row.get("update") {
        Some(Bson::Array(_)) => UpdateModifications::Pipeline(documents(row, "update")?),
        _ => UpdateModifications::Document(row.get_document("update")?.clone()),
    };
    let mut call = collection
        .update_one(filter, update)
        .upsert(row.get_bool("upsert").unwrap_or(false));
    if row.contains_key("arrayFilters") {
        call = call.array_filters(documents(row, "arrayFilters")?);
    }
    let done = call.await;
    Ok(done.map(|_| collection))
}

async fn update(world: &World, row: &Document) -> Outcome {
    let collection = run_update(world, row).await??;
    let found: Vec<Document> = collection.find(doc! {}).await?.try_collect().await?;
    equal(
        as_list(found),
        as_list(vec![row.get_document("after")?.clone()]),
        "documents",
    )
}

async fn update_refused(world: &World, row: &Document) -> Outcome {
    let code = whole(row, "code").ok_or("a row has no code")?;
    refused(i32::try_from(code)?, run_update(world, row).await?)?;
    let found: Vec<Document> = world
        .database
        .collection("updates")
        .find(doc! {})
        .await?
        .try_collect()
        .await?;
    equal(
        as_list(found),
        as_list(vec![row.get_document("document")?.clone()]),
        "documents",
    )
}

async fn aggregate(world: &World, row: &Document) -> Outcome {
    let pipeline = documents(row, "pipeline")?;
    if row.contains_key("written") {
        world.collection("written", &documents(row, "before")?).await?;
    }
    let cursor = match row.get("database") {
        Some(Bson::String(name)) => world.client.database(name).aggregate(pipeline).await?,
        Some(_) => world.database.aggregate(pipeline).await?,
        None => {
            world
                .database
                .collection::<Document>("orders")
                .aggregate(pipeline)
                .await?
        }
    };
    let found: Vec<Document> = cursor.try_collect().await?;
    equal(as_list(found), as_list(documents(row, "documents")?), "documents")?;
    if !row.contains_key("written") {
        return Ok(());
    }
    let collection: Collection<Document> = world.database.collection("written");
    let written: Vec<Document> = collection
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await?
        .try_collect()
        .await?;
    equal(
        as_list(written),
        as_list(documents(row, "written")?),
        "the written collection",
    )
}

async fn pipeline_refused(world: &World, row: &Document) -> Outcome {
    let code = whole(row, "code").ok_or("a row has no code")?;
    let orders = world.database.collection::<Document>("orders");
    refused(
        i32::try_from(code)?,
        orders.aggregate(documents(row, "pipeline")?).await,
    )
    .map(drop)
}

async fn evaluate(collection: &Collection<Document>, expression: &Bson, expected: &Bson) -> Outcome {
    let project = doc! { "$project": { "_id": 0, "v": expression.clone() } };
    let found: Vec<Document> = collection.aggregate([project]).await?.try_collect().await?;
    equal(as_list(found), as_list(vec![doc! { "v": expected.clone() }]), "value")
}
