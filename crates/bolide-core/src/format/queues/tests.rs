use bolide_model::Lsn;

use super::*;

const VERSION: LogPosition = LogPosition { lsn: Lsn(7), seq: 2 };

#[test]
fn an_entry_of_the_expiry_queue_is_due_by_its_key() {
    let position = ExpiryPosition {
        base: UnixSeconds(50),
        version: VERSION,
    };
    let value = ExpiryEntry {
        size: 3,
        item_key: Bytes::from_static(b"key"),
    };
    let entry = ExpiryPosition::entry(&position.to_bytes(), &value.encode()).expect("an entry");
    assert!(entry.belongs());
    assert_eq!((entry.position, entry.version, entry.size), (position, VERSION, 3));
    assert_eq!(entry.stamp.base, UnixSeconds(50));
    assert_eq!(entry.item_key, "key");
    assert!(ExpiryPosition::of_base(50) <= Some(position) && ExpiryPosition::of_base(51) > Some(position));
}

#[test]
fn entries_of_the_log_with_a_ttl_of_their_own_are_stepped_over() {
    for (class, belongs) in [(Class::Inherited, true), (Class::Own, false), (Class::Never, false)] {
        let value = LogEntry {
            class,
            last_modified: UnixSeconds(50),
            size: 3,
            item_key: Bytes::from_static(b"key"),
        };
        let entry = LogPosition::entry(&VERSION.to_bytes(), &value.encode()).expect("an entry");
        assert_eq!(entry.belongs(), belongs, "{class:?}");
    }
}

#[test]
fn the_log_ends_where_the_history_begins() {
    let history = keys::history(LogPosition::default()).bytes;
    let to = scan(LogPosition::default(), None, 1, 1).to.expect("an end");
    assert!(VERSION.to_bytes() < to && to <= history);
}

#[test]
fn damaged_rows_are_errors() {
    assert!(ExpiryPosition::entry(b"short", &Bytes::new()).is_err());
    assert!(LogPosition::entry(&VERSION.to_bytes(), &Bytes::new()).is_err());
}
