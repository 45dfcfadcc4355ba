//! Queries over the live items of a container, and over lists of resources.
//!
//! ```text
//!   text ─▶ compile against the container's definition ─▶ which part of the container? ─▶ one range, or no merge needed?
//!        ─▶ scan of live items ─▶ execution (bolide-query) ─▶ rows, and a continuation
//! ```
//!
//! Every page is a request of its own, whose items are live or expired as of the time of that request (TTL-247). A continuation holds the position
//! in the scan and the execution's own state about what it has returned; neither depends on the process.

mod access;
mod advice;
mod ahead;
mod best_texts;
mod brief;
mod candidates;
mod composite;
mod counting;
mod covered;
mod covered_rows;
mod covered_runs;
mod kept_texts;
mod metrics;
mod nearest;
mod ordered;
mod page;
mod page_done;
mod parallel;
mod ranked;
mod request;
mod route;
mod text_candidates;
mod text_lists;
mod text_statistics;
mod texts_in_order;
mod usage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::ItemRid;
use bolide_model::{Error, ErrorKind, Reason, Result, UnixMillis};
use bolide_query::{
    Environment, KeyRanges, PageLimit, Parameters, Query, QueryError, ResumeFilter, Schema, SupportedFeatures, Udfs,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;

use crate::container::{Container, ContainerState};
use crate::continuation::query::Owner;
use crate::executor::Watch;
use crate::items::Admission;
use crate::response::{ChargedResult, Cost, Response};
use crate::runtime::{IndexUse, RequestContext, Runtime};
use crate::scan::Slice;
use crate::scripts::{QueryFunctions, ScriptPermits};
use crate::sql::{QueryMemory, parameters, query_error, random_seed, schema_of};
use advice::PageAdvice;
pub(crate) use ahead::AheadCache;
use candidates::{IndexReader, Part};
pub use metrics::QueryMetrics;
use page::{PageRun, page_limit};
use page_done::PageDone;
use parallel::ScanThreads;
pub use request::{QueryItems, QueryPage};
pub use usage::QueryUsage;

/// Runs queries.
#[derive(Clone, Copy)]
pub(crate) struct Queries<'a> {
    pub runtime: &'a Runtime,
    /// Where user-defined functions run.
    pub permits: &'a Arc<ScriptPermits>,
    pub ahead: &'a Arc<AheadCache>,
    /// Wakes what builds the indexes of which queries would profit.
    pub index_signal: &'a Arc<Notify>,
}

