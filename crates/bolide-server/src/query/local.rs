//! A query against a data directory, by the core and without a server. Nothing is purged meanwhile.

use std::path::Path;
use std::sync::Arc;

use bolide_core::{Account, AccountOptions, Container, QueryItems, ScanScope};
use bolide_model::partition_key::PartitionKey;
use bolide_model::time::Clock;
use bolide_model::{Error, ErrorKind};
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use tokio::runtime::Runtime;

use super::{Page, QueryOptions, Source, sentence};
use crate::files;
use crate::script_host;
use crate::server::Failure;

pub struct Local {
    runtime: Runtime,
    account: Arc<Account>,
}

impl Local {
    /// Opens the store in a directory; recovery after a crash is part of that.
    pub fn open(directory: &Path) -> Result<Local, Failure> {
        let is_empty = std::fs::read_dir(directory)
            .map(|mut entries| entries.next().is_none())
            .map_err(|error| Failure::new(format!("--data-dir: {}: {error}", directory.display())))?;
        if is_empty {
            return Err(Failure::new(format!(
                "--data-dir: {}: there is no store",
                directory.display()
            )));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
        runtime.block_on(async { files::survive_size_limit() })?;
        let clock = Arc::new(Clock::System);
        let engine = LsmEngine::open(directory, clock, LsmOptions::default())
            .map_err(|error| Failure::new(format!("--data-dir: {error}")))?;
        let options = AccountOptions {
            background_purge: false,
            script_hosting: script_host::hosting()?,
            ..AccountOptions::default()
        };
        let account = runtime.block_on(Account::open(Arc::new(engine), options));
        let account = account.map_err(|error| Failure::new(format!("--data-dir: {error}")))?;
        Ok(Local { runtime, account })
    }

    fn container(&self, options: &QueryOptions) -> Result<Arc<Container>, Failure> {
        let database = self.account.database_by_name(&options.database);
        let database = database.map_err(|_| Failure::new(format!("no such database. id=`{}`", options.database)))?;
        let container = self.account.container_by_name(database.rid, &options.container);
        container.map_err(|_| Failure::new(format!("no such container. id=`{}`", options.container)))
    }
}

fn failure(error: &Error) -> Failure {
    let words = match &error.kind {
        ErrorKind::QuerySyntax { body } => sentence(body),
        _ => None,
    };
    Failure::new(words.unwrap_or_else(|| error.message.clone()))
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
        let page = self.runtime.block_on(async {
            let ctx = self.account.begin().await?;
            let answer = self.account.query(&ctx, &container, &query).await;
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
            .account
            .explain_query(&container, &options.text, &options.parameters);
        let plan = self.runtime.block_on(plan);
        plan.map_err(|error| failure(&error))
    }

    fn close(&mut self) -> Result<(), Failure> {
        let closed = self.runtime.block_on(self.account.close());
        closed.map_err(|error| Failure::new(format!("cannot close the store: {error}")))
    }
}
