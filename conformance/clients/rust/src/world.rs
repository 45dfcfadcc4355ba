//! The shared state of the checks: a client, a database, the clock.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::{
    ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions, OperationOptions, RoutingStrategy,
};
use azure_data_cosmos::{AccountReference, CosmosClient, PartitionKey, Query};
use futures::TryStreamExt;
use serde_json::Value;

use crate::checks::Outcome;
use crate::clock::Clock;

/// The data that the tours of all languages store and expect.
pub static DATA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../tour_data.json"))
        .expect("the file is JSON, as the other tours read it too")
});

/// Enough for five partition key ranges; the default of 400 gives one.
pub const FIVE_RANGES: u64 = 30_000;

pub struct World {
    pub endpoint: String,
    pub client: CosmosClient,
    pub database: DatabaseClient,
    pub database_id: String,
    pub clock: Clock,
}

impl World {
    /// Connects and creates the tour's database.
    pub async fn open(endpoint: &str, key: &str) -> Outcome<Self> {
        let client = connect(endpoint, key).await?;
        let database_id = unique("tour");
        client.create_database(&database_id, None).await?;
        Ok(Self {
            endpoint: endpoint.to_owned(),
            database: client.database_client(&database_id),
            client,
            database_id,
            clock: Clock::new(endpoint, key),
        })
    }

    pub async fn close(&self) -> Outcome {
        self.database.delete(None).await?;
        Ok(())
    }

    /// Creates a container of one range, keyed by `/pk`, without a default TTL.
    pub async fn container(&self, label: &str) -> Outcome<ContainerClient> {
        self.create(properties(label), None).await
    }

    /// Creates a container of five ranges.
    pub async fn wide_container(&self, label: &str) -> Outcome<ContainerClient> {
        self.create(properties(label), Some(ThroughputProperties::manual(FIVE_RANGES)))
            .await
    }

    /// Creates a container with these properties and, if given, this throughput.
    pub async fn create(
        &self,
        properties: ContainerProperties,
        throughput: Option<ThroughputProperties>,
    ) -> Outcome<ContainerClient> {
        let id = properties.id.to_string();
        let options = throughput.map(|throughput| CreateContainerOptions::default().with_throughput(throughput));
        self.database.create_container(properties, options).await?;
        Ok(self.database.container_client(id, None).await?)
    }
}

/// Returns a client with the SDK's defaults.
pub async fn connect(endpoint: &str, key: &str) -> Outcome<CosmosClient> {
    let account = AccountReference::with_authentication_key(endpoint.parse()?, key.to_owned());
    Ok(CosmosClient::builder()
        .build(account, RoutingStrategy::PreferredRegions(Vec::new()))
        .await?)
}

/// Returns the properties of a new container with a unique id, keyed by `/pk`.
pub fn properties(label: &str) -> ContainerProperties {
    keyed(label, "/pk".into())
}

/// Returns the properties of a new container with a unique id and this partition key.
pub fn keyed(label: &str, key: PartitionKeyDefinition) -> ContainerProperties {
    ContainerProperties::new(unique(label), key)
}

/// Returns an id that no other check and no other run uses.
pub fn unique(label: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{label}-rust-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Creates an item and returns it as the server stored it; the partition key is the body's string at `pk`.
pub async fn add(container: &ContainerClient, body: Value) -> Outcome<Value> {
    let key = body["pk"].as_str().unwrap_or_default().to_owned();
    let id = body["id"].as_str().unwrap_or_default().to_owned();
    let answer = container.create_item(key, &id, body, Some(with_content())).await?;
    Ok(answer.into_model()?)
}

/// Write options that request the stored item in the response, which the SDK leaves out by default.
pub fn with_content() -> ItemWriteOptions {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    ItemWriteOptions::default().with_operation_options(operation)
}

/// Returns an item as the server stores it.
pub async fn read(container: &ContainerClient, key: impl Into<PartitionKey>, id: &str) -> Outcome<Value> {
    Ok(container.read_item(key, id, None).await?.into_model()?)
}

/// Returns every row of a query.
pub async fn query(container: &ContainerClient, query: impl Into<Query>, scope: FeedScope) -> Outcome<Vec<Value>> {
    Ok(container
        .query_items::<Value>(query, scope, None)
        .await?
        .try_collect()
        .await?)
}

/// Sorts rows of any shape, to compare results without an order.
pub fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(Value::to_string);
    rows
}
