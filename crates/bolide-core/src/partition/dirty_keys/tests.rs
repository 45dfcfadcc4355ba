use std::sync::Arc;

use bolide_model::{ErrorKind, Lsn};
use bolide_storage::{Key, Put, Space};
use bytes::Bytes;

use super::{DirtyKeys, MAX_BYTES, Recording};
use crate::format::keys::{self, LogPosition};
use crate::partition::write_batch::Changes;

fn key(space: Space, name: &str) -> Key {
    Key::new(space, Bytes::copy_from_slice(name.as_bytes()))
}

fn changes(puts: &[Key], deletes: &[Key]) -> Changes {
    let puts = puts.iter().map(|key| Put {
        key: key.clone(),
        value: Bytes::new(),
    });
    Changes {
        new_keys: Vec::new(),
        next: Lsn(1),
        puts: puts.collect(),
        deletes: deletes.to_vec(),
    }
}

#[test]
fn keys_are_recorded_once_and_only_while_somebody_takes_them() {
    let dirty = Arc::<DirtyKeys>::default();
    let (a, b) = (key(Space::Item, "a"), keys::history(LogPosition::default()));
    let left_out = [Space::Meta, Space::Index, Space::Log, Space::Expiry].map(|space| key(space, "S"));
    let commit = changes(
        &[&left_out[..2], std::slice::from_ref(&a)].concat(),
        &[&left_out[2..], std::slice::from_ref(&b)].concat(),
    );
    assert_eq!(dirty.keys_of(&commit), []);
    let recording = Recording::start(&dirty);
    for _ in 0..2 {
        dirty.record(dirty.keys_of(&commit));
    }
    let mut taken = recording.take().expect("all are known");
    taken.sort();
    assert_eq!(taken, [a.clone(), b]);
    assert_eq!(recording.take().expect("all are known"), []);
    dirty.record(vec![a.clone()]);
    drop(recording);
    dirty.record(vec![a]);
    assert_eq!(Recording::start(&dirty).take().expect("all are known"), []);
}

#[test]
fn too_many_keys_and_unknown_changes_are_told() {
    let dirty = Arc::<DirtyKeys>::default();
    let recording = Recording::start(&dirty);
    let long = "x".repeat(MAX_BYTES / 2);
    dirty.record(vec![key(Space::Item, &format!("{long}1"))]);
    assert!(recording.take().is_ok());
    dirty.record(vec![key(Space::Item, &long), key(Space::Item, &format!("{long}2"))]);
    assert_eq!(
        recording.take().map_err(|error| error.kind),
        Err(ErrorKind::Unavailable)
    );
    drop(recording);
    let recording = Recording::start(&dirty);
    assert!(recording.take().is_ok(), "it begins anew");
    dirty.lose_track();
    assert_eq!(
        recording.take().map_err(|error| error.kind),
        Err(ErrorKind::Unavailable)
    );
}
