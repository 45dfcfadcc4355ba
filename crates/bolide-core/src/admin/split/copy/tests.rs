use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Head, Key, Space};
use bytes::Bytes;

use super::CopyScan;
use crate::format::keys::{self, LogPosition};

fn at(lsn: u64) -> Head {
    Head {
        lsn: Lsn(lsn),
        ..Head::first(UnixMillis(0))
    }
}

fn log(lsn: u64) -> Key {
    position(lsn).key()
}

fn position(lsn: u64) -> LogPosition {
    LogPosition { lsn: Lsn(lsn), seq: 0 }
}

fn item(name: &'static str) -> Key {
    Key::new(Space::Item, name)
}

#[test]
fn what_lies_before_the_next_page_is_copied() {
    let mut items = CopyScan::over(Space::Item, Bytes::new(), None);
    assert!(!items.has_copied(&item("a")));
    items.advance(at(9), Some("m".into()));
    let copied = ["a", "m", "m\0", "z"].map(|name| items.has_copied(&item(name)));
    assert_eq!(copied, [true, true, false, false]);
    assert!(
        !items.has_copied(&Key::new(Space::Index, "a")),
        "another space has its own walk"
    );
    items.advance(at(9), None);
    assert!(items.has_copied(&item("z")));
}

#[test]
fn pages_of_the_log_end_where_it_stood_when_they_began() {
    let mut entries = CopyScan::over(Space::Log, Bytes::new(), Some(keys::log_end()));
    assert!(!entries.has_copied(&log(12)), "the first page will have it");
    entries.advance(at(10), Some(log(4).bytes));
    let copied = [4, 5, 10, 11, 12].map(|lsn| entries.has_copied(&log(lsn)));
    assert_eq!(copied, [true, false, false, true, true]);
    entries.advance(at(20), Some(log(8).bytes));
    let copied = [8, 9, 10, 11].map(|lsn| entries.has_copied(&log(lsn)));
    assert_eq!(copied, [true, false, false, true], "the end stays");
    // More follows, but nothing that pages need to copy.
    entries.advance(at(30), Some(log(10).bytes));
    assert!(entries.has_copied(&log(10)));
    assert!(!entries.has_copied(&keys::history(position(1))));
}

#[test]
fn the_history_behind_the_log_has_its_own_end() {
    let mut history = CopyScan::over(Space::Log, keys::log_end(), None);
    history.advance(at(10), Some(keys::history(position(4)).bytes));
    let copied = [4, 5, 10, 11].map(|lsn| history.has_copied(&keys::history(position(lsn))));
    assert_eq!(copied, [true, false, false, true]);
    assert!(!history.has_copied(&log(1)));
}
