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
    /// - `QuerySyntax`: the text is not a valid query; the body says where.
    /// - `BadRequest`: the query would read several logical partitions, which the caller has not allowed; or the continuation is invalid.
    /// - `CrossPartitionQuery`: the client has to merge the results of the ranges; the plan says how.
    /// - `RangeGone`: the requested range was split.
    pub async fn query(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        query: &QueryItems,
    ) -> ChargedResult<QueryPage> {
        if query.text.contains("udf") {
            // A function may have been made through another server.
            self.refresh_if_shared().await?;
        }
        let query = |()| Box::pin(async move { self.queries().query(ctx, container, query).await });
        self.by_current_settings(container, (), query).await
    }

    /// Returns the plan by which a client merges the results of several ranges, as the service writes it (cosmos-rest §6.4).
    ///
    /// `features` lists what the client can merge, in the form of its header. A partition key narrows the ranges to its own.
    ///
    /// # Errors
    /// `QuerySyntax`: the text is not a valid query, or it needs a feature that the client does not have.
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

    /// Returns what a query would do, in words: one step per line.
    ///
    /// # Errors
    /// `QuerySyntax`: the text is not a valid query.
    pub async fn explain_query(&self, container: &Container, text: &str, values: &[(String, Value)]) -> Result<String> {
        let explain = |()| Box::pin(async move { self.queries().explain_query(container, text, values).await });
        self.by_current_settings(container, (), explain).await
    }

    /// Runs a query over a list of resources, each as JSON text, and returns all rows.
    ///
    /// # Errors
    /// `QuerySyntax`: the text is not a valid query.
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
