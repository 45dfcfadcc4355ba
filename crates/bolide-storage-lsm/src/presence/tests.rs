//! Claims about files that disappear.

use super::*;

fn new_fixture() -> (tempfile::TempDir, PathBuf, Presence) {
    let dir = tempfile::tempdir().unwrap();
    let store_dir = dir.path().join("data");
    fs::create_dir_all(store_dir.join("store")).unwrap();
    fs::write(store_dir.join("lock"), "").unwrap();
    fs::write(store_dir.join("store").join("3.jnl"), "").unwrap();
    let presence = Presence::of(store_dir.join("lock"), store_dir.join("store")).unwrap();
    (dir, store_dir, presence)
}

#[test]
fn files_in_their_place_are_present_and_journals_may_move_on() {
    let (_dir, store_dir, mut presence) = new_fixture();
    presence.check().unwrap();
    fs::write(store_dir.join("store").join("4.jnl"), "").unwrap();
    presence.check().unwrap();
    fs::remove_file(store_dir.join("store").join("3.jnl")).unwrap();
    presence.check().unwrap();
}

#[test]
fn removed_moved_and_replaced_directories_are_noticed() {
    let (_dir, store_dir, mut presence) = new_fixture();
    let away = store_dir.with_extension("away");
    fs::rename(&store_dir, &away).unwrap();
    assert!(presence.check().unwrap_err().contains("was removed, moved or replaced"));
    fs::create_dir(&store_dir).unwrap();
    fs::write(store_dir.join("lock"), "").unwrap();
    assert!(presence.check().is_err(), "another directory of the same name");
    fs::remove_dir_all(&store_dir).unwrap();
    fs::rename(&away, &store_dir).unwrap();
    presence.check().unwrap();
}

#[test]
fn removed_journal_is_noticed() {
    let (_dir, store_dir, mut presence) = new_fixture();
    fs::remove_file(store_dir.join("store").join("3.jnl")).unwrap();
    assert!(presence.check().unwrap_err().contains("the journal was removed"));
}
