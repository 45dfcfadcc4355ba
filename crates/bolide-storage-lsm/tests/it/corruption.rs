//! Claims about damaged files: they give an error or a reported loss, and never a panic or silent loss.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bolide_storage::{Engine, EngineError, HomeId, JointOutcome, PartitionId, Space};
use bolide_storage_lsm::{Durability, LsmOptions, OpenError};
use bytes::Bytes;

use crate::support::{PARTITION, batch, commit_items, create, open, put, read_all, try_open};

const ITEMS: u64 = 40;

/// A closed store with [`ITEMS`] commits, all of them in the journal.
async fn closed_store(dir: &Path) {
    let engine = open(dir);
    create(&engine, PARTITION).await;
    commit_items(&engine, 0, ITEMS).await;
    engine.close().await.unwrap();
}

fn journal(dir: &Path) -> PathBuf {
    dir.join("store").join("0.jnl")
}

/// Bytes of the journal in use; the rest is filled with zeros.
fn used_bytes(journal: &Path) -> usize {
    // The stores in these tests are far smaller than their journal file.
    let mut bytes = Vec::new();
    File::open(journal)
        .unwrap()
        .take(1 << 20)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

fn flip(path: &Path, at: usize) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(&[byte[0] ^ 0x55]).unwrap();
}

fn accepting() -> LsmOptions {
    LsmOptions {
        accept_data_loss: true,
        ..LsmOptions::default()
    }
}

#[tokio::test]
async fn truncated_journal_is_refused_with_both_numbers() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path()).await;
    let journal = journal(dir.path());
    let used = used_bytes(&journal);
    File::options()
        .write(true)
        .open(&journal)
        .unwrap()
        .set_len(used as u64 / 2)
        .unwrap();
    // One write created the partition, and one each the items.
    let expected_writes = ITEMS + 1;
    for _ in 0..2 {
        match try_open(dir.path(), LsmOptions::default()).unwrap_err() {
            OpenError::LostCommits { expected, found } => {
                assert_eq!(expected, expected_writes);
                assert!(found < expected && found > ITEMS / 3, "found={found}");
            }
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn accepted_loss_opens_with_the_rest_and_continues() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path()).await;
    let journal = journal(dir.path());
    let used = used_bytes(&journal);
    File::options()
        .write(true)
        .open(&journal)
        .unwrap()
        .set_len(used as u64 - 100)
        .unwrap();
    let engine = try_open(dir.path(), accepting()).unwrap();
    let response = read_all(&engine, PARTITION).await.unwrap();
    assert_eq!(response.head.lsn.0, ITEMS - 1);
    assert!(response.pages.iter().all(|page| page.rows.len() as u64 == ITEMS - 1));
    commit_items(&engine, ITEMS - 1, 1).await;
    drop(engine);
    // The loss is accepted once; the next open needs no option.
    assert_eq!(read_all(&open(dir.path()), PARTITION).await.unwrap().head.lsn.0, ITEMS);
}

/// A joint commit that was cut off is reported like any other. If the loss is accepted, it is in none of its partitions.
#[tokio::test]
async fn cut_off_joint_commit_is_reported_and_missing_in_all_partitions() {
    let partitions = [10, 11, 12].map(|number| PartitionId::in_home(HomeId(3), number).unwrap());
    for cut in [1, 200, 700] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path());
        for partition in partitions {
            create(&engine, partition).await;
        }
        for base in 0..2 {
            let puts = Space::ALL.map(|space| put(space, b"row", &[7; 20])).to_vec();
            let batches = partitions.map(|partition| (partition, batch(base, puts.clone(), vec![])));
            let outcome = engine.commit_together(batches.to_vec()).await;
            assert!(matches!(outcome, Ok(JointOutcome::Done(_))), "{outcome:?}");
        }
        engine.close().await.unwrap();
        drop(engine);
        let journal = journal(dir.path());
        let used = used_bytes(&journal) as u64;
        File::options()
            .write(true)
            .open(&journal)
            .unwrap()
            .set_len(used - cut)
            .unwrap();
        let refused = try_open(dir.path(), LsmOptions::default()).unwrap_err();
        assert!(matches!(refused, OpenError::LostCommits { .. }), "{refused}");
        let engine = try_open(dir.path(), accepting()).unwrap();
        for partition in partitions {
            let response = read_all(&engine, partition).await.unwrap();
            assert_eq!(response.head.lsn.0, 1, "cut={cut} {partition}");
        }
    }
}

#[tokio::test]
async fn flipped_byte_in_the_journal_is_refused_wherever_it_is_and_nothing_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path()).await;
    let journal = journal(dir.path());
    let used = used_bytes(&journal);
    for place in 0..12 {
        let at = used * place / 12;
        flip(&journal, at);
        let refused = try_open(dir.path(), LsmOptions::default());
        assert!(
            matches!(refused, Err(OpenError::LostCommits { .. } | OpenError::Corrupt(_))),
            "at={at} {refused:?}"
        );
        // Correcting the byte recovers everything.
        flip(&journal, at);
    }
    assert_eq!(read_all(&open(dir.path()), PARTITION).await.unwrap().head.lsn.0, ITEMS);
}