impl Queries<'_> {
    /// See `Account::query`.
    pub(crate) async fn query(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        query: &QueryItems,
    ) -> ChargedResult<QueryPage> {
        let functions =
            QueryFunctions::for_query(self.runtime.monotonic(), self.permits, container, &query.text, ctx.now);
        let index_use = query.index_use.unwrap_or(self.runtime.options().index_use);
        let guard = container.enter_interruptible().await?;
        let job = QueryJob {
            container: container.clone(),
            state: guard.state.clone(),
            query: query.clone(),
            admission: Admission::of(self.runtime, ctx),
            now: ctx.now,
            udfs: functions.udfs(),
            state_bytes: self.runtime.query_state_bytes(),
            page_time: self.runtime.query_page_time(),
            memory: QueryMemory::of(self.runtime.memory()),
            ahead: self.ahead.clone(),
            index_signal: self.index_signal.clone(),
            index_use,
            threads: ScanThreads {
                executor: self.runtime.executor().clone(),
                limit: self.runtime.query_time(),
                is_forced: index_use == IndexUse::ParallelScan,
            },
        };
        // An engine that others share answers over a network: what was begun here would be dropped, and sent again.
        let is_near = !self.runtime.engine().is_shared();
        let may_be_brief = is_near && job.udfs.is_none() && brief::may_be(query);
        let here = may_be_brief.then(|| {
            self.runtime
                .executor()
                .run_here(container.ending(), |watch| job.run(watch))
        });
        let done = match here.flatten() {
            Some(done) => done,
            None => {
                let work = async move |watch| job.run(watch).await;
                self.runtime.execute_until(container.ending(), work).await
            }
        };
        let (page, cost) = functions.or_failure(done)?;
        self.runtime.charge_touched(ctx, &guard, &cost);
        Ok(Response { value: page, cost })
    }

    /// See `Account::query_plan`.
    pub(crate) async fn query_plan(
        &self,
        container: &Container,
        text: &str,
        values: &[(String, Value)],
        features: &str,
        partition_key: Option<&PartitionKey>,
    ) -> Result<String> {
        let properties = container.properties();
        let ranges = container.state().layout.partitions.len();
        let (is_collection, is_unsharded) = (container.collection().is_some(), container.state().is_unsharded());
        // Whether an index serves the query is decided when it runs; the planner does not need it.
        let schema = Arc::new(Schema {
            indexing: None,
            ..schema_of(&properties)
        });
        let (text, parameters, features) = (text.to_owned(), parameters(values), features.to_owned());
        let partition_key = partition_key.cloned();
        let memory = QueryMemory::of(self.runtime.memory());
        let work = async move |watch| {
            let query = compile(&text, &parameters, &schema, &watch, &memory)?;
            let features = SupportedFeatures::parse(&features);
            let plan = query.plan(&features).map_err(query_error)?;
            if ranges > 1 && partition_key.is_none() && !plan.ranges.is_single_key() {
                query.check_merge(&features).map_err(query_error)?;
            }
            if ranges > 1 && partition_key.is_none() && !query.reads_items() {
                return Ok(plan.to_json(&[route::anywhere()]).to_string());
            }
            let definition = &properties.partition_key;
            // The documents of an unsharded collection are in one place, whatever the key. Those of a sharded one are placed by values that JSON may show
            // as others, so a filter does not tell where they are.
            let key = partition_key.as_ref().filter(|_| !is_unsharded);
            let ranges = match is_collection {
                true => &KeyRanges::All,
                false => &plan.ranges,
            };
            let ranges = route::plan_ranges(ranges, definition, key, &memory)?;
            Ok(plan.to_json(&ranges).to_string())
        };
        self.runtime.executor().run(self.runtime.query_time(), work).await
    }

    /// See `Account::explain_query`.
    pub(crate) async fn explain_query(
        &self,
        container: &Container,
        text: &str,
        values: &[(String, Value)],
    ) -> Result<String> {
        let schema = container.schema(&container.properties());
        let indexes = container.state().indexes.clone();
        let (text, parameters) = (text.to_owned(), parameters(values));
        let memory = QueryMemory::of(self.runtime.memory());
        let work = async move |watch| {
            let query = compile(&text, &parameters, &schema, &watch, &memory)?;
            let explained = query.explain().map_err(query_error)?;
            Ok(explained + &candidates::explain(&query, &indexes))
        };
        self.runtime.executor().run(self.runtime.query_time(), work).await
    }

    /// See `Account::query_documents`.
    pub(crate) async fn query_documents(
        &self,
        ctx: &RequestContext,
        text: &str,
        values: &[(String, Value)],
        documents: Vec<Bytes>,
    ) -> Result<Vec<Bytes>> {
        let (text, parameters, now) = (text.to_owned(), parameters(values), ctx.now);
        let memory = QueryMemory::of(self.runtime.memory());
        let state_bytes = self.runtime.query_state_bytes();
        let work = async move |watch: Arc<Watch>| {
            let query = compile(&text, &parameters, &Arc::new(Schema::metadata()), &watch, &memory)?;
            let environment = Environment {
                now_ms: now.0,
                random_seed: random_seed(),
                state_bytes,
                interrupts: Some(watch.interrupts()),
                memory: Some(memory),
                ..Environment::default()
            };
            rows_of(&query, environment, &documents).map_err(query_error)
        };
        self.runtime.executor().run(self.runtime.query_time(), work).await
    }
}

/// A page of a query, independent of the account: runs on a thread for queries.
struct QueryJob {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    query: QueryItems,
    admission: Admission,
    now: UnixMillis,
    udfs: Option<Arc<dyn Udfs>>,
    state_bytes: usize,
    page_time: Duration,
    memory: Arc<QueryMemory>,
    ahead: Arc<AheadCache>,
    index_signal: Arc<Notify>,
    index_use: IndexUse,
    threads: ScanThreads,
}

