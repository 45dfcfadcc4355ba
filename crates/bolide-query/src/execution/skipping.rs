//! OFFSET over rows in the order of an index: rows that are only skipped need no items.

use super::stage::Stage;
use super::{Execution, Item, Result};
use crate::eval::Row;
use crate::program::Ordering;

impl Execution {
    /// Number of rows that OFFSET still skips and that [`Execution::skip_covered`] may be shown first, in the order of the rows. 0 if items are needed, or
    /// if an earlier page has returned rows.
    pub fn rows_to_skip(&self) -> u64 {
        match &self.stage {
            Stage::Sort(sorter) if self.skips_by_keys && self.output.returned() == 0 && sorter.is_fresh() => {
                self.output.skip()
            }
            _ => 0,
        }
    }

    /// Skips the row of an item, if it has one. Of the item only an entry of an index was read ([`crate::Query::index_order`]); a key that is not
    /// [`crate::index::is_exact`] does not tell its place among rows.
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn skip_covered(&mut self, item: &[u8], rid: u64) -> Result<()> {
        self.metrics.index_entries += 1;
        self.begin_item();
        let item = Item::complete(item)?;
        let select = &self.bound.select;
        let mut row = Row::over(self.bound.slots, &self.session, &item, rid);
        self.session.fuel.burn(item.bytes() as u64 / 16)?;
        if let Some(filter) = &select.filter
            && !filter.eval(&mut row)?.is_true()
        {
            return Ok(());
        }
        if let Ordering::Keys(keys) = &select.ordering {
            for key in keys.iter().filter(|key| key.skip_undefined) {
                if !key.value.eval(&mut row)?.is_defined() {
                    return Ok(());
                }
            }
        }
        self.output.skip_row();
        if let Stage::Sort(sorter) = &mut self.stage {
            sorter.want(self.output.rows_wanted());
        }
        Ok(())
    }
}
