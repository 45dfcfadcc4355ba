use bolide_model::rid::DatabaseRid;
use bolide_model::ttl::Class;

use super::*;
use crate::format::keys::LogPosition;
use crate::format::record::Content;
use crate::format::record::Parts;

fn item(number: u64, ts: i64, document: &str) -> StoredItem {
    let ts = UnixSeconds(ts);
    let record = Record::new(&Parts {
        version: LogPosition { lsn: Lsn(7), seq: 0 },
        last_modified: ts,
        stamp: Stamp {
            class: Class::Never,
            base: ts,
        },
        etag: Etag(u128::from(number) << 60 | 5),
        number,
        id: b"a",
        deadlines: &[],
        content: Content::Json,
        unique: &[],
        document: document.as_bytes(),
    });
    StoredItem::new(ContainerRid::new(DatabaseRid::new(9), 3), record)
}

#[test]
fn system_properties_are_as_long_as_they_say() {
    for (number, ts) in [
        (1, 0),
        (70_000, 9),
        (1 << 55, 10),
        (2, 1_700_000_000),
        (3, -7),
        (4, i64::MIN),
    ] {
        let item = item(number, ts, "{}");
        let mut members = String::new();
        item.write_members(&mut members);
        assert_eq!(item.members_bytes(), members.len(), "{members}");
        assert_eq!(item.to_json(), format!("{{{members}}}"));
    }
}

#[test]
fn what_a_query_sees_of_an_item_is_what_clients_see() {
    for document in ["{}", r#"{"id":"a"}"#] {
        let item = item(1, 1_700_000_000, document);
        let pushed = bolide_query::Item::stored(document.as_bytes(), &item).expect("UTF-8");
        assert_eq!(format!("{pushed:?}").as_bytes(), &item.to_json()[..]);
    }
}
