//! A test for claims about a collection: an account in memory, under a clock that is moved by hand in milliseconds.

use std::sync::Arc;

use bolide_core::{
    Account, AccountOptions, BuildFailure, CollectionDefinition, Container, DocumentDraft, DocumentId, DocumentScan,
    Duplicate, PurgeMode, ReadScope,
};
use bolide_model::epk::Epk;
use bolide_model::time::Clock;
use bolide_model::ttl::Policy;
use bolide_model::{Result, UnixMillis};
use bolide_mql::bson::{DateTime, RawBsonRef, RawDocumentBuf, rawdoc};
use bolide_mql::index::{IndexDefinition, ParseOptions, TtlRule};
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;

use crate::test_container::options;

/// When claims start, in milliseconds.
pub const START: i64 = 100_000;

pub struct TestCollection {
    pub clock: Arc<Clock>,
    pub engine: Arc<MemoryEngine>,
    pub account: Arc<Account>,
    pub collection: Arc<Container>,
}

impl TestCollection {
    /// A collection without indexes but that on `_id`.
    pub async fn new() -> TestCollection {
        TestCollection::with_options(options()).await
    }

    /// As [`TestCollection::new`], in an account with these options.
    pub async fn with_options(options: AccountOptions) -> TestCollection {
        TestCollection::over(MemoryEngine::new, options).await
    }

    /// As [`TestCollection::new`], over an engine that several accounts may share.
    pub async fn on_shared_engine() -> TestCollection {
        TestCollection::over(MemoryEngine::shared, options()).await
    }

    async fn over(engine: fn(Arc<Clock>) -> MemoryEngine, options: AccountOptions) -> TestCollection {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(START)));
        let engine = Arc::new(engine(clock.clone()));
        let account = open(engine.clone(), options).await;
        let id_index = IndexDefinition::id_index(None).expect("a definition");
        let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
        let collection = account.create_collection("db", "c", definition, Policy::Off).await;
        TestCollection {
            collection: collection.expect("a collection"),
            clock,
            engine,
            account,
        }
    }

    /// Opens the account again over what is stored.
    pub async fn reopen(&mut self) {
        self.account.close().await.expect("closed");
        self.account = open(self.engine.clone(), options()).await;
        self.collection = self.account.find_collection("db", "c").expect("it is stored");
    }

    pub fn set_clock(&self, millis: i64) {
        self.clock.set(UnixMillis(millis));
    }

    /// Creates an index, and builds it.
    pub async fn create_index(&self, specification: RawDocumentBuf) -> Result<Result<(), BuildFailure>> {
        let change = move |change: &mut bolide_core::CollectionChange<'_>| {
            let definition = IndexDefinition::parse(&specification, &ParseOptions::default()).expect("valid");
            let seconds = match definition.ttl_rule() {
                Some(TtlRule::Date(seconds)) => Some(seconds),
                Some(TtlRule::Core(policy)) => {
                    *change.policy = policy;
                    None
                }
                None => None,
            };
            Ok(change.definition.add_index(definition, seconds, !change.is_empty))
        };
        let id = self.account.change_collection(&self.collection, change).await?;
        let built = self.account.build_indexes(&self.collection).await?;
        if built.is_ok() {
            let finish = move |change: &mut bolide_core::CollectionChange<'_>| {
                change.definition.finish_building(&[id]);
                Ok(())
            };
            self.account.change_collection(&self.collection, finish).await?;
        }
        Ok(built)
    }

    /// Changes `expireAfterSeconds` of a TTL index on a date field; `None` drops the index.
    pub async fn change_index(&self, name: &'static str, seconds: Option<u32>) {
        let change = move |change: &mut bolide_core::CollectionChange<'_>| {
            match seconds {
                None => change.definition.remove_index(name, change.now),
                Some(seconds) => {
                    let definition = (*change.definition.index(name).expect("there").definition).clone();
                    change
                        .definition
                        .replace_index(name, definition, Some(seconds), change.now);
                }
            }
            Ok(())
        };
        self.account
            .change_collection(&self.collection, change)
            .await
            .expect("changed");
    }

    pub fn draft(&self, document: RawDocumentBuf) -> DocumentDraft {
        let definition = self.collection.collection().expect("a collection");
        DocumentDraft::new(document, &definition, self.account.draft_options()).expect("valid keys")
    }

    pub async fn insert(&self, document: RawDocumentBuf) -> std::result::Result<(), Duplicate> {
        self.write(self.draft(document)).await
    }

    /// Inserts a document that was prepared before.
    pub async fn write(&self, draft: DocumentDraft) -> std::result::Result<(), Duplicate> {
        let ctx = self.account.begin().await.expect("a clock");
        let target = (&self.collection, Epk::start());
        let write = self
            .account
            .write_document(&ctx, target, move |batch| batch.insert(&draft));
        write.await.expect("committed").value
    }

    /// Replaces the document with the `_id` of the given one. Returns whether there is one.
    pub async fn replace(&self, document: RawDocumentBuf) -> bool {
        let (ctx, draft) = (self.account.begin().await.expect("a clock"), self.draft(document));
        let write = self
            .account
            .write_document(&ctx, (&self.collection, Epk::start()), move |batch| {
                let Some(found) = batch.find(draft.id())? else {
                    return Ok(false);
                };
                batch.replace(&found, &draft)?.expect("no unique key is taken");
                Ok(true)
            });
        write.await.expect("committed").value
    }

    pub async fn delete(&self, id: i32) -> bool {
        let (ctx, id) = (self.account.begin().await.expect("a clock"), document_id(id));
        let write = self
            .account
            .write_document(&ctx, (&self.collection, Epk::start()), move |batch| {
                let Some(found) = batch.find(&id)? else {
                    return Ok(false);
                };
                batch.delete(&found);
                Ok(true)
            });
        write.await.expect("committed").value
    }

    /// Returns the ids of all visible documents, after checking that scans and reads by `_id` agree.
    pub async fn ids(&self) -> Vec<i32> {
        let scope = ReadScope::new(self.account.begin().await.expect("a clock").now);
        let (mut scan, mut ids) = (DocumentScan::default(), Vec::new());
        while let Some(page) = scan.next_page(&scope, &self.collection).await.expect("a page") {
            for document in page.documents {
                ids.push(document.document().get_i32("_id").expect("an int"));
            }
        }
        for id in 1..=9 {
            let found = scope
                .find(&self.collection, &Epk::start(), &document_id(id))
                .await
                .expect("a read");
            assert_eq!(
                found.is_some(),
                ids.contains(&id),
                "document {id} is found by scans and by its _id"
            );
        }
        ids
    }

    pub async fn purge(&self) -> u64 {
        let purged = self.account.purge(&self.collection, PurgeMode::Force, None).await;
        purged.expect("purged")
    }
}

async fn open(engine: Arc<MemoryEngine>, options: AccountOptions) -> Arc<Account> {
    Account::open(engine as Arc<dyn Engine>, options)
        .await
        .expect("an account")
}

pub fn document_id(id: i32) -> DocumentId {
    DocumentId::of(RawBsonRef::Int32(id), None)
}

/// A document with a date, in milliseconds.
pub fn dated(id: i32, date: i64) -> RawDocumentBuf {
    rawdoc! {"_id": id, "at": DateTime::from_millis(date)}
}

/// The specification of a TTL index on `at`.
pub fn date_index(seconds: i32) -> RawDocumentBuf {
    rawdoc! {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": seconds}
}
