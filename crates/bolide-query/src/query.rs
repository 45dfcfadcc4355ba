//! A compiled query, as used by the core and the front ends.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::bind::{Bound, bind, columns_bytes};
use crate::error::{QueryError, Result};
use crate::execution::{
    Execution, ItemFilter, PageLimit, Resume, ResumeFilter, has_blocking_subquery, replays, rescans,
};
use crate::index::{
    self, CompositeIndex, CompositeOrder, IndexCondition, IndexOrder, IndexPath, NearestQuery, SpatialCondition,
    SpatialIndex, TextAggregate, TextCondition, TextRanking,
};
use crate::memory::{Memory, MemorySource};
use crate::parameters::Parameters;
use crate::plan::{self, Info, KeyRanges, Plan, SupportedFeatures};
use crate::program::{Ordering, Select};
use crate::schema::Schema;
use crate::session::{Environment, Session};
use crate::text::{self, ast};
use crate::usage::Usage;

/// A query, compiled against the schema of a container. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Query {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ast: Arc<ast::Query>,
    bound: Bound,
    parameters: Parameters,
    schema: Arc<Schema>,
    identity: [u8; 32],
    memory: QueryMemory,
}

/// The memory of a compiled query.
struct QueryMemory {
    /// The size of the syntax tree.
    tree_bytes: usize,
    limit_bytes: usize,
    /// Returns the memory when the query is dropped.
    source: Option<Arc<dyn MemorySource>>,
}

impl fmt::Debug for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryMemory")
            .field("tree_bytes", &self.tree_bytes)
            .finish_non_exhaustive()
    }
}

impl QueryMemory {
    /// Memory for what is made in addition to the query.
    fn more(&self) -> Memory {
        Memory::new(self.limit_bytes, self.source.clone())
    }
}

/// Maximum size of a plan, as a multiple of the tree: rewritten copies of its parts, and those as text and as JSON.
const PLAN_FACTOR: usize = 2;

impl Query {
    /// Compiles a text.
    ///
    /// # Errors
    /// The first rule of the language that the text breaks, with the service's code, message and location (cosmos-sql §20).
    pub fn compile(text: &str, parameters: &Parameters, schema: &Schema) -> Result<Query> {
        Query::compile_in(text, parameters, &Arc::new(schema.clone()), Environment::default())
    }

    /// As [`Query::compile`]; of the environment only the limits of work and memory are used. The memory is memory as long as the query.
    ///
    /// # Errors
    /// As [`Query::compile`]; [`QueryError::Interrupted`]; [`QueryError::TooLarge`], [`QueryError::OutOfMemory`].
    pub fn compile_in(
        text: &str,
        parameters: &Parameters,
        schema: &Arc<Schema>,
        environment: Environment,
    ) -> Result<Query> {
        let (limit_bytes, source) = (environment.state_bytes, environment.memory.clone());
        let session = Session::new(environment, schema.geometry);
        let memory = &session.memory;
        memory.take(parameters.bytes())?;
        let (ast, tree_bytes) = text::parse_or_recall(text, memory).map_err(|error| error.relocated(text))?;
        let bound = bind(&ast, parameters, schema, &session).map_err(|error| error.relocated(text))?;
        let identity = identity(text, &ast, &bound, parameters);
        let inner = Inner {
            ast,
            bound,
            parameters: parameters.clone(),
            schema: schema.clone(),
            identity,
            memory: QueryMemory {
                tree_bytes,
                limit_bytes,
                source,
            },
        };
        Ok(Query { inner: Arc::new(inner) })
    }

    /// Whether the query reads items; `SELECT 1` does not and needs no scan: finish an execution at once.
    pub fn reads_items(&self) -> bool {
        self.inner.bound.select.reads_items()
    }

    /// Whether it aggregates all items into one object, without VALUE and GROUP BY.
    pub fn aggregates_into_object(&self) -> bool {
        let ast = &self.inner.ast;
        let is_list = matches!(ast.selection, ast::Selection::List(_));
        self.inner.bound.select.grouping.is_some() && ast.group_by.is_empty() && is_list
    }

