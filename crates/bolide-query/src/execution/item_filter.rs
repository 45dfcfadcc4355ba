//! The filter of a query, for other threads than that of its execution: they leave out most items of a scan before these are pushed.

use super::prefilter::{SubstringPrefilter, filter_without_effects};
use crate::bind::Bound;
use crate::error::Result;
use crate::eval::Row;
use crate::program::{ITEM_SLOT, Scalar};
use crate::session::Session;
use crate::value::Item;

/// See [`crate::Query::item_filter`].
#[derive(Debug)]
pub struct ItemFilter {
    bound: Bound,
    /// The places in the filter of the conditions on nothing but the item: a row passes only if it meets all of them.
    conditions: Vec<usize>,
    prefilter: SubstringPrefilter,
    session: Session,
    /// An item needed too much work or memory, or the work was interrupted: from then on everything passes, for the execution to judge.
    has_failed: bool,
}

impl ItemFilter {
    /// The filter of a query that has one whose items may be left out.
    pub(crate) fn of(bound: &Bound, session: Session) -> Option<ItemFilter> {
        let filter = filter_without_effects(&bound.select)?;
        let conditions = (0..).zip(conditions(filter));
        let of_item = conditions
            .filter(|(_, condition)| is_of_item(condition))
            .map(|(place, _)| place);
        Some(ItemFilter {
            conditions: of_item.collect(),
            prefilter: SubstringPrefilter::of(&bound.select),
            bound: bound.clone(),
            session,
            has_failed: false,
        })
    }

    /// Whether an item may have a row. If not, count it with [`super::Execution::leave_out`] instead of pushing it.
    pub fn may_pass(&mut self, item: &Item<'_>, rid: u64) -> bool {
        self.has_failed
            || self.prefilter.may_match(item.document())
                && self.meets_conditions(item, rid).unwrap_or_else(|_| {
                    self.has_failed = true;
                    true
                })
    }

    fn meets_conditions(&self, item: &Item<'_>, rid: u64) -> Result<bool> {
        let ItemFilter { bound, session, .. } = self;
        session.begin_item();
        session.fuel.burn(item.bytes() as u64 / 16)?;
        let Some(filter) = &bound.select.filter else {
            return Ok(true);
        };
        let (all, mut row) = (conditions(filter), Row::over(bound.slots, session, item, rid));
        for place in &self.conditions {
            if !all[*place].eval(&mut row)?.is_true() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The conditions that a row must meet.
fn conditions(filter: &Scalar) -> &[Scalar] {
    match filter {
        Scalar::And(list) => list,
        single => std::slice::from_ref(single),
    }
}

/// Whether an expression without effects reads nothing but the item.
fn is_of_item(scalar: &Scalar) -> bool {
    let is_own = match scalar {
        Scalar::Slot(slot) | Scalar::Path { slot, .. } => *slot == ITEM_SLOT,
        _ => true,
    };
    let mut all = is_own;
    scalar.for_each_operand(&mut |operand| all &= is_of_item(operand));
    all
}
