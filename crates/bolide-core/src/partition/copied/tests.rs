use std::sync::Arc;

use bolide_storage::{Key, Space};
use bytes::Bytes;

use super::*;
use crate::format::keys;

fn key(name: &str) -> Key {
    Key::new(Space::Index, Bytes::copy_from_slice(name.as_bytes()))
}

fn recording(bytes: usize) -> (CopyRecording, Arc<DirtyKeys>) {
    let dirty = Arc::<DirtyKeys>::default();
    (CopyRecording::start(&dirty, ChangedBudget::new(bytes)), dirty)
}

#[test]
fn all_keys_but_that_of_the_seal_are_recorded_once() {
    let (recording, dirty) = recording(10_000);
    dirty.record(vec![key("a"), keys::state(), keys::write_seal(), key("a")]);
    let mut taken = recording.take(10);
    taken.keys.sort();
    let mut expected = vec![key("a"), keys::state()];
    expected.sort();
    assert_eq!((taken.keys, taken.left, taken.is_lost), (expected, 0, false));
    assert_eq!(recording.take(10), TakenKeys::default());
}

#[test]
fn some_keys_are_taken_and_others_left() {
    let (recording, dirty) = recording(10_000);
    dirty.record(["a", "b", "c"].map(key).to_vec());
    let taken = recording.take(2);
    assert_eq!((taken.keys.len(), taken.left), (2, 1));
    recording.put_back(&taken.keys);
    assert_eq!(recording.take(10).keys.len(), 3);
}

#[test]
fn more_keys_than_memory_admits_let_the_partition_be_compared() {
    let (recording, dirty) = recording(2 * (KEY_BYTES + 1));
    dirty.record(["a", "b", "c"].map(key).to_vec());
    let taken = recording.take(10);
    assert_eq!((taken.keys.len(), taken.is_lost), (0, true));
    // The memory is free again.
    dirty.record(["a", "b"].map(key).to_vec());
    let taken = recording.take(10);
    assert_eq!((taken.keys.len(), taken.is_lost), (2, false));
}

#[test]
fn a_recording_that_another_has_replaced_neither_takes_nor_ends_it() {
    let (first, dirty) = recording(10_000);
    dirty.record(vec![key("a")]);
    let second = CopyRecording::start(&dirty, ChangedBudget::new(10_000));
    dirty.record(vec![key("b")]);
    assert!(first.take(10).is_lost);
    drop(first);
    dirty.record(vec![key("c")]);
    assert_eq!(second.take(10).keys.len(), 2);
}

#[test]
fn a_change_by_others_lets_the_partition_be_compared() {
    let (recording, dirty) = recording(10_000);
    dirty.record(vec![key("a")]);
    dirty.lose_track();
    assert!(recording.take(10).is_lost);
    drop(recording);
    dirty.record(vec![key("a")]);
    assert!(dirty.copied.recorded.lock().keys.is_empty(), "nobody takes them");
}
