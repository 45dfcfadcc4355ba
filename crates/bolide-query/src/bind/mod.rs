//! From the syntax tree to a program: names, parameters, aggregates, and every rule that is broken by the text alone.
//!
//! Errors carry byte offsets here; [`crate::Query::compile`] turns them into the service's.

mod calls;
mod computed;
mod expression;
mod fold;
mod group;
mod order;
mod rank;
mod rules;
mod scope;
mod select;

use std::cell::Cell;
use std::sync::Arc;

use crate::error::Result;
use crate::parameters::Parameters;
use crate::path::PathStep;
use crate::program::{Scalar, Select};
use crate::schema::Schema;
use crate::session::Session;
use crate::text::ast;

pub use group::{aggregate_of, contains_aggregate};
pub use select::{Clause, Columns, columns, count_value};

/// A bound query.
#[derive(Debug, Clone)]
pub struct Bound {
    pub select: Arc<Select>,
    /// Length of a row.
    pub slots: usize,
    /// For each slot, the path below the item whose value it holds, where there is one.
    pub slot_paths: Vec<Option<Vec<PathStep>>>,
}

/// Binds a whole query.
///
/// # Errors
/// The first rule broken, with the service's code where it is published.
pub fn bind(query: &ast::Query, parameters: &Parameters, schema: &Schema, session: Session) -> Result<Bound> {
    rules::check_structure(query)?;
    let computed = computed::bind_all(schema)?;
    let mut binder = Binder::new(parameters, schema, computed, session);
    let select = Arc::new(binder.root(query)?);
    binder.session.fuel.check()?;
    Ok(Bound {
        select,
        slots: binder.slot_paths.len(),
        slot_paths: binder.slot_paths,
    })
}

/// Checks the definition of a computed property (cosmos-sql §19).
///
/// # Errors
/// What the definition breaks.
pub fn check_computed(query: &str) -> Result<()> {
    computed::bind_one(query, &Schema::default()).map(|_| ())
}

struct Binder<'s> {
    parameters: &'s Parameters,
    schema: &'s Schema,
    /// Bound computed properties, by name.
    computed: Vec<(String, Arc<Scalar>)>,
    scopes: Vec<scope::Scope>,
    slot_paths: Vec<Option<Vec<PathStep>>>,
    /// For folding constants; functions that look at the time are never folded.
    session: Session,
    /// Bytes of the constants that were folded.
    folded_bytes: Cell<usize>,
    /// Where aggregates stand: nowhere, or in the selection being bound.
    aggregates: Option<Vec<crate::program::Aggregate>>,
}

impl<'s> Binder<'s> {
    fn new(
        parameters: &'s Parameters,
        schema: &'s Schema,
        computed: Vec<(String, Arc<Scalar>)>,
        session: Session,
    ) -> Binder<'s> {
        Binder {
            parameters,
            schema,
            computed,
            scopes: Vec::new(),
            // Slot 0 is the item.
            slot_paths: vec![Some(Vec::new())],
            session,
            folded_bytes: Cell::new(0),
            aggregates: None,
        }
    }

    fn new_slot(&mut self, path: Option<Vec<PathStep>>) -> usize {
        self.slot_paths.push(path);
        self.slot_paths.len() - 1
    }
}
