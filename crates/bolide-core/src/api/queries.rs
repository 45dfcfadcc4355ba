//! Queries and their plans.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::partition_key::PartitionKey;
use bytes::Bytes;
use serde_json::Value;

use super::Account;
use crate::container::Container;
use crate::query::{QueryItems, QueryPage};
use crate::response::ChargedResult;
use crate::runtime::RequestContext;

impl Account {
    /// Runs one page of a query.
    ///
    /// # Errors
    /// - `QuerySyntax`: the text is no query; the body says where.
    /// - `BadRequest`: it would read several logical partitions, and the caller has not said that it may; or a continuation that is not one.
    /// - `CrossPartitionQuery`: it is left to the client to merge the results of the ranges; the plan says how.
    /// - `RangeGone`: the range asked for was split.
    pub async fn query(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        query: &QueryItems,
    ) -> ChargedResult<QueryPage> {
        self.queries().query(ctx, container, query).await
    }

    /// The plan by which a client merges the results of several ranges, as the service writes it (cosmos-rest §6.4).
    ///
    /// `features` is what the client says it can merge, as its header has it. A partition key narrows the ranges to its own.
    ///
    /// # Errors
    /// `QuerySyntax`: the text is no query, or it needs what the client does not have.
    pub async fn query_plan(
        &self,
        container: &Container,
        text: &str,
        values: &[(String, Value)],
        features: &str,
        partition_key: Option<&PartitionKey>,
    ) -> Result<String> {
        self.queries()
            .query_plan(container, text, values, features, partition_key)
            .await
    }

    /// What a query would do, in words: a step per line.
    ///
    /// # Errors
    /// `QuerySyntax`: the text is no query.
    pub async fn explain_query(&self, container: &Container, text: &str, values: &[(String, Value)]) -> Result<String> {
        self.queries().explain_query(container, text, values).await
    }

    /// Runs a query over a list of resources, each as JSON text, and returns all rows.
    ///
    /// # Errors
    /// `QuerySyntax`: the text is no query.
    pub async fn query_documents(
        &self,
        ctx: &RequestContext,
        text: &str,
        values: &[(String, Value)],
        documents: Vec<Bytes>,
    ) -> Result<Vec<Bytes>> {
        self.queries().query_documents(ctx, text, values, documents).await
    }
}
