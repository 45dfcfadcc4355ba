use bolide_model::epk::Epk;
use std::sync::Arc;

use bolide_model::error::Detail;
use bolide_model::time::Clock;
use bolide_model::ttl::Policy;
use bolide_model::{ErrorKind, Reason, UnixMillis};
use bolide_mql::bson::{RawDocumentBuf, rawdoc};
use bolide_mql::index::IndexDefinition;
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Engine, EngineError, PartitionId, ReadRequest};

use crate::api::Account;
use crate::container::{CollectionDefinition, Container};
use crate::documents::{DocumentDraft, DocumentScan, DocumentTransaction};
use crate::runtime::AccountOptions;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const UNTIL: UnixMillis = UnixMillis(1_700_000_060_000);

fn memory() -> Arc<MemoryEngine> {
    Arc::new(MemoryEngine::new(Arc::new(Clock::virtual_at(NOW))))
}

fn shared_memory() -> Arc<MemoryEngine> {
    Arc::new(MemoryEngine::shared(Arc::new(Clock::virtual_at(NOW))))
}

async fn open(engine: &Arc<MemoryEngine>) -> Arc<Account> {
    let options = AccountOptions {
        virtual_clock: true,
        ..AccountOptions::default()
    };
    Account::open(engine.clone(), options).await.unwrap()
}

fn definition() -> (CollectionDefinition, Policy) {
    let id_index = IndexDefinition::id_index(None).unwrap();
    let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
    (definition, Policy::Off)
}

async fn begin(account: &Account, name: &str) -> (DocumentTransaction, Arc<Container>) {
    let begun = account.begin_transaction_with(("db", name), definition(), NOW, UNTIL);
    begun.await.unwrap()
}

async fn create(account: &Account, transaction: &mut DocumentTransaction, name: &str) -> Arc<Container> {
    let new = crate::catalog::unpublished::NewCollection {
        database: "db".to_owned(),
        name: name.to_owned(),
        definition: Arc::new(definition().0),
        policy: Policy::Off,
    };
    transaction.create_collection(account.catalog(), new).await.unwrap()
}

fn draft(account: &Account, container: &Container, id: i32) -> DocumentDraft {
    let definition = container.collection().unwrap();
    DocumentDraft::new(rawdoc! { "_id": id }, &definition, account.draft_options()).unwrap()
}

async fn insert(account: &Account, transaction: &mut DocumentTransaction, container: &Arc<Container>, id: i32) {
    let draft = draft(account, container, id);
    let inserted = transaction.write(container, |batch| batch.insert(&draft)).await;
    inserted.unwrap().unwrap();
}

async fn insert_outside(account: &Account, container: &Arc<Container>, id: i32) {
    let draft = draft(account, container, id);
    let ctx = account.begin().await.unwrap();
    let written = account.write_document(&ctx, (container, Epk::start()), move |batch| batch.insert(&draft));
    written.await.unwrap().value.unwrap();
}

/// The number of documents; `None` if there is no collection.
async fn documents(account: &Account, name: &str) -> Option<usize> {
    let container = account.find_collection("db", name)?;
    let ctx = account.begin().await.unwrap();
    let page = DocumentScan::default()
        .next_page(&account.read_scope(&ctx), &container)
        .await;
    Some(page.unwrap().map_or(0, |page| page.documents.len()))
}

fn partition_of(container: &Container) -> PartitionId {
    container.state().layout.partitions[0].id
}