    /// Whether rows are made of several items: groups and aggregates.
    pub fn aggregates(&self) -> bool {
        self.inner.bound.select.grouping.is_some()
    }

    /// Whether the content of items is read; a count of all items does not need it.
    pub fn reads_content(&self) -> bool {
        self.inner.bound.select.reads_content()
    }

    /// Whether [`Execution::keep_following_rows`] is useful: the query sorts by keys and gives the same rows for the same items. It has no user-defined
    /// functions, does not depend on the time or random numbers, and has no DISTINCT.
    pub fn keeps_ahead(&self) -> bool {
        let bound = &self.inner.bound;
        bound.is_repeatable && !bound.select.distinct && sorts_rows(&bound.select)
    }

    /// The indexes that it would use, and advice on a better way to write it.
    pub fn usage(&self) -> Usage {
        Usage::of(&self.inner.ast)
    }

    /// Whether every page must read all items from the start; see the crate's page rules.
    pub fn rescans(&self) -> bool {
        rescans(&self.inner.bound.select)
    }

    /// Whether a page that reads all items from the start must pass those before the position of the previous page to [`Execution::replay`]; see the
    /// crate's page rules.
    pub fn replays(&self) -> bool {
        replays(&self.inner.bound.select)
    }

    /// What a continuation of the query is bound to. If the continuation is a position in the order of rows, this is the ORDER BY list: clients that
    /// resume over several ranges rewrite the filter (cosmos-rest §6.1). Otherwise it is the text with its parameters.
    pub fn identity(&self) -> &[u8] {
        &self.inner.identity
    }

    /// Starts a page. `resume` is from the previous page.
    ///
    /// # Errors
    /// [`QueryError::BadContinuation`] if `resume` does not belong to this query.
    pub fn execution(&self, environment: Environment, page: PageLimit, resume: Option<&str>) -> Result<Execution> {
        self.filtered_execution(environment, page, resume, None)
    }

    /// As [`Query::execution`]; `filter` is the client's position from which the rows begin.
    ///
    /// # Errors
    /// As [`Query::execution`]; [`QueryError::Refused`] if `filter` does not match the query.
    pub fn filtered_execution(
        &self,
        environment: Environment,
        page: PageLimit,
        resume: Option<&str>,
        filter: Option<Arc<ResumeFilter>>,
    ) -> Result<Execution> {
        let Inner {
            bound,
            schema,
            identity,
            ..
        } = &*self.inner;
        let fingerprint = u32::from_be_bytes([identity[0], identity[1], identity[2], identity[3]]);
        let resume = resume
            .map(|text| Resume::parse(text, fingerprint))
            .transpose()?
            .unwrap_or_default();
        let keys = match &bound.select.ordering {
            Ordering::Keys(keys) => keys.len(),
            Ordering::None | Ordering::Rank(_) => 0,
        };
        if !resume.fits(keys) {
            return Err(QueryError::BadContinuation("it does not fit the query".to_owned()));
        }
        if let Some(filter) = &filter {
            filter.check(if sorts_rows(&bound.select) { keys } else { 0 })?;
        }
        let session = Session::new(environment, schema.geometry);
        Ok(Execution::new(
            bound.clone(),
            session,
            page,
            resume,
            filter,
            fingerprint,
        ))
    }

    /// The filter for threads that read items ahead of an execution with the same environment; `None` if the execution must see every item. Of the interrupts,
    /// only those of that thread may be used.
    pub fn item_filter(&self, environment: Environment) -> Option<ItemFilter> {
        let Inner { bound, schema, .. } = &*self.inner;
        ItemFilter::of(bound, Session::new(environment, schema.geometry))
    }

    /// What a client needs to know of the query to merge the results of several ranges.
    pub fn info(&self) -> Info {
        plan::info(&self.inner.ast, &self.inner.parameters)
    }

