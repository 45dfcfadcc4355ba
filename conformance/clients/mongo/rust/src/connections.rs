//! Connections: topologies, encryption, compression, authentication.

use bson::{Bson, Document, doc};
use mongodb::{Client, Collection};

use crate::checks;
use crate::checks::{Outcome, Tour, equal, refused};
use crate::world::{Credentials, World};

pub async fn run(tour: &mut Tour, world: &World) {
    checks!(
        tour,
        world,
        clients_find_the_primary_of_the_replica_set,
        clients_connect_directly,
        connections_are_encrypted_on_the_same_port,
        connections_are_not_encrypted_unless_asked,
        messages_are_compressed_with_snappy,
        messages_are_compressed_with_zlib,
        messages_are_compressed_with_zstd,
        scram_sha_256_authenticates,
        scram_sha_1_authenticates,
        a_wrong_password_is_refused,
        nothing_is_read_without_credentials,
    );
}

async fn ping(client: &Client) -> Outcome {
    let reply = client.database("admin").run_command(doc! { "ping": 1 }).await?;
    equal(reply.get("ok").cloned().unwrap_or(Bson::Null), 1, "ok")
}

async fn pings_with(world: &World, options: &str) -> Outcome {
    ping(&world.connect(Credentials::Own, options).await?).await
}

async fn clients_find_the_primary_of_the_replica_set(world: &World) -> Outcome {
    pings_with(world, "replicaSet=globaldb").await
}

async fn clients_connect_directly(world: &World) -> Outcome {
    pings_with(world, "directConnection=true").await
}

async fn connections_are_encrypted_on_the_same_port(world: &World) -> Outcome {
    let options = format!("replicaSet=globaldb&tls=true&tlsCAFile={}", world.certificate);
    pings_with(world, &options).await
}

async fn connections_are_not_encrypted_unless_asked(world: &World) -> Outcome {
    pings_with(world, "replicaSet=globaldb&tls=false").await
}

async fn messages_are_compressed_with_snappy(world: &World) -> Outcome {
    compressed(world, "snappy").await
}

async fn messages_are_compressed_with_zlib(world: &World) -> Outcome {
    compressed(world, "zlib").await
}

async fn messages_are_compressed_with_zstd(world: &World) -> Outcome {
    compressed(world, "zstd").await
}

async fn compressed(world: &World, compressor: &str) -> Outcome {
    let client = world
        .connect(
            Credentials::Own,
            &format!("replicaSet=globaldb&compressors={compressor}"),
        )
        .await?;
    let collection: Collection<Document> = client.database(world.database.name()).collection("compressed");
    let document = doc! { "_id": compressor, "text": "compress me ".repeat(5000) };
    collection
        .replace_one(doc! { "_id": compressor }, &document)
        .upsert(true)
        .await?;
    let found = collection.find_one(doc! { "_id": compressor }).await?;
    equal(found, Some(document), "the document")
}

async fn scram_sha_256_authenticates(world: &World) -> Outcome {
    authenticated(world, "SCRAM-SHA-256").await
}

async fn scram_sha_1_authenticates(world: &World) -> Outcome {
    authenticated(world, "SCRAM-SHA-1").await
}

async fn authenticated(world: &World, mechanism: &str) -> Outcome {
    let client = world
        .connect(
            Credentials::Own,
            &format!("replicaSet=globaldb&authMechanism={mechanism}"),
        )
        .await?;
    client.list_database_names().await?;
    Ok(())
}

async fn a_wrong_password_is_refused(world: &World) -> Outcome {
    let client = world
        .connect(Credentials::Password("d3Jvbmc"), "directConnection=true")
        .await?;
    match client.list_database_names().await {
        Ok(_) => Err("the client reads with a wrong password".into()),
        Err(error) if error.to_string().contains("uthentication") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn nothing_is_read_without_credentials(world: &World) -> Outcome {
    let client = world.connect(Credentials::None, "directConnection=true").await?;
    ping(&client).await?;
    refused(13, client.list_database_names().await).map(drop)
}
