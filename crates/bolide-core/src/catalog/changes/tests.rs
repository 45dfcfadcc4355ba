use bolide_model::ErrorKind;
use bolide_model::rid::{DatabaseRid, UserRid};
use bolide_storage::PartitionId;

use super::*;

#[test]
fn an_entry_names_the_rows_of_its_commit() {
    let database = DatabaseRid::new(1);
    let rows = [
        RowKey::Account,
        RowKey::User(UserRid::new(database, 2)),
        RowKey::Dropped(PartitionId(3)),
    ];
    let value = encode(rows.into_iter());
    assert_eq!(
        value,
        b"\0\x01A\0\x09U\x01\0\0\0\0\0\0\x02\0\x09X\0\0\0\0\0\0\0\x03"[..]
    );
    assert_eq!(decode(&value).unwrap(), rows);
    assert_eq!(lsn_of(&key(Lsn(7)).bytes).unwrap(), Lsn(7));
}

#[test]
fn a_damaged_entry_is_refused() {
    for damaged in [&b"\0"[..], b"\0\x02A", b"\0\x01?", b"\0\x01A\0"] {
        assert_eq!(decode(damaged).unwrap_err().kind, ErrorKind::Corrupt);
    }
    assert_eq!(lsn_of(b"short").unwrap_err().kind, ErrorKind::Corrupt);
}
