use bolide_model::ttl::{Class, Deadline, RuleId, Stamp};
use bolide_model::{Lsn, UnixMillis, UnixSeconds};

use super::*;
use crate::format::etag::Etag;
use crate::format::keys::{DIGEST_BYTES, LogPosition, UniqueKey};
use crate::format::record::{Content, Parts};

fn record(class: Class) -> Record {
    Record::new(&Parts {
        version: LogPosition { lsn: Lsn(7), seq: 1 },
        last_modified: UnixSeconds(100),
        stamp: Stamp {
            class,
            base: UnixSeconds(160),
        },
        etag: Etag(1),
        number: 9,
        id: b"id",
        deadlines: &[],
        unique: &[(0, 0xA1), (1, 0xA2)].map(|(index, byte)| UniqueKey {
            index,
            digest: [byte; DIGEST_BYTES],
        }),
        content: Content::Json,
        document: b"{}",
    })
}

/// An item key: an effective partition key `E`, then the number.
const ITEM_KEY: &[u8] = b"E\0\0\0\0\0\0\0\x09";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn entries(class: Class) -> Vec<(Space, String, String)> {
    let (key, record) = (Bytes::from_static(ITEM_KEY), record(class));
    let entries = of(&PropertyIndexes::default(), &key, &record);
    entries
        .map(|entry| (entry.key.space, hex(&entry.key.bytes), hex(&entry.value())))
        .collect()
}

#[test]
fn an_item_has_these_entries_to_the_byte() {
    let item_key = hex(ITEM_KEY);
    let entry = |space, key: &str, value: &str| (space, key.replace(' ', ""), value.replace(' ', ""));
    let unique = |at: &str, digest: &str| {
        let key = format!("55 {at} 45 {}", digest.repeat(DIGEST_BYTES));
        entry(Space::Index, &key, &item_key)
    };
    assert_eq!(
        entries(Class::Own),
        [
            entry(Space::Index, "49 45 6964", "0000000000000009"),
            unique("00", "a1"),
            unique("01", "a2"),
            entry(
                Space::Log,
                "0000000000000007 00000001",
                &format!("01 0000000000000064 00000002 {item_key}")
            ),
            entry(
                Space::Expiry,
                "80000000000000a0 0000000000000007 00000001",
                &format!("00000002 {item_key}")
            ),
        ]
    );
}

#[test]
fn only_a_ttl_of_its_own_puts_an_item_into_the_expiry_queue() {
    for class in [Class::Inherited, Class::Never] {
        let spaces: Vec<Space> = entries(class).into_iter().map(|(space, ..)| space).collect();
        assert_eq!(
            spaces,
            [Space::Index, Space::Index, Space::Index, Space::Log],
            "{class:?}"
        );
    }
}

#[test]
fn entries_are_told_from_what_they_follow_from() {
    let (key, record) = (Bytes::from_static(ITEM_KEY), record(Class::Own));
    assert!(of(&PropertyIndexes::default(), &key, &record).all(|entry| is_entry(&entry.key)));
    let history = keys::history(record.version());
    for other in [Key::new(Space::Item, key), history, keys::state()] {
        assert!(!is_entry(&other), "{other:?}");
    }
}

#[test]
fn a_document_has_these_entries_to_the_byte() {
    let (date, unique) = (
        |rule, date| Deadline {
            rule: RuleId(rule),
            date: UnixMillis(date),
        },
        UniqueKey {
            index: 3,
            digest: [0xA1; DIGEST_BYTES],
        },
    );
    let record = Record::new(&Parts {
        version: LogPosition { lsn: Lsn(7), seq: 1 },
        last_modified: UnixSeconds(100),
        stamp: Stamp {
            class: Class::Inherited,
            base: UnixSeconds(100),
        },
        etag: Etag(1),
        number: 9,
        id: b"id",
        deadlines: &[date(1, 0x102), date(5, -1)],
        unique: &[unique],
        content: Content::Bson,
        document: b"document",
    });
    let key = Bytes::from_static(ITEM_KEY);
    let queued = |key: &str| {
        (
            Space::Expiry,
            key.replace(' ', ""),
            format!("00000008{}", hex(ITEM_KEY)),
        )
    };
    let entries: Vec<_> = of(&PropertyIndexes::default(), &key, &record)
        .filter(|entry| matches!(entry.key.space, Space::Expiry) || entry.key.bytes.starts_with(b"K"))
        .map(|entry| (entry.key.space, hex(&entry.key.bytes), hex(&entry.value())))
        .collect();
    assert_eq!(
        entries,
        [
            (
                Space::Index,
                format!("4b0000000345{}", "a1".repeat(DIGEST_BYTES)),
                hex(ITEM_KEY)
            ),
            queued("fd 00000001 8000000000000102 0000000000000007 00000001"),
            queued("fd 00000005 7fffffffffffffff 0000000000000007 00000001"),
        ]
    );
}

#[test]
fn a_property_index_has_an_entry_for_each_value() {
    let (key, item) = (Bytes::from_static(ITEM_KEY), record(Class::Inherited));
    let mut indexes = PropertyIndexes::default();
    let values = |text: &str| IndexKind::Values(std::sync::Arc::new(IndexPath::parse(text).expect("a path")));
    indexes.add(values("/none/?"), true);
    indexes.add(values("/missing/?"), false);
    let entries = |record: &Record| -> Vec<String> {
        let entries = property_entries(&indexes.list, &key, record).into_iter();
        entries.map(|(key, _)| hex(&key.bytes)).collect()
    };
    // 'P', the index, the value, the number, the epk and its length.
    let undefined = "50 00000002 18 0000000000000009 45 01".replace(' ', "");
    assert_eq!(
        entries(&item),
        [undefined],
        "only an index that a policy names has items without a value"
    );
    let values: Vec<Bytes> = property_entries(&indexes.list, &key, &item)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    // `{}`, and with a `_ts` of three digits 197 bytes of system properties.
    assert_eq!(values, [&b"\0\0\0\xC7id"[..]]);
    let entry = of(&indexes, &key, &item).find(|entry| entry.key.bytes.starts_with(b"P"));
    let admits = |stored: &'static [u8]| entry.as_ref().expect("an entry").admits(&Bytes::from_static(stored));
    assert_eq!(
        [admits(b"\0\0\0\xC7id"), admits(b""), admits(b"\0\0\0\xC7no")],
        [true, true, false],
        "entries had no values at first"
    );
    let entry = keys::property_entry(7, &[0x20], ITEM_KEY);
    let parsed = PropertyEntry::parse(&entry.bytes).expect("an entry");
    assert_eq!(
        (parsed.index, parsed.value, &parsed.item_key()[..]),
        (7, &[0x20][..], ITEM_KEY)
    );
}