/// In modes that promise less, gaps are not damage; the watermark still knows what was durable.
#[tokio::test]
async fn flipped_byte_is_refused_by_the_watermark_in_every_mode() {
    for durability in [Durability::INTERVAL, Durability::Buffered] {
        let dir = tempfile::tempdir().unwrap();
        closed_store(dir.path()).await;
        let journal = journal(dir.path());
        flip(&journal, used_bytes(&journal) / 2);
        let refused = try_open(
            dir.path(),
            LsmOptions {
                durability,
                ..LsmOptions::default()
            },
        );
        assert!(
            matches!(refused, Err(OpenError::LostCommits { .. } | OpenError::Corrupt(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn lost_store_beside_its_watermark_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path()).await;
    fs::remove_dir_all(dir.path().join("store")).unwrap();
    let refused = try_open(dir.path(), LsmOptions::default()).unwrap_err();
    assert!(matches!(refused, OpenError::LostCommits { found: 0, .. }), "{refused}");
}

#[tokio::test]
async fn lost_watermark_is_refused_and_can_be_accepted() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path()).await;
    fs::remove_file(dir.path().join("durable")).unwrap();
    let refused = try_open(dir.path(), LsmOptions::default()).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Corrupt(why) if why.contains("accept_data_loss")),
        "{refused}"
    );
    let engine = try_open(dir.path(), accepting()).unwrap();
    assert_eq!(read_all(&engine, PARTITION).await.unwrap().head.lsn.0, ITEMS);
}

#[tokio::test]
async fn flipped_byte_in_a_table_is_an_error_at_open_or_at_the_read() {
    let dir = tempfile::tempdir().unwrap();
    let (table, before) = store_with_table(dir.path()).await;
    let len = fs::metadata(&table).unwrap().len() as usize;
    // The journal still has the rows but does not replay them, because they are in tables.
    for place in [0, len / 3, len / 2, len - 200, len - 1] {
        flip(&table, place);
        match try_open(dir.path(), LsmOptions::default()) {
            Err(OpenError::Corrupt(_) | OpenError::LostCommits { .. } | OpenError::Io { .. }) => {}
            Err(other) => panic!("at={place} {other}"),
            Ok(engine) => match read_all(&engine, PARTITION).await {
                Err(EngineError::Corrupt(_)) => {}
                Err(other) => panic!("at={place} {other}"),
                // Some bytes carry no data, such as padding; then every row must be unchanged.
                Ok(response) => assert!(
                    response.pages[0].rows == before,
                    "at={place}: wrong bytes were returned as right"
                ),
            },
        }
        flip(&table, place);
    }
}

/// Bytes that do not compress.
fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect()
}

/// A closed store whose items are in a table; the path of the table, and the items.
async fn store_with_table(dir: &Path) -> (PathBuf, Vec<(Bytes, Bytes)>) {
    let engine = open(dir);
    create(&engine, PARTITION).await;
    // Enough that closing writes tables.
    for base in 0..24 {
        let puts = vec![put(Space::Item, &[base as u8], &random_bytes(base, 1 << 18))];
        engine.commit(PARTITION, batch(base, puts, vec![])).await.unwrap();
    }
    let items = read_all(&engine, PARTITION).await.unwrap().pages[0].rows.clone();
    engine.close().await.unwrap();
    drop(engine);
    let tables = files_below(&dir.join("store").join("keyspaces"));
    let table = tables
        .into_iter()
        .max_by_key(|path| fs::metadata(path).unwrap().len())
        .unwrap();
    assert!(fs::metadata(&table).unwrap().len() > 1 << 20, "closing wrote tables");
    (table, items)
}

#[tokio::test]
async fn table_with_a_flipped_byte_is_named_by_the_error_of_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = store_with_table(dir.path()).await;
    flip(&table, 1 << 19);
    let engine = open(dir.path());
    let name = table.to_string_lossy().into_owned();
    loop {
        let Err(EngineError::Corrupt(why)) = read_all(&engine, PARTITION).await else {
            panic!("the damage is not seen");
        };
        assert!(why.contains("space=item") && why.contains("restore a backup"), "{why}");
        // The search runs in parallel with the reads.
        if why.contains(&name) {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn table_with_a_flipped_byte_is_named_at_open_if_tables_are_verified() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = store_with_table(dir.path()).await;
    let verifying = LsmOptions {
        verify_tables: true,
        ..LsmOptions::default()
    };
    drop(try_open(dir.path(), verifying.clone()).unwrap());
    let len = fs::metadata(&table).unwrap().len() as usize;
    for at in [0, len / 3, len - 100] {
        flip(&table, at);
        let refused = try_open(dir.path(), verifying.clone()).unwrap_err().to_string();
        assert!(refused.contains("corrupt"), "at={at}: {refused}");
        flip(&table, at);
    }
    flip(&table, len / 2);
    let refused = try_open(dir.path(), verifying).unwrap_err().to_string();
    assert!(refused.contains(&*table.to_string_lossy()), "{refused}");
}
