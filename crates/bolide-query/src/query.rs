//! A compiled query: what the core and the front ends hold.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::bind::{Bound, bind};
use crate::error::{QueryError, Result};
use crate::execution::{Execution, PageLimit, Resume, replays, rescans};
use crate::limits::QUERY_CHARS;
use crate::parameters::Parameters;
use crate::plan::{self, Info, KeyRanges, Plan, SupportedFeatures};
use crate::program::Ordering;
use crate::schema::Schema;
use crate::session::{Environment, Session};
use crate::text::{self, ast};

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
}

impl Query {
    /// Compiles a text.
    ///
    /// # Errors
    /// The first rule of the language that the text breaks, with the service's code, message and location (cosmos-sql §20).
    pub fn compile(text: &str, parameters: &Parameters, schema: &Schema) -> Result<Query> {
        Query::compile_in(text, parameters, schema, Environment::default())
    }

    /// As [`Query::compile`]; of the environment it needs what limits work.
    ///
    /// # Errors
    /// As [`Query::compile`]; [`QueryError::Interrupted`].
    pub fn compile_in(text: &str, parameters: &Parameters, schema: &Schema, environment: Environment) -> Result<Query> {
        if text.len() > QUERY_CHARS && text.chars().count() > QUERY_CHARS {
            let message = format!("The SQL query text exceeded the maximum limit of {QUERY_CHARS} characters");
            return Err(QueryError::Compile(vec![crate::error::Diagnostic {
                code: None,
                message,
                location: None,
            }]));
        }
        let session = Session::new(environment, schema.geometry);
        let compiled =
            text::parse(text).and_then(|ast| bind(&ast, parameters, schema, session).map(|bound| (ast, bound)));
        let (ast, bound) = compiled.map_err(|error| error.relocated(text))?;
        let fingerprint = fingerprint(text, parameters);
        let inner = Inner {
            ast,
            bound,
            parameters: parameters.clone(),
            schema: schema.clone(),
            fingerprint,
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
    /// What only the planner refuses: compositions of aggregates, a feature the client does not have.
    pub fn plan(&self, features: &SupportedFeatures) -> Result<Plan> {
        let Inner {
            ast,
            parameters,
            schema,
            ..
        } = &*self.inner;
        plan::plan(ast, parameters, schema, self.partition_key_ranges(), features)
    }

    /// Whether answering over several ranges takes more than one answer after the other (400/1004).
    pub fn needs_merge(&self) -> bool {
        let select = &self.inner.bound.select;
        self.reads_items() && (rescans(select) || select.take.is_some() || select.skip > 0)
    }

    /// Which partition keys can have results, from WHERE (cosmos-sql §22.3).
    pub fn partition_key_ranges(&self) -> KeyRanges {
        plan::key_ranges(&self.inner.bound, &self.inner.schema)
    }

    /// What the query does, for people.
    pub fn explain(&self) -> String {
        plan::explain(&self.inner.bound, &self.partition_key_ranges())
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
