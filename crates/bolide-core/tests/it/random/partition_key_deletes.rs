//! Deleting all items of a partition key in the programs, and the progress of their removal.

use super::checks::differ;
use super::runner::{Runner, Stepped};
use crate::model::Version;
use crate::test_container::key;

/// The items that a purge has removed, as far as it is visible.
pub struct Removed {
    pub ghosts: Vec<Version>,
    /// The number of items that were deleted with their key.
    pub dropped: usize,
}

impl Runner {
    pub(super) async fn drop_key(&mut self, pk: &'static str) -> Stepped {
        // A deletion of unknown outcome could not be distinguished from one that did not happen, until a request reads the key.
        self.be_calm(true);
        let ctx = self.begin().await?;
        let answer = self.account().delete_all_of_key(&ctx, self.container(), &key(pk)).await;
        let answer = answer.map_err(|refusal| format!("delete all of {pk}: {refusal:?}"))?;
        self.charged(&answer.cost);
        self.model.drop_all(pk);
        let of_key = self.known.iter().filter(|((known, _), _)| *known == pk);
        self.gone.extend(of_key.flat_map(|(_, etags)| etags).cloned());
        self.be_calm(false);
        Ok(format!("deleted {:?}", answer.cost.charge))
    }

    /// Returns the number of items deleted with their key that are still stored. The engine must be calm.
    pub(super) async fn stored_of_dropped(&self, ghosts_left: usize) -> Result<usize, String> {
        let report = self.account().verify(self.container()).await;
        let report = report.map_err(|error| format!("verify: {error}"))?;
        differ("problems of the storage", &report.problems, &Vec::new())?;
        let others = self.model.usage().0 + ghosts_left as u64;
        let left = report.stored.checked_sub(others).ok_or("items are lost")?;
        usize::try_from(left).map_err(|error| error.to_string())
    }
}
