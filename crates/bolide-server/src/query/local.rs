//! A query on a data directory, run by the core without a server.

use std::path::Path;
use std::sync::Arc;

use bolide_core::{Container, QueryItems, ScanScope};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, ErrorKind};

use super::{Page, QueryOptions, Source};
use crate::admin_client::sentence;
use crate::local_store::LocalStore;
use crate::server::Failure;

pub struct Local(LocalStore);

impl Local {
    /// Opens the store in a directory.
    ///
    /// # Errors
    /// As [`LocalStore::open`].
    pub fn open(directory: &Path) -> Result<Local, Failure> {
        LocalStore::open(directory).map(Local)
    }

    fn container(&self, options: &QueryOptions) -> Result<Arc<Container>, Failure> {
        let database = self.0.account.database_by_name(&options.target.database);
        let database =
            database.map_err(|_| Failure::new(format!("no such database. id=`{}`", options.target.database)))?;
        let container = self
            .0
            .account
            .container_by_name(database.rid, &options.target.container);
        container.map_err(|_| Failure::new(format!("no such container. id=`{}`", options.target.container)))
    }
}

fn failure(error: &Error) -> Failure {
    let words = match &error.kind {
        ErrorKind::QuerySyntax { body } => sentence(body),
        _ => None,
    };
    Failure::new(words.unwrap_or_else(|| error.to_string()))
}

impl Source for Local {
    fn page(&mut self, options: &QueryOptions, continuation: Option<String>) -> Result<Page, Failure> {
        let container = self.container(options)?;
        let partition_key = options
            .partition_key
            .as_ref()
            .map(|key| PartitionKey::from_header(&key.to_string()));
        let partition_key = partition_key.transpose().map_err(|error| failure(&error))?;
        let query = QueryItems {
            text: options.text.clone(),
            parameters: Arc::new(options.parameters.clone()),
            scope: ScanScope {
                partition_key: partition_key.and_then(|key| container.properties().partition_key.meant_by(key)),
                ..ScanScope::default()
            },
            cross_partition: true,
            continuation,
            merges_ranges: true,
            reports_usage: false,
            ..QueryItems::default()
        };
        let page = self.0.runtime.block_on(async {
            let ctx = self.0.account.begin().await?;
            let answer = self.0.account.query(&ctx, &container, &query).await;
            answer.map(|answer| answer.value).map_err(|refusal| refusal.error)
        });
        let page = page.map_err(|error| failure(&error))?;
        let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat())
            .map_err(|error| Failure::new(format!("rows are no JSON: {error}")))?;
        Ok(Page {
            rows,
            continuation: page.continuation,
        })
    }

    fn explain(&mut self, options: &QueryOptions) -> Result<String, Failure> {
        let container = self.container(options)?;
        let plan = self
            .0
            .account
            .explain_query(&container, &options.text, &options.parameters);
        let plan = self.0.runtime.block_on(plan);
        plan.map_err(|error| failure(&error))
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.0.close()
    }
}