impl QueryJob {
    async fn run(&self, watch: Arc<Watch>) -> Result<(QueryPage, Cost)> {
        let QueryJob {
            container,
            state,
            query,
            ..
        } = self;
        let clock = watch.clock().clone();
        let started = clock.now();
        let schema = container.schema(&state.properties);
        let compiled = compile(
            &query.text,
            &parameters(&query.parameters),
            &schema,
            &watch,
            &self.memory,
        )?;
        let compile_ms = milliseconds(clock.since(started));

        let route = route::route(&compiled, query, state, &self.memory)?;
        self.check_merge(&compiled, &route)?;
        let filter = resume_filter(query.resume_filter.as_ref(), container)?;
        self.admit(&route.slices)?;
        let part = self.part(&route);
        let indexes = self.indexes(&compiled, &route.slices, watch.clone(), part);
        let access = indexes.access().await?;
        let used = access.index();
        if !access.is_brief(&indexes) {
            watch.give_up_if_brief()?;
        }
        let run = PageRun {
            container,
            state,
            query: &compiled,
            slices: &route.slices,
            indexes,
            filter,
            ahead: (!access.is_ordered() && self.keeps_ahead(&compiled)).then(|| self.ahead.of(container, query)),
            access,
            environment: self.environment(&watch),
            memory: self.memory.budget(),
            watch,
            threads: self.threads.clone(),
            ends_with_empty_page: route.ends_with_empty_page,
            until: started + self.page_time,
            limit: page_limit(query.max_items),
        };
        let owner = Owner::of(container.rid(), compiled.identity(), query.scope.interval(state)?);
        let done = run.run(self.now, &owner, query.continuation.as_deref()).await?;
        check_continuation(query, done.continuation.as_deref())?;
        self.advise(&compiled, (part, used), &done.metrics, clock.now());
        let metrics = QueryMetrics {
            compile_ms,
            run_ms: milliseconds(clock.since(started)) - compile_ms,
            ..done.metrics
        };
        Ok(self.page(&compiled, (route.key_components, used), done, metrics))
    }

    /// Admits the query to the ranges that it reads, or to the first if it reads none.
    fn admit(&self, slices: &[Slice]) -> Result<()> {
        self.admission.admit_all(slices, &self.state)?;
        match self.state.layout.partitions.first() {
            Some(first) if slices.is_empty() => self.admission.admit(first, &self.state),
            _ => Ok(()),
        }
    }

    fn advise(&self, query: &Query, (part, used): (Part, Option<u32>), metrics: &QueryMetrics, now: Instant) {
        let advice = PageAdvice {
            part,
            used,
            metrics,
            now,
        };
        if advice.record(&self.container, &self.state, query) || self.compares_vectors(query, used) {
            self.index_signal.notify_one();
        }
    }

    /// Whether a query has compared all vectors because there is no index: the container may have enough items for one by now.
    fn compares_vectors(&self, query: &Query, used: Option<u32>) -> bool {
        let indexes = &self.state.indexes;
        let lacks_index = |nearest| indexes.usable_for_nearest(&nearest).is_none();
        used.is_none() && query.nearest().is_some_and(lacks_index)
    }

    fn part(&self, route: &route::Route) -> Part {
        match route.key_components {
            _ if self.query.scope.epk.is_some() => Part::Other,
            0 => Part::Ranges,
            _ => Part::Key,
        }
    }

    /// Returns what indexes can do for the query.
    fn indexes<'a>(&'a self, query: &'a Query, slices: &'a [Slice], watch: Arc<Watch>, part: Part) -> IndexReader<'a> {
        let how = (self.index_use, self.memory.budget());
        let key = self.query.scope.partition_key.as_ref();
        IndexReader::of(query, (&self.state, slices), how, watch, (part, key))
    }

    /// Returns whether rows that follow a page are kept. Most queries end with their first page, so the first page keeps none. Kept rows are judged by
    /// their stamps, so that none are kept where dates can end a document. A test that demands how indexes are used wants to see that.
    fn keeps_ahead(&self, compiled: &Query) -> bool {
        self.query.index_use.is_none()
            && self.query.continuation.is_some()
            && self.state.settings.dates.is_empty()
            && compiled.keeps_ahead()
    }

    /// Refuses a query whose ranges the client has to merge.
    fn check_merge(&self, compiled: &Query, route: &route::Route) -> Result<()> {
        // A continuation without a range was given when no merge was needed. After a split, the server merges.
        let is_merged_here = self.query.merges_ranges || self.query.continuation.is_some();
        if is_merged_here || !route.needs_merge(compiled) {
            return Ok(());
        }
        let refusal = needs_client_merge(compiled, &self.state.properties, &self.memory);
        // A single range can answer queries that no client could merge.
        if !route.is_in_one_range() || matches!(refusal.kind, ErrorKind::CrossPartitionQuery) {
            return Err(refusal);
        }
        Ok(())
    }

    fn environment(&self, watch: &Arc<Watch>) -> Environment {
        let udfs = self.udfs.clone();
        Environment {
            now_ms: self.now.0,
            random_seed: random_seed(),
            udfs: udfs.map(|udfs| Arc::new(Aside(udfs, watch.clone())) as Arc<dyn Udfs>),
            state_bytes: self.state_bytes,
            memory: Some(self.memory.clone()),
            ..Environment::default()
        }
    }

    fn path_of(&self, index: u32) -> Option<String> {
        let mut indexes = self.state.indexes.list.iter();
        Some(indexes.find(|known| known.id == index)?.kind.to_string())
    }

    /// Returns the page of a finished run, and its cost.
    fn page(
        &self,
        compiled: &Query,
        (key_components, used): (usize, Option<u32>),
        done: PageDone,
        metrics: QueryMetrics,
    ) -> (QueryPage, Cost) {
        // The charge covers scanning the items even if their content was not read.
        let metrics = if compiled.reads_content() {
            metrics
        } else {
            metrics.without_documents()
        };
        let page = QueryPage {
            count: done.count,
            memory: self.memory.of_rows(done.rows.len()),
            rows: done.rows,
            continuation: done.continuation,
            metrics,
            key_components,
            index: used.and_then(|id| self.path_of(id)),
            usage: (self.query.reports_usage)
                .then(|| usage::of(compiled.usage(), &self.state.properties.indexing_policy)),
        };
        (page, Cost::over(done.charge, done.touched))
    }
}

