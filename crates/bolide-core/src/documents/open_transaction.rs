//! A transaction, or a snapshot, that several tasks use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::error::Detail;
use bolide_model::{Error, Reason, Result};
use tokio::sync::{Mutex, MutexGuard};

use super::scan::Place;
use super::transaction::conflict_of_settings;
use super::{DocumentBatch, DocumentId, DocumentTransaction, StoredDocument, Undecided};
use crate::catalog::unpublished::NewCollection;
use crate::catalog::{Catalog, CollectionChange};
use crate::container::Container;

/// A transaction that several tasks may use: the command that runs, and cursors that rest. It ends for all of them at once.
pub struct OpenTransaction {
    transaction: Mutex<Option<DocumentTransaction>>,
    is_snapshot: bool,
    /// Set when it ends, maybe while it is used.
    is_ended: AtomicBool,
}

/// The transaction while one task uses it.
struct Used<'a> {
    open: &'a OpenTransaction,
    /// `None` only while it is dropped.
    transaction: Option<MutexGuard<'a, Option<DocumentTransaction>>>,
}

impl Used<'_> {
    fn get(&mut self) -> Result<&mut DocumentTransaction> {
        let transaction = self.transaction.as_mut().and_then(|transaction| transaction.as_mut());
        transaction.ok_or_else(|| Reason::SnapshotEnded.into())
    }
}

impl Drop for Used<'_> {
    fn drop(&mut self) {
        self.transaction = None;
        // Whoever ended it meanwhile has found it locked.
        if self.open.is_ended.load(Ordering::SeqCst) {
            self.open.give_back();
        }
    }
}

impl OpenTransaction {
    /// Shares a transaction.
    pub fn new(transaction: DocumentTransaction) -> OpenTransaction {
        OpenTransaction {
            is_snapshot: transaction.snapshot.is_some(),
            transaction: Mutex::new(Some(transaction)),
            is_ended: AtomicBool::new(false),
        }
    }

    /// Takes the transaction, to commit it.
    pub async fn take(&self) -> Option<DocumentTransaction> {
        self.transaction.lock().await.take()
    }

    /// Ends the transaction: its snapshot, and what it has claimed, are given back at once, or when the task that uses it is done.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        self.give_back();
    }

    fn give_back(&self) {
        if let Ok(mut transaction) = self.transaction.try_lock() {
            transaction.take();
        }
    }

    async fn enter(&self) -> Used<'_> {
        let transaction = self.transaction.lock().await;
        Used {
            open: self,
            transaction: Some(transaction),
        }
    }

    /// See [`DocumentTransaction::find`].
    ///
    /// # Errors
    /// As there; [`Reason::SnapshotEnded`] if it has ended.
    pub async fn find(&self, container: &Arc<Container>, id: &DocumentId) -> Result<Option<StoredDocument>> {
        let mut used = self.enter().await;
        let found = used.get()?.find(container, id).await;
        found.map_err(|error| self.refusal(error))
    }

    /// See [`DocumentTransaction::write`].
    ///
    /// # Errors
    /// As there; [`Reason::SnapshotEnded`] if it has ended.
    pub async fn write<T>(
        &self,
        container: &Arc<Container>,
        decide: impl FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided>,
    ) -> Result<T> {
        let written = self.enter().await.get()?.write(container, decide).await;
        written.map_err(conflict_of_settings)
    }

    /// Creates a collection in the transaction; see `Account::create_collection_in`.
    pub(crate) async fn create_collection(&self, catalog: &Arc<Catalog>, new: NewCollection) -> Result<Arc<Container>> {
        self.enter().await.get()?.create_collection(catalog, new).await
    }

    /// Changes the definition of a collection that the transaction has created, and that has no documents.
    ///
    /// # Errors
    /// The errors of `decide`; `BadRequest` for new indexes on documents, or if the transaction has not created the collection;
    /// [`Reason::SnapshotEnded`] if it has ended.
    pub async fn change_collection<T>(
        &self,
        container: &Arc<Container>,
        decide: impl FnOnce(&mut CollectionChange<'_>) -> Result<T>,
    ) -> Result<T> {
        self.enter().await.get()?.change_collection(container, decide).await
    }

    pub(super) async fn page(
        &self,
        container: &Arc<Container>,
        place: &Place,
        limits: (usize, usize),
    ) -> Result<(Vec<StoredDocument>, Option<Place>)> {
        let mut used = self.enter().await;
        let page = used.get()?.page(container, place, limits).await;
        page.map_err(|error| self.refusal(error))
    }

    /// Tells a reader of a snapshot what it means that the snapshot is not held any more.
    fn refusal(&self, error: Error) -> Error {
        match &error.detail {
            Detail::Reason(Reason::SnapshotEnded) if self.is_snapshot => Reason::SnapshotTooOld.into(),
            _ => error,
        }
    }
}
