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
    /// Length of a row.
    pub slots: usize,
    /// The same items give the same rows at any time: no user-defined function, none that looks at the time or at random numbers.
    pub is_repeatable: bool,
    /// For each slot, the path below the item whose value it holds, where there is one.
    pub slot_paths: Vec<Option<Path>>,
}

/// A path below the item, which every mention of a name with that path shares.
pub type Path = Arc<[PathStep]>;

/// Units to copy a step of a path.
const STEP: u64 = 40;

/// What a step of a path takes beside its name.
const STEP_BYTES: usize = size_of::<PathStep>() + ALLOCATION_BYTES;

/// Binds a whole query. What the program takes is taken from the session's memory.
///
/// # Errors
/// The first rule broken, with the service's code where it is published. As [`crate::memory::Memory::take`].
pub fn bind(query: &ast::Query, parameters: &Parameters, schema: &Schema, session: &Session) -> Result<Bound> {
    rules::check_structure(query)?;
    let computed = computed::bind_all(schema, session)?;
    let mut binder = Binder::new(parameters, schema, computed, session);
    let select = Arc::new(binder.root(query)?);
    binder.session.fuel.check()?;
    Ok(Bound {
        select,
        slots: binder.slot_paths.len(),
        // Computed properties were bound apart.
        is_repeatable: binder.is_repeatable && binder.computed.is_empty(),
        slot_paths: binder.slot_paths,
    })
}

/// Checks the definition of a computed property (cosmos-sql §19).
///
/// # Errors
/// What the definition breaks.
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
    /// For folding constants, and for what all of it takes; functions that look at the time are never folded.
    session: &'s Session,
    /// Bytes of the constants that were folded.
    folded_bytes: Cell<usize>,
    is_repeatable: bool,
    /// Where aggregates stand: nowhere, or in the selection being bound.
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
