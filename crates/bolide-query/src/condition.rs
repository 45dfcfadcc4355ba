//! Conditions of patches: `from c where …` without a selection.

use std::sync::Arc;

use crate::bind::{Bound, bind};
use crate::error::Result;
use crate::eval::{Flow, Row, each_row};
use crate::parameters::Parameters;
use crate::schema::Schema;
use crate::session::{Environment, Session};
use crate::text;
use crate::value::Item;

/// A compiled condition.
#[derive(Debug, Clone)]
pub struct Condition {
    bound: Arc<Bound>,
}

impl Condition {
    /// Compiles `from c where …`; of the environment it needs what limits work.
    ///
    /// # Errors
    /// As [`crate::Query::compile`].
    pub fn compile(text: &str, environment: Environment) -> Result<Condition> {
        let session = Session::new(environment, false);
        let compiled = text::parse_condition(text)
            .and_then(|query| bind(&query, &Parameters::none(), &Schema::metadata(), session));
        Ok(Condition {
            bound: Arc::new(compiled.map_err(|error| error.relocated(text))?),
        })
    }

    /// Whether an item, as JSON text, meets the condition.
    ///
    /// # Errors
    /// [`crate::QueryError::BadItem`] for what is not UTF-8; what scalar subqueries raise; what the environment's limits refuse.
    pub fn holds(&self, item: &[u8], environment: Environment) -> Result<bool> {
        let item = Item::complete(item)?;
        let session = Session::new(environment, false);
        let mut row = Row::over(self.bound.slots, &session, &item, 0);
        let flow = each_row(&self.bound.select, &mut row, &mut |_| Ok(Flow::Stop))?;
        Ok(flow == Flow::Stop)
    }
}