async fn is_stored(engine: &MemoryEngine, partition: PartitionId) -> bool {
    match engine.read(partition, ReadRequest::default()).await {
        Ok(_) => true,
        Err(EngineError::NoPartition(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

fn is_conflict(committed: &bolide_model::Result<()>) -> bool {
    let error = committed.as_ref().unwrap_err();
    matches!(&error.detail, Detail::Reason(Reason::WriteConflict))
}

/// The first half of a commit: what the crash leaves of a server that stops before it publishes the collections.
async fn commit_unpublished(engine: Arc<dyn Engine>, mut transaction: DocumentTransaction) {
    let mut created = std::mem::take(&mut transaction.created);
    for created in &mut created {
        transaction.add_publication(created).await.unwrap();
        created.keep();
    }
    super::super::commit(engine, transaction, None).await.unwrap();
}

#[tokio::test]
async fn a_crash_after_the_commit_loses_neither_collections_nor_documents() {
    for has_database in [true, false] {
        let engine = memory();
        let account = open(&engine).await;
        if has_database {
            let (definition, policy) = definition();
            let old = account.create_collection("db", "old", definition, policy).await;
            insert_outside(&account, &old.unwrap(), 1).await;
        }
        let (mut transaction, first) = begin(&account, "first").await;
        create(&account, &mut transaction, "empty").await;
        insert(&account, &mut transaction, &first, 1).await;
        commit_unpublished(engine.clone(), transaction).await;
        assert_eq!(documents(&account, "first").await, None);
        drop(account);
        for _ in 0..2 {
            let account = open(&engine).await;
            assert_eq!(documents(&account, "first").await, Some(1));
            assert_eq!(documents(&account, "empty").await, Some(0));
            assert_eq!(documents(&account, "old").await, has_database.then_some(1));
            let found = account.find_collection("db", "first").unwrap();
            assert_eq!(found.rid(), first.rid());
        }
        // A collection that is dropped later is not published again.
        let account = open(&engine).await;
        let found = account.find_collection("db", "first").unwrap();
        account.drop_collection(&found).await.unwrap();
        let account = open(&engine).await;
        assert_eq!(documents(&account, "first").await, None);
    }
}

#[tokio::test]
async fn a_crash_before_the_commit_leaves_nothing() {
    let engine = memory();
    let account = open(&engine).await;
    let (mut transaction, first) = begin(&account, "first").await;
    insert(&account, &mut transaction, &first, 1).await;
    // As a crash does, which drops nothing.
    transaction.created[0].keep();
    let partition = partition_of(&first);
    drop((transaction, first, account));
    assert!(is_stored(&engine, partition).await);
    let account = open(&engine).await;
    assert!(!is_stored(&engine, partition).await);
    assert_eq!(account.list_databases().len(), 0);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_leaves_nothing() {
    let engine = memory();
    let account = open(&engine).await;
    let (transaction, first) = begin(&account, "first").await;
    let partition = partition_of(&first);
    assert!(is_stored(&engine, partition).await);
    drop((transaction, first));
    let mut turns = 0;
    while is_stored(&engine, partition).await {
        turns += 1;
        assert!(turns < 10_000, "the partition is still there");
        tokio::task::yield_now().await;
    }
    assert_eq!(account.list_databases().len(), 0);
}

#[tokio::test]
async fn a_name_that_others_have_taken_is_a_write_conflict() {
    for engine in [memory(), shared_memory()] {
        let account = open(&engine).await;
        let (mut transaction, first) = begin(&account, "first").await;
        create(&account, &mut transaction, "second").await;
        insert(&account, &mut transaction, &first, 1).await;
        let others = if engine.is_shared() {
            open(&engine).await
        } else {
            account.clone()
        };
        let (definition, policy) = definition();
        let taken = others.create_collection("db", "second", definition, policy).await;
        insert_outside(&others, &taken.unwrap(), 7).await;
        assert!(is_conflict(&account.commit_transaction(transaction, None).await));
        let anew = open(&engine).await;
        assert_eq!(documents(&anew, "first").await, None);
        assert_eq!(documents(&anew, "second").await, Some(1));
    }
}

#[tokio::test]
async fn a_conflict_of_documents_leaves_no_collection() {
    for engine in [memory(), shared_memory()] {
        let account = open(&engine).await;
        let (definition, policy) = definition();
        let old = account
            .create_collection("db", "old", definition, policy)
            .await
            .unwrap();
        let mut transaction = account.begin_transaction(&old, NOW, UNTIL).await.unwrap();
        insert(&account, &mut transaction, &old, 1).await;
        let new = create(&account, &mut transaction, "new").await;
        insert(&account, &mut transaction, &new, 1).await;
        insert_outside(&account, &old, 1).await;
        assert!(is_conflict(&account.commit_transaction(transaction, None).await));
        for account in [account, open(&engine).await] {
            assert_eq!(documents(&account, "new").await, None);
            assert_eq!(documents(&account, "old").await, Some(1));
        }
    }
}

#[tokio::test]
async fn a_shared_store_shows_what_was_committed_to_all() {
    let engine = shared_memory();
    let (account, others) = (open(&engine).await, open(&engine).await);
    let (mut transaction, new) = begin(&account, "new").await;
    insert(&account, &mut transaction, &new, 1).await;
    others.refresh_catalog().await.unwrap();
    assert_eq!(documents(&others, "new").await, None);
    account.commit_transaction(transaction, None).await.unwrap();
    others.refresh_catalog().await.unwrap();
    for account in [account, others, open(&engine).await] {
        assert_eq!(documents(&account, "new").await, Some(1));
    }
}

#[tokio::test]
async fn a_collection_is_refused_if_definitions_are_too_large() {
    let engine = memory();
    let options = AccountOptions {
        virtual_clock: true,
        definition_bytes: Some(1),
        ..AccountOptions::default()
    };
    let account = Account::open(engine.clone(), options).await.unwrap();
    let begun = account.begin_transaction_with(("db", "new"), definition(), NOW, UNTIL);
    let error = begun.await.map(drop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::QuotaExceeded);
    assert!(!is_stored(&engine, PartitionId(1)).await);
}
