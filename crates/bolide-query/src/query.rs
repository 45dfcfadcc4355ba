//! A compiled query: what the core and the front ends hold.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::bind::{Bound, bind, columns_bytes};
use crate::error::{QueryError, Result};
use crate::execution::{Execution, PageLimit, Resume, replays, rescans};
use crate::memory::{Memory, MemorySource};
use crate::parameters::Parameters;
use crate::plan::{self, Info, KeyRanges, Plan, SupportedFeatures};
use crate::program::Ordering;
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
    ast: ast::Query,
    bound: Bound,
    parameters: Parameters,
    schema: Schema,
    fingerprint: u32,
    held: Held,
}

/// The memory of a compiled query.
struct Held {
    /// The size of the syntax tree.
    tree_bytes: usize,
    limit_bytes: usize,
    /// Gives it back when the query is dropped.
    source: Option<Arc<dyn MemorySource>>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("tree_bytes", &self.tree_bytes)
            .finish_non_exhaustive()
    }
}

impl Held {
    /// For what is made beside the query itself.
    fn more(&self) -> Memory {
        Memory::new(self.limit_bytes, self.source.clone())
    }
}

/// How many times its tree a plan takes at most: copies of its parts, rewritten, and those as text and as JSON.
const PLAN_FACTOR: usize = 2;

impl Query {
    /// Compiles a text.
    ///
    /// # Errors
    /// The first rule of the language that the text breaks, with the service's code, message and location (cosmos-sql §20).
    pub fn compile(text: &str, parameters: &Parameters, schema: &Schema) -> Result<Query> {
        Query::compile_in(text, parameters, schema, Environment::default())
    }

    /// As [`Query::compile`]; of the environment it needs what limits work and memory. The memory is held as long as the query.
    ///
    /// # Errors
    /// As [`Query::compile`]; [`QueryError::Interrupted`]; [`QueryError::TooLarge`], [`QueryError::OutOfMemory`].
    pub fn compile_in(text: &str, parameters: &Parameters, schema: &Schema, environment: Environment) -> Result<Query> {
        let (limit_bytes, source) = (environment.state_bytes, environment.memory.clone());
        let session = Session::new(environment, schema.geometry);
        let memory = &session.memory;
        memory.take(parameters.bytes())?;
        let before = memory.used();
        let ast = text::parse(text, memory).map_err(|error| error.relocated(text))?;
        let tree_bytes = memory.used() - before;
        let bound = bind(&ast, parameters, schema, &session).map_err(|error| error.relocated(text))?;
        let fingerprint = fingerprint(text, parameters);
        let inner = Inner {
            ast,
            bound,
            parameters: parameters.clone(),
            schema: schema.clone(),
            fingerprint,
            held: Held {
                tree_bytes,
                limit_bytes,
                source,
            },
        };
        Ok(Query { inner: Arc::new(inner) })
    }

    /// Whether the query looks at items at all; `SELECT 1` does not, and needs no scan: finish an execution at once.
    pub fn reads_items(&self) -> bool {
        self.inner.bound.select.reads_items()
    }

    /// Whether the content of items matters; a count of all of them only needs to know that they are there.
    pub fn reads_content(&self) -> bool {
        self.inner.bound.select.reads_content()
    }

    /// Which indexes it would use, and how it could be written better.
    pub fn usage(&self) -> Usage {
        Usage::of(&self.inner.ast)
    }

    /// Whether every page must see all items from the start; see the crate's page rules.
    pub fn rescans(&self) -> bool {
        rescans(&self.inner.bound.select)
    }

    /// Whether a page that sees all items from the start must be given those before the place of the page before it by
    /// [`Execution::replay`]; see the crate's page rules.
    pub fn replays(&self) -> bool {
        replays(&self.inner.bound.select)
    }

    /// Starts a page. `resume` is what the page before gave.
    ///
    /// # Errors
    /// [`QueryError::BadContinuation`] if `resume` is not this query's.
    pub fn execution(&self, environment: Environment, page: PageLimit, resume: Option<&str>) -> Result<Execution> {
        let Inner {
            bound,
            schema,
            fingerprint,
            ..
        } = &*self.inner;
        let resume = resume
            .map(|text| Resume::parse(text, *fingerprint))
            .transpose()?
            .unwrap_or_default();
        let keys = match &bound.select.ordering {
            Ordering::Keys(keys) => keys.len(),
            Ordering::None | Ordering::Rank(_) => 0,
        };
        if !resume.fits(keys) {
            return Err(QueryError::BadContinuation("it does not fit the query".to_owned()));
        }
        let session = Session::new(environment, schema.geometry);
        Ok(Execution::new(bound.clone(), session, page, resume, *fingerprint))
    }

    /// What a client must know of the query to merge the results of several ranges.
    pub fn info(&self) -> Info {
        plan::info(&self.inner.ast, &self.inner.parameters)
    }

    /// The answer to a query plan request.
    ///
    /// # Errors
    /// What only the planner refuses: compositions of aggregates, a feature the client does not have. [`QueryError::TooLarge`],
    /// [`QueryError::OutOfMemory`].
    pub fn plan(&self, features: &SupportedFeatures) -> Result<Plan> {
        let Inner {
            ast,
            parameters,
            schema,
            held,
            ..
        } = &*self.inner;
        let memory = held.more();
        memory.take(PLAN_FACTOR * (held.tree_bytes + columns_bytes(&ast.selection, parameters)))?;
        plan::plan(ast, parameters, schema, self.partition_key_ranges()?, features, &memory)
    }

    /// Whether answering over several ranges takes more than one answer after the other (400/1004).
    pub fn needs_merge(&self) -> bool {
        let select = &self.inner.bound.select;
        self.reads_items() && (rescans(select) || select.take.is_some() || select.skip > 0)
    }

    /// Which partition keys can have results, from WHERE (cosmos-sql §22.3).
    ///
    /// # Errors
    /// [`QueryError::TooLarge`] if they are too many; [`QueryError::OutOfMemory`].
    pub fn partition_key_ranges(&self) -> Result<KeyRanges> {
        plan::key_ranges(&self.inner.bound, &self.inner.schema, &self.inner.held.more())
    }

    /// What the query does, for people.
    ///
    /// # Errors
    /// As [`Query::partition_key_ranges`].
    pub fn explain(&self) -> Result<String> {
        Ok(plan::explain(&self.inner.bound, &self.partition_key_ranges()?))
    }
}

/// Tells queries apart in continuations.
fn fingerprint(text: &str, parameters: &Parameters) -> u32 {
    let mut hasher = Sha256::new();
    hasher.update(text.as_bytes());
    parameters.add_to(&mut hasher);
    let digest = hasher.finalize();
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}