    /// The response to a query plan request.
    ///
    /// # Errors
    /// Queries that only the planner refuses: compositions of aggregates, a feature that the client does not support. [`QueryError::TooLarge`],
    /// [`QueryError::OutOfMemory`].
    pub fn plan(&self, features: &SupportedFeatures) -> Result<Plan> {
        let Inner {
            ast,
            parameters,
            schema,
            memory: query_memory,
            ..
        } = &*self.inner;
        let memory = query_memory.more();
        memory.take(PLAN_FACTOR * (query_memory.tree_bytes + columns_bytes(&ast.selection, parameters)))?;
        plan::plan(ast, parameters, schema, self.partition_key_ranges()?, features, &memory)
    }

    /// Refuses queries that a client with these features would merge wrongly over several ranges.
    ///
    /// # Errors
    /// 400 with the missing feature, or with the part that cannot be merged.
    pub fn check_merge(&self, features: &SupportedFeatures) -> Result<()> {
        let Inner { ast, bound, .. } = &*self.inner;
        let is_aggregate = bound
            .select
            .grouping
            .as_ref()
            .is_some_and(|grouping| !grouping.explicit);
        if is_aggregate && has_blocking_subquery(&bound.select) {
            return plan::check_merge_of_subquery(ast, features);
        }
        Ok(())
    }

    /// Whether results of several ranges must be merged rather than concatenated (400/1004).
    pub fn needs_merge(&self) -> bool {
        let select = &self.inner.bound.select;
        self.reads_items() && (rescans(select) || select.take.is_some() || select.skip > 0)
    }

    /// The partition keys that can have results, from WHERE (cosmos-sql §22.3).
    ///
    /// # Errors
    /// [`QueryError::TooLarge`] if there are too many; [`QueryError::OutOfMemory`].
    pub fn partition_key_ranges(&self) -> Result<KeyRanges> {
        plan::key_ranges(&self.inner.bound, &self.inner.schema, &self.inner.memory.more())
    }

    /// What the filter requires of the values at paths of the items, one condition for each path or element of an array.
    ///
    /// Each condition alone holds for every item that has a row. An item that it leaves out is not evaluated, so that neither an error of the filter
    /// nor a call of a user-defined function comes from it. Empty if the query does not read the container's items directly, or ranks them: a rank
    /// depends on all items.
    pub fn index_conditions(&self) -> Vec<IndexCondition> {
        index::conditions(&self.inner.bound)
    }

    /// The index order in which the rows come, if they are sorted by one path and have no other source than the item.
    pub fn index_order(&self) -> Option<IndexOrder> {
        index::order(&self.inner.bound)
    }

    /// How the rows come in a composite index; `None` if not in its order, or if an index of one path has that order, too. `conditions`: those of
    /// [`Query::index_conditions`].
    pub fn composite_order(&self, index: &CompositeIndex, conditions: &[IndexCondition]) -> Option<CompositeOrder> {
        index::composite_order(&self.inner.bound, index, conditions)
    }

    /// Whether the query counts the items and reads nothing of them, so that [`Execution::push_counted`] gives its result.
    pub fn counts_items(&self) -> bool {
        index::counts_items(&self.inner.bound.select)
    }

    /// Whether the query counts the items that its one [`Query::index_conditions`] admits, and reads nothing else of them, so that
    /// [`Execution::push_counted`] gives its result.
    pub fn counts_condition(&self) -> bool {
        index::counts_condition(&self.inner.bound)
    }

    /// The path whose values are all that the query reads of each item, and of which it makes groups or aggregates, or of which it returns each only once.
    ///
    /// Then [`Execution::push_covered`] with [`IndexPath::item_with_key`] has the same result as pushing the items. An item without a value at the path
    /// counts, too, unless [`Query::index_conditions`] have a condition on the path.
    pub fn covering_path(&self) -> Option<IndexPath> {
        index::covering_path(&self.inner.bound)
    }

