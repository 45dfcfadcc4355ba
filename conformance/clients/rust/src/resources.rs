//! Account, databases, containers and throughput.

use azure_data_cosmos::Query;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties, TimeToLive};
use futures::TryStreamExt;

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::{World, connect, properties, unique};

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        wrong_key_is_refused_with_401,
        database_can_be_read_queried_and_deleted,
        second_database_and_container_of_the_same_name_are_refused_with_409,
        missing_database_and_container_are_404,
        container_echoes_its_partition_key_and_default_ttl,
        replacing_a_container_changes_and_removes_its_default_ttl,
        container_can_be_queried_and_deleted,
        default_ttl_of_zero_is_refused_with_400,
        manual_throughput_can_be_read_and_replaced,
        autoscale_throughput_keeps_its_maximum,
        throughput_decides_the_number_of_ranges,
    );
}

async fn wrong_key_is_refused_with_401(world: &World) -> Outcome {
    let stranger = async {
        let client = connect(&world.endpoint, "d3JvbmcgYWNjb3VudCBrZXk=").await?;
        client.database_client(&world.database_id).read(None).await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    match stranger.await {
        Ok(()) => Err("a wrong key was accepted".into()),
        Err(error) => equal(error.to_string().contains("401"), true, &format!("401 in `{error}`")),
    }
}

async fn database_can_be_read_queried_and_deleted(world: &World) -> Outcome {
    let id = unique("shelf");
    world.client.create_database(&id, None).await?;
    let database = world.client.database_client(&id);
    equal(database.read(None).await?.into_model()?.id, Some(id.clone()), "id")?;
    let query = Query::from("SELECT * FROM root r WHERE r.id = @id").with_parameter("@id", &id)?;
    let found: Vec<_> = world.client.query_databases(query, None).await?.try_collect().await?;
    equal(found.len(), 1, "databases found")?;
    database.delete(None).await?;
    refused(404, database.read(None)).await
}

async fn second_database_and_container_of_the_same_name_are_refused_with_409(world: &World) -> Outcome {
    refused(409, world.client.create_database(&world.database_id, None)).await?;
    let twice = properties("twice");
    world.create(twice.clone(), None).await?;
    refused(409, world.database.create_container(twice, None)).await
}

async fn missing_database_and_container_are_404(world: &World) -> Outcome {
    refused(404, world.client.database_client("nowhere").read(None)).await?;
    refused(404, world.database.container_client("nowhere", None)).await
}

async fn container_echoes_its_partition_key_and_default_ttl(world: &World) -> Outcome {
    let wanted = properties("echo").with_default_ttl(3600);
    let container = world.create(wanted.clone(), None).await?;
    let read = container.read(None).await?.into_model()?;
    equal(read.partition_key, wanted.partition_key, "partition key")?;
    equal(read.default_ttl, TimeToLive::Seconds(3600), "default ttl")
}

async fn replacing_a_container_changes_and_removes_its_default_ttl(world: &World) -> Outcome {
    let container = world.create(properties("replace").with_default_ttl(60), None).await?;
    for ttl in [TimeToLive::NoDefault, TimeToLive::Forever] {
        let changed: ContainerProperties = container.read(None).await?.into_model()?.with_default_ttl(ttl.clone());
        container.replace(changed, None).await?;
        equal(
            container.read(None).await?.into_model()?.default_ttl,
            ttl,
            "default ttl",
        )?;
    }
    Ok(())
}

async fn container_can_be_queried_and_deleted(world: &World) -> Outcome {
    let wanted = properties("kept only briefly");
    let container = world.create(wanted.clone(), None).await?;
    let query = Query::from("SELECT * FROM root r WHERE r.id = @id").with_parameter("@id", &wanted.id)?;
    let found: Vec<_> = world
        .database
        .query_containers(query, None)
        .await?
        .try_collect()
        .await?;
    equal(found.len(), 1, "containers found")?;
    container.delete(None).await?;
    refused(404, container.read(None)).await
}

async fn default_ttl_of_zero_is_refused_with_400(world: &World) -> Outcome {
    refused(
        400,
        world
            .database
            .create_container(properties("bad ttl").with_default_ttl(0), None),
    )
    .await
}

async fn manual_throughput_can_be_read_and_replaced(world: &World) -> Outcome {
    let container = world
        .create(properties("manual"), Some(ThroughputProperties::manual(500)))
        .await?;
    let throughput = async || {
        container
            .read_throughput(None)
            .await
            .map(|offer| offer.and_then(|o| o.throughput()))
    };
    equal(throughput().await?, Some(500), "throughput")?;
    container
        .begin_replace_throughput(ThroughputProperties::manual(900), None)
        .await?
        .await?;
    equal(throughput().await?, Some(900), "replaced throughput")
}

async fn autoscale_throughput_keeps_its_maximum(world: &World) -> Outcome {
    let autoscale = ThroughputProperties::autoscale(4000, None);
    let container = world.create(properties("autoscale"), Some(autoscale)).await?;
    let offer = container.read_throughput(None).await?.ok_or("no offer")?;
    equal(offer.autoscale_maximum(), Some(4000), "maximum")
}

async fn throughput_decides_the_number_of_ranges(world: &World) -> Outcome {
    let narrow = world.container("narrow").await?;
    let wide = world.wide_container("wide").await?;
    equal(
        narrow.read_feed_ranges(None).await?.len(),
        1,
        "ranges of the standard throughput",
    )?;
    equal(wide.read_feed_ranges(None).await?.len(), 5, "ranges of 30,000 RU/s")
}
