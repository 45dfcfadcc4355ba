//! From the syntax tree to a program: names, parameters, aggregates, and every rule that can be checked from the text alone.
//!
//! Errors have byte offsets here; [`crate::Query::compile`] converts them to those of the service.

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
use crate::memory::ALLOCATION_BYTES;
use crate::parameters::Parameters;
use crate::path::PathStep;
use crate::program::{Scalar, Select};
use crate::schema::Schema;
use crate::session::{Environment, Session};
use crate::text::ast;

pub use group::{aggregate_of, contains_aggregate};
pub use select::{Clause, Columns, columns, columns_bytes, count_value};

/// A bound query.
#[derive(Debug, Clone)]
pub struct Bound {
    pub select: Arc<Select>,
    /// Number of slots of a row.
    pub slots: usize,
    /// The same items give the same rows at any time: the query has no user-defined function and does not depend on the time or random numbers.
    pub is_repeatable: bool,
    /// For each slot, the path below the item whose value it holds, if any.
    pub slot_paths: Vec<Option<Path>>,
}

/// A path below the item, shared by all mentions of a name with that path.
pub type Path = Arc<[PathStep]>;

/// Units to copy a step of a path.
const STEP: u64 = 40;

/// Memory of a step of a path, without its name.
const STEP_BYTES: usize = size_of::<PathStep>() + ALLOCATION_BYTES;

/// Binds a whole query. The memory of the program comes from the session.
///
/// # Errors
/// The first rule that is broken, with the service's code if it is published. As [`crate::memory::Memory::take`].
pub fn bind(query: &ast::Query, parameters: &Parameters, schema: &Schema, session: &Session) -> Result<Bound> {
    rules::check_structure(query)?;
    let computed = computed::bind_all(schema, session)?;
    let mut binder = Binder::new(parameters, schema, computed, session);
    let select = Arc::new(binder.root(query)?);
    binder.session.fuel.check()?;
    Ok(Bound {
        select,
        slots: binder.slot_paths.len(),
        // Computed properties are bound separately.
        is_repeatable: binder.is_repeatable && binder.computed.is_empty(),
        slot_paths: binder.slot_paths,
    })
}

/// Checks the definition of a computed property (cosmos-sql §19).
///
/// # Errors
/// The rule that the definition breaks.
pub fn check_computed(query: &str) -> Result<()> {
    let session = Session::new(Environment::default(), false);
    computed::bind_one(query, &Schema::default(), &session).map(|_| ())
}

struct Binder<'s> {
    parameters: &'s Parameters,
    schema: &'s Schema,
    /// Bound computed properties, by name.
    computed: Vec<(String, Arc<Scalar>)>,
    scopes: Vec<scope::Scope>,
    slot_paths: Vec<Option<Path>>,
    /// For folding constants, and for limits; functions that depend on the time are never folded.
    session: &'s Session,
    /// Bytes of the constants that were folded.
    folded_bytes: Cell<usize>,
    is_repeatable: bool,
    /// Aggregates of the selection being bound; `None` where aggregates are not allowed.
    aggregates: Option<Vec<crate::program::Aggregate>>,
}

impl<'s> Binder<'s> {
    fn new(
        parameters: &'s Parameters,
        schema: &'s Schema,
        computed: Vec<(String, Arc<Scalar>)>,
        session: &'s Session,
    ) -> Binder<'s> {
        Binder {
            parameters,
            schema,
            computed,
            scopes: Vec::new(),
            // Slot 0 is the item.
            slot_paths: vec![Some(Arc::default())],
            session,
            folded_bytes: Cell::new(0),
            is_repeatable: true,
            aggregates: None,
        }
    }

    fn new_slot(&mut self, path: Option<Path>) -> usize {
        self.slot_paths.push(path);
        self.slot_paths.len() - 1
    }

    /// A path and some steps below it.
    fn joined(&self, path: &[PathStep], steps: &[PathStep]) -> Result<Path> {
        self.session.fuel.burn((path.len() + steps.len()) as u64 * STEP)?;
        self.session.memory.take(path_bytes(path) + path_bytes(steps))?;
        Ok(path.iter().chain(steps).cloned().collect())
    }
}

fn path_bytes(path: &[PathStep]) -> usize {
    let name = |step: &PathStep| match step {
        PathStep::Name(name) => name.len(),
        PathStep::Element(_) | PathStep::Each | PathStep::Nowhere => 0,
    };
    path.iter().map(|step| STEP_BYTES + name(step)).sum()
}
