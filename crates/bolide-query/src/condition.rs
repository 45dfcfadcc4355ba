//! Conditions of patches: `from c where …` without a SELECT clause.

use std::fmt;
use std::sync::Arc;

use crate::bind::{Bound, bind};
use crate::error::Result;
use crate::eval::{Flow, Row, each_row};
use crate::memory::MemorySource;
use crate::parameters::Parameters;
use crate::schema::Schema;
use crate::session::{Environment, Session};
use crate::text;
use crate::value::Item;

/// A compiled condition.
#[derive(Clone)]
pub struct Condition {
    bound: Arc<Bound>,
    /// The memory is released when the last copy is dropped.
    _memory: Option<Arc<dyn MemorySource>>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition")
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

impl Condition {
    /// Compiles `from c where …`. Of the environment only the limits of work and memory are used. The memory is held as long as the condition.
    ///
    /// # Errors
    /// As [`crate::Query::compile_in`].
    pub fn compile(text: &str, environment: Environment) -> Result<Condition> {
        let memory = environment.memory.clone();
        let session = Session::new(environment, false);
        let compiled = text::parse_condition(text, &session.memory)
            .and_then(|query| bind(&query, &Parameters::none(), &Schema::metadata(), &session));
        Ok(Condition {
            bound: Arc::new(compiled.map_err(|error| error.relocated(text))?),
            _memory: memory,
        })
    }

    /// Whether an item, as JSON text, meets the condition.
    ///
    /// # Errors
    /// [`crate::QueryError::BadItem`] for text that is not UTF-8; errors of scalar subqueries; the environment's limits.
    pub fn holds(&self, item: &[u8], environment: Environment) -> Result<bool> {
        let item = Item::complete(item)?;
        let session = Session::new(environment, false);
        let mut row = Row::over(self.bound.slots, &session, &item, 0);
        let flow = each_row(&self.bound.select, &mut row, &mut |_| Ok(Flow::Stop))?;
        Ok(flow == Flow::Stop)
    }
}