    /// Whether equal values count as often as they are there and nothing else of them matters, so that [`Execution::push_covered_run`] gives the result of a
    /// query with a [`Query::covering_path`]. Each value, or group of values, must be pushed before others that a scan would find later.
    pub fn counts_runs(&self) -> bool {
        index::counts_runs(&self.inner.bound.select)
    }

    /// Whether the rows are made of nothing of the items but the value at a path and the id. Then [`Execution::push_covered_row`] with
    /// [`IndexPath::item_with_key_and_id`] has the same result as pushing the items.
    pub fn covers_rows(&self, path: &IndexPath) -> bool {
        index::covers_rows(&self.inner.bound, &[path])
    }

    /// As [`Query::covers_rows`], with the values at the paths of a composite index and [`CompositeIndex::item_with_key_and_id`].
    pub fn covers_rows_by(&self, index: &CompositeIndex) -> bool {
        index.has_items() && index::covers_rows(&self.inner.bound, &index.only_paths())
    }

    /// Whether the result of a query with a [`Query::covering_path`] is the same in whatever order items are pushed.
    pub fn is_independent_of_order(&self) -> bool {
        index::is_independent_of_order(&self.inner.bound.select)
    }

    /// What the filter requires of the words of texts. As for [`Query::index_conditions`], each condition alone holds for every item that has a row.
    pub fn text_conditions(&self) -> Vec<TextCondition> {
        index::text_conditions(&self.inner.bound)
    }

    /// What the filter requires of the places of shapes, as far as some indexes serve it. As for [`Query::index_conditions`], each condition alone holds for every
    /// item that has a row.
    pub fn spatial_conditions(&self, indexes: &[&SpatialIndex]) -> Vec<SpatialCondition> {
        index::spatial_conditions(&self.inner.bound, self.inner.schema.geometry, indexes)
    }

    /// The paths of shapes in the filter on which an index might serve a condition.
    pub fn shape_paths(&self) -> Vec<IndexPath> {
        index::shape_paths(&self.inner.bound)
    }

    /// The score by which the rows come, if it is one full-text score of single words and TOP or LIMIT select among the rows: then only the items with the
    /// highest scores need to be pushed, with [`Execution::rank_by`] if the query does not give the statistics itself.
    pub fn text_ranking(&self) -> Option<TextRanking> {
        index::text_ranking(&self.inner.bound)
    }

    /// The aggregates of the query, in the order for [`Execution::set_aggregates`], if all of them follow from statistics of texts.
    pub fn text_aggregates(&self) -> Option<Vec<TextAggregate>> {
        index::text_aggregates(&self.inner.bound)
    }

    /// The vector to which the first rows are nearest, if the query asks for so many rows by their distance from it, and has no other source than the item.
    pub fn nearest(&self) -> Option<NearestQuery> {
        index::nearest(&self.inner.bound)
    }

    /// Describes the query for people.
    ///
    /// # Errors
    /// As [`Query::partition_key_ranges`].
    pub fn explain(&self) -> Result<String> {
        Ok(plan::explain(&self.inner.bound, &self.partition_key_ranges()?))
    }
}

/// Whether it sorts rows of items, not of groups, by keys.
fn sorts_rows(select: &Select) -> bool {
    select.grouping.is_none() && matches!(select.ordering, Ordering::Keys(_))
}

fn identity(text: &str, ast: &ast::Query, bound: &Bound, parameters: &Parameters) -> [u8; 32] {
    let mut hasher = Sha256::new();
    match &ast.order {
        Some(order) if sorts_rows(&bound.select) => {
            hasher.update(text::printer::order_text(order).as_bytes());
            // The vector of a distance is a parameter.
            let (ast::Order::By(items) | ast::Order::Rank(items)) = order;
            if items
                .iter()
                .any(|item| matches!(item.value.kind, ast::ExprKind::Call(_)))
            {
                parameters.add_to(&mut hasher);
            }
        }
        _ => {
            hasher.update(text.as_bytes());
            parameters.add_to(&mut hasher);
        }
    }
    hasher.finalize().into()
}
