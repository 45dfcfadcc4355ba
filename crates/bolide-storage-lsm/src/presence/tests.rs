//! Claims about files that go.

use super::*;

fn stage() -> (tempfile::TempDir, PathBuf, Presence) {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("data");
    fs::create_dir_all(home.join("store")).unwrap();
    fs::write(home.join("lock"), "").unwrap();
    fs::write(home.join("store").join("3.jnl"), "").unwrap();
    let presence = Presence::of(home.join("lock"), home.join("store")).unwrap();
    (dir, home, presence)
}

#[test]
fn files_in_their_place_are_present_and_journals_may_move_on() {
    let (_dir, home, mut presence) = stage();
    presence.check().unwrap();
    fs::write(home.join("store").join("4.jnl"), "").unwrap();
    presence.check().unwrap();
    fs::remove_file(home.join("store").join("3.jnl")).unwrap();
    presence.check().unwrap();
}

#[test]
fn removed_moved_and_replaced_directories_are_noticed() {
    let (_dir, home, mut presence) = stage();
    let away = home.with_extension("away");
    fs::rename(&home, &away).unwrap();
    assert!(presence.check().unwrap_err().contains("was removed, moved or replaced"));
    fs::create_dir(&home).unwrap();
    fs::write(home.join("lock"), "").unwrap();
    assert!(presence.check().is_err(), "another directory of the same name");
    fs::remove_dir_all(&home).unwrap();
    fs::rename(&away, &home).unwrap();
    presence.check().unwrap();
}

#[test]
fn removed_journal_is_noticed() {
    let (_dir, home, mut presence) = stage();
    fs::remove_file(home.join("store").join("3.jnl")).unwrap();
    assert!(presence.check().unwrap_err().contains("the journal was removed"));
}
