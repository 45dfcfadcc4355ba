//! Claims about the directory of a store.

use std::fs;
use std::time::Duration;

use bolide_storage::{Engine, Outcome, Space};
use bolide_storage_lsm::{LsmOptions, OpenError};

use crate::support::{PARTITION, batch, commit_items, create, open, open_with_manual_clock, put, read_all, try_open};

#[test]
fn absent_directory_is_made_with_its_parents() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a").join("b");
    drop(open(&path));
    assert!(
        fs::read_to_string(path.join("FORMAT"))
            .unwrap()
            .starts_with("bolide store\nformat 3\n")
    );
}

#[test]
fn foreign_directory_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("holiday.jpg"), b"sun").unwrap();
    let refused = try_open(dir.path(), LsmOptions::default()).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Foreign { found, .. } if found == "holiday.jpg"),
        "{refused}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn format_file_of_something_else_is_foreign() {
    let dir = tempfile::tempdir().unwrap();
    for text in [
        &b"another program\nformat 1\n"[..],
        b"bolide store\nformat x\n",
        b"",
        b"\xff\xfe",
    ] {
        fs::write(dir.path().join("FORMAT"), text).unwrap();
        let refused = try_open(dir.path(), LsmOptions::default()).unwrap_err();
        assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    }
}

/// The error of opening a store whose file names this format.
fn refusal_of_format(format: u32) -> OpenError {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let text = format!("bolide store\nformat {format}\ncreated 0\n");
    fs::write(dir.path().join("FORMAT"), text).unwrap();
    try_open(dir.path(), LsmOptions::default()).unwrap_err()
}

#[test]
fn newer_format_is_refused() {
    let refused = refusal_of_format(4);
    let is_expected = matches!(
        refused,
        OpenError::TooNew {
            found: 4,
            supported: 3,
            ..
        }
    );
    assert!(is_expected, "{refused}");
}

/// In format 1, keys do not distinguish partition keys with the same hash, so nothing would be found.
#[test]
fn older_format_is_refused() {
    let refused = refusal_of_format(1);
    let is_expected = matches!(
        refused,
        OpenError::TooOld {
            found: 1,
            supported: 2,
            ..
        }
    );
    assert!(is_expected, "{refused}");
}

#[test]
fn file_in_place_of_the_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refused = try_open(&path, LsmOptions::default()).unwrap_err();
        assert!(matches!(refused, OpenError::NotADirectory(_)), "{refused}");
    }
}

#[test]
fn store_that_is_open_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let refused = try_open(dir.path(), LsmOptions::default()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse(_)), "{refused}");
    drop(first);
    open(dir.path());
}

#[tokio::test]
async fn first_open_that_was_interrupted_is_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    // The state after a crash before the LSM store wrote its version, the last file it makes.
    fs::remove_dir_all(dir.path().join("store")).unwrap();
    fs::create_dir_all(dir.path().join("store").join("keyspaces")).unwrap();
    fs::write(dir.path().join("store").join("0.jnl"), b"").unwrap();
    let engine = open(dir.path());
    create(&engine, PARTITION).await;
    commit_items(&engine, 0, 1).await;
    assert_eq!(read_all(&engine, PARTITION).await.unwrap().pages[0].rows.len(), 1);
}

#[tokio::test]
async fn closed_store_still_reads_and_refuses_writes() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    create(&engine, PARTITION).await;
    commit_items(&engine, 0, 3).await;
    engine.close().await.unwrap();
    engine.close().await.unwrap();
    assert_eq!(read_all(&engine, PARTITION).await.unwrap().head.lsn.0, 3);
    assert!(engine.commit(PARTITION, batch(3, vec![], vec![])).await.is_err());
}

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn directory_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    drop(open(&path));
    assert_eq!(mode(&path), 0o700);
    // As an earlier version made it.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    drop(open(&path));
    assert_eq!(mode(&path), 0o700);
}

async fn refusal_after(damage: impl FnOnce(&std::path::Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let engine = open(&path);
    create(&engine, PARTITION).await;
    commit_items(&engine, 0, 1).await;
    damage(&path);
    let outcome = engine
        .commit(PARTITION, batch(1, vec![put(Space::Item, b"lost", b"v")], vec![]))
        .await;
    let Ok(Outcome::Refused(why)) = outcome else {
        panic!("acknowledged, and nobody will find it: {outcome:?}");
    };
    assert_eq!(
        read_all(&engine, PARTITION).await.unwrap().head.lsn.0,
        1,
        "what is in memory can be read"
    );
    why
}

#[cfg(unix)]
#[tokio::test]
async fn writes_to_a_directory_that_was_removed_are_refused() {
    let why = refusal_after(|path| {
        // A new engine may still be putting its blank store in place: then it is not empty in the end.
        let removed = (0..1_000).any(|_| fs::remove_dir_all(path).is_ok());
        assert!(removed);
    })
    .await;
    assert!(why.contains("was removed, moved or replaced"), "{why}");
}

#[cfg(unix)]
#[tokio::test]
async fn writes_are_refused_when_another_directory_stands_in_the_place() {
    let why = refusal_after(|path| {
        fs::rename(path, path.with_extension("away")).unwrap();
        drop(open(path));
    })
    .await;
    assert!(why.contains("was removed, moved or replaced"), "{why}");
}

#[cfg(unix)]
#[tokio::test]
async fn writes_to_a_journal_that_was_removed_are_refused() {
    let why = refusal_after(|path| fs::remove_file(path.join("store").join("0.jnl")).unwrap()).await;
    assert!(why.contains("the journal was removed"), "{why}");
}

#[cfg(unix)]
#[tokio::test]
async fn writes_go_on_when_a_directory_is_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, away) = (dir.path().join("data"), dir.path().join("away"));
    let (engine, monotonic) = open_with_manual_clock(&path);
    create(&engine, PARTITION).await;
    commit_items(&engine, 0, 1).await;
    fs::rename(&path, &away).unwrap();
    let rows = vec![put(Space::Item, b"more", b"v")];
    let refused = engine.commit(PARTITION, batch(1, rows.clone(), vec![])).await;
    assert!(matches!(refused, Ok(Outcome::Refused(_))), "{refused:?}");
    fs::rename(&away, &path).unwrap();
    // The engine tries again by itself, every second.
    loop {
        match engine.commit(PARTITION, batch(1, rows.clone(), vec![])).await {
            Ok(Outcome::Done(_)) => break,
            Ok(Outcome::Refused(_)) => {
                monotonic.advance(Duration::from_secs(1));
            }
            other => panic!("{other:?}"),
        }
    }
    engine.close().await.unwrap();
    drop(engine);
    assert_eq!(read_all(&open(&path), PARTITION).await.unwrap().head.lsn.0, 2);
}

/// The first start was killed while the LSM store made its file `version`: the file exists and is empty.
#[test]
fn a_first_start_that_was_killed_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let store = dir.path().join("store");
    fs::remove_dir_all(&store).unwrap();
    fs::create_dir(&store).unwrap();
    fs::write(store.join("version"), b"").unwrap();
    drop(open(dir.path()));
}
