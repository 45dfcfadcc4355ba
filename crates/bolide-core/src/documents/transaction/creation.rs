//! Collections that a transaction creates; see [`crate::catalog::unpublished`].

use std::sync::Arc;

use bolide_model::{ErrorKind, Reason, Result, UnixMillis};
use bolide_storage::Engine;

use super::{DocumentTransaction, Part, SessionRecord};
use crate::catalog::unpublished::{NewCollection, UnpublishedCollection};
use crate::catalog::{Catalog, CollectionChange};
use crate::container::Container;
use crate::runtime::Runtime;

impl DocumentTransaction {
    /// See `Account::create_collection_in`.
    pub(in crate::documents) async fn create_collection(
        &mut self,
        catalog: &Arc<Catalog>,
        new: NewCollection,
    ) -> Result<Arc<Container>> {
        if self.is_conflicted {
            return Err(Reason::WriteConflict.into());
        }
        let home = Some(self.home);
        let siblings = self.created.iter().rev();
        let sibling = siblings.into_iter().find_map(|created| created.sibling(&new.database));
        let reserve = |catalog: Arc<Catalog>| async move { catalog.reserve_collection(new, home, sibling).await };
        let created = catalog.carry_out(reserve).await?;
        let container = created.container().clone();
        self.created.push(created);
        Ok(container)
    }

    /// See `OpenTransaction::change_collection`.
    pub(in crate::documents) async fn change_collection<T>(
        &mut self,
        container: &Arc<Container>,
        decide: impl FnOnce(&mut CollectionChange<'_>) -> Result<T>,
    ) -> Result<T> {
        let rid = container.rid();
        let created = self.created.iter_mut().find(|created| created.container().rid() == rid);
        let created = created.ok_or_else(|| {
            bolide_model::Error::bad_request("a transaction changes only collections that it has created")
        })?;
        let part = self.collections.get(&rid);
        let is_empty = part.is_none_or(|part| part.written.values().all(|written| written.draft.is_none()));
        let (value, is_changed) = created.change(is_empty, decide).await?;
        if is_changed {
            // Documents are drafted for the indexes that it had when it was entered.
            self.collections.remove(&rid);
        }
        Ok(value)
    }

    /// Lets the commit write the row that commits the collection.
    async fn add_publication(&mut self, created: &UnpublishedCollection) -> Result<()> {
        let container = created.container();
        let part = match self.collections.remove(&container.rid()) {
            Some(part) => part,
            None => self.enter(container).await?,
        };
        let part = Part {
            publication: Some(created.encoded()),
            ..part
        };
        self.collections.insert(container.rid(), part);
        Ok(())
    }
}

impl Runtime {
    /// See `Account::begin_transaction_with`.
    pub(crate) async fn begin_transaction_with(
        &self,
        catalog: &Arc<Catalog>,
        new: NewCollection,
        now: UnixMillis,
        until: UnixMillis,
    ) -> Result<(DocumentTransaction, Arc<Container>)> {
        let reserve = |catalog: Arc<Catalog>| async move { catalog.reserve_collection(new, None, None).await };
        let created = catalog.carry_out(reserve).await?;
        let container = created.container().clone();
        let transaction = self.begin_transaction(&container, now, until).await?;
        let transaction = DocumentTransaction {
            created: vec![created],
            ..transaction
        };
        Ok((transaction, container))
    }
}

/// Commits a transaction that has created collections, and publishes these. Runs inside of [`Catalog::carry_out`].
pub(super) async fn commit(
    engine: Arc<dyn Engine>,
    catalog: Arc<Catalog>,
    mut transaction: DocumentTransaction,
    record: Option<SessionRecord>,
) -> Result<()> {
    if transaction.is_conflicted {
        return Err(Reason::WriteConflict.into());
    }
    // A store is sealed while no change of the catalog runs: so nothing is committed that could not be published.
    catalog.check_unsealed().await?;
    let mut created = std::mem::take(&mut transaction.created);
    catalog.check_unpublished(&mut created).await?;
    let written = transaction.collections.values().filter(|part| !part.written.is_empty());
    let is_created = |rid| created.iter().any(|created| created.container().rid() == rid);
    let writes_others = written.into_iter().any(|part| !is_created(part.container.rid()));
    for created in &created {
        transaction.add_publication(created).await?;
    }
    let _publishing = catalog.begin_publishing(writes_others).await?;
    if engine.is_shared() {
        catalog.publish_first(&mut created).await?;
        let committed = super::commit(engine, transaction, record).await;
        if committed.as_ref().is_err_and(|error| error.kind != ErrorKind::Timeout) {
            catalog.unpublish(&created).await;
        }
        return committed;
    }
    match super::commit(engine, transaction, record).await {
        Ok(()) => catalog.publish(&mut created).await,
        Err(error) => {
            if error.kind == ErrorKind::Timeout {
                // It may be committed; the next start finds out.
                created.iter_mut().for_each(UnpublishedCollection::keep);
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
