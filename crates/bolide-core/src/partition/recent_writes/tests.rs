use bolide_model::Lsn;
use bolide_storage::{Key, Space};
use bytes::Bytes;

use super::{Interest, MAX_KEYS, RecentWrites};
use crate::partition::write_batch::Changes;

fn key(name: &'static str) -> Key {
    Key::new(Space::Item, Bytes::from_static(name.as_bytes()))
}

fn between(writes: &RecentWrites, from: u64, to: u64) -> Option<Vec<Key>> {
    Some(writes.between(Lsn(from), Lsn(to))?.cloned().collect())
}

#[test]
fn keys_are_those_of_all_commits_between_two_heads() {
    let mut writes = RecentWrites::default();
    writes.note(Lsn(4), Lsn(5), Some(vec![key("a")]));
    writes.note(Lsn(5), Lsn(8), Some(vec![key("b"), key("c")]));
    writes.note(Lsn(8), Lsn(9), Some(vec![key("d")]));
    assert_eq!(between(&writes, 5, 9), Some(vec![key("b"), key("c"), key("d")]));
    assert_eq!(between(&writes, 9, 9), Some(vec![]));
    assert_eq!(between(&writes, 3, 9), None, "nothing is known of the commit at 3");
    assert_eq!(between(&writes, 6, 9), None, "no commit began at 6");
    assert_eq!(between(&writes, 4, 8), None, "8 is not the newest head");
}

#[test]
fn a_commit_of_which_nothing_is_known_ends_what_is_known() {
    let mut writes = RecentWrites::default();
    writes.note(Lsn(1), Lsn(2), Some(vec![key("a")]));
    writes.note(Lsn(2), Lsn(3), None);
    writes.note(Lsn(3), Lsn(4), Some(vec![key("b")]));
    assert_eq!(between(&writes, 1, 4), None);
    assert_eq!(between(&writes, 3, 4), Some(vec![key("b")]));
    // Somebody else wrote between 4 and 6.
    writes.note(Lsn(6), Lsn(7), Some(vec![key("c")]));
    assert_eq!(between(&writes, 3, 7), None);
    assert_eq!(between(&writes, 6, 7), Some(vec![key("c")]));
}

#[test]
fn the_oldest_commits_are_forgotten() {
    let mut writes = RecentWrites::default();
    writes.note(Lsn(1), Lsn(2), Some(vec![key("a")]));
    writes.note(Lsn(2), Lsn(3), Some(vec![key("b"); MAX_KEYS]));
    assert_eq!(between(&writes, 1, 3), None);
    assert_eq!(between(&writes, 2, 3).map(|keys| keys.len()), Some(MAX_KEYS));
}

#[test]
fn keys_are_kept_only_while_somebody_wants_to_know() {
    let interest = Interest::default();
    let writes = RecentWrites::of(&interest);
    let changes = Changes {
        new_keys: Vec::new(),
        next: Lsn(2),
        puts: Vec::new(),
        deletes: vec![key("a")],
    };
    assert_eq!(writes.keys_of(&changes), None);
    let interested = interest.clone();
    assert_eq!(writes.keys_of(&changes), Some(vec![key("a")]));
    drop(interested);
    assert_eq!(writes.keys_of(&changes), None);
}