/// User-defined functions, which run on another thread: other tasks use the processor meanwhile.
struct Aside(Arc<dyn Udfs>, Arc<Watch>);

impl Udfs for Aside {
    fn call(&self, name: &str, arguments: &[String]) -> Result<Option<String>, String> {
        self.1.aside(|| self.0.call(name, arguments))
    }
}

/// Compiles a query, unless compiling its text takes too much work or memory.
fn compile(
    text: &str,
    parameters: &Parameters,
    schema: &Arc<Schema>,
    watch: &Arc<Watch>,
    memory: &Arc<QueryMemory>,
) -> Result<Query> {
    let environment = Environment {
        interrupts: Some(watch.interrupts()),
        memory: Some(memory.clone()),
        ..Environment::default()
    };
    Query::compile_in(text, parameters, schema, environment).map_err(query_error)
}

/// Returns the refusal that makes a client plan and merge by itself. A query that no client could merge has no plan.
fn needs_client_merge(
    query: &Query,
    properties: &bolide_model::container::ContainerProperties,
    memory: &QueryMemory,
) -> Error {
    let all = SupportedFeatures::all();
    let plan = match query.check_merge(&all).and_then(|()| query.plan(&all)) {
        Ok(plan) => plan,
        Err(error) => return query_error(error),
    };
    let ranges = match route::plan_ranges(&plan.ranges, &properties.partition_key, None, memory) {
        Ok(ranges) => ranges,
        Err(error) => return error,
    };
    let plan = plan.to_json(&ranges).to_string();
    Reason::ClientMergeNeeded { plan }.into()
}

/// Returns all rows of a query over documents.
fn rows_of(query: &Query, environment: Environment, documents: &[Bytes]) -> Result<Vec<Bytes>, QueryError> {
    let mut execution = query.execution(environment, PageLimit::NONE, None)?;
    if query.reads_items() {
        for (number, document) in (0..).zip(documents) {
            execution.push(document, number)?;
        }
    }
    let finished = execution.finish(true)?;
    Ok(finished.rows.iter().map(Bytes::copy_from_slice).collect())
}

fn resume_filter(filter: Option<&Value>, container: &Container) -> Result<Option<Arc<ResumeFilter>>> {
    let Some(filter) = filter else { return Ok(None) };
    let item_number = |rid: &str| {
        let rid = ItemRid::parse(rid).filter(|rid| rid.container == container.rid());
        rid.map(|rid| rid.number)
    };
    ResumeFilter::from_json(filter, item_number)
        .map(|filter| Some(Arc::new(filter)))
        .map_err(query_error)
}

fn check_continuation(query: &QueryItems, continuation: Option<&str>) -> Result<()> {
    let (Some(limit_kb), Some(continuation)) = (query.continuation_limit_kb, continuation) else {
        return Ok(());
    };
    if continuation.len() > limit_kb as usize * 1024 {
        let bytes = continuation.len();
        return Err(Reason::ContinuationTooLong { bytes, limit_kb }.into());
    }
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
