//! Reads of single documents by their `_id`.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::epk::Epk;
use bolide_storage::ReadRequest;

use super::{DocumentId, ReadScope, StoredDocument};
use crate::container::Container;
use crate::format::keys;
use crate::partition::AsOf;

impl ReadScope {
    /// Finds the document with an `_id` at a place.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the collection was removed.
    pub async fn find(
        &self,
        container: &Arc<Container>,
        place: &Epk,
        id: &DocumentId,
    ) -> Result<Option<StoredDocument>> {
        if let Some(transaction) = self.transaction() {
            return transaction.find(container, id).await;
        }
        let (state, now) = self.enter(container).await?;
        let horizon = state.settings.horizon(now);
        let partition = state.layout.partition_of(place)?;
        let index_key = keys::id_index(place.as_bytes(), &id.0);
        loop {
            let request = || ReadRequest::of_keys(vec![index_key.clone()]);
            let snapshot = partition.snapshot(request, AsOf::Horizon(&horizon)).await?;
            let Some(number) = snapshot.index_entry(0).and_then(|value| value[..].try_into().ok()) else {
                break;
            };
            let item_key = keys::item(place, u64::from_be_bytes(number));
            let request = || ReadRequest::of_keys(vec![item_key.clone()]);
            let mut item = partition.snapshot(request, AsOf::Horizon(&horizon)).await?;
            match item.record(0, &item_key.bytes)? {
                Some(record) if record.id_bytes() == id.0 => {
                    self.charge_read(&state, partition, record.size());
                    return Ok(Some(StoredDocument::new(item_key.bytes, record)));
                }
                // Written between the two reads: the number may have another `_id` now, or the `_id` another number.
                _ if item.head.lsn != snapshot.head.lsn => {}
                _ => break,
            }
        }
        self.charge_read(&state, partition, 0);
        Ok(None)
    }
}
