use proptest::prelude::*;

use super::*;

fn published_container() -> ContainerRid {
    ContainerRid::from_bytes([0x4a, 0x7c, 0x4f, 0x00, 0xe3, 0x36, 0x55, 0xf3]).unwrap()
}

#[test]
fn published_database_reads_and_prints() {
    let rid = DatabaseRid::parse("SnxPAA==").unwrap();
    assert_eq!(rid.bytes(), [0x4a, 0x7c, 0x4f, 0x00]);
    assert_eq!(rid.to_string(), "SnxPAA==");
}

#[test]
fn published_container_reads_and_prints() {
    assert_eq!(ContainerRid::parse("SnxPAOM2VfM="), Some(published_container()));
    assert_eq!(published_container().to_string(), "SnxPAOM2VfM=");
    assert_eq!(published_container().database().to_string(), "SnxPAA==");
}

#[test]
fn published_item_reads_and_prints() {
    let rid = ItemRid::new(published_container(), 1);
    assert_eq!(rid.to_string(), "SnxPAOM2VfMBAAAAAAAAAA==");
    assert_eq!(ItemRid::parse("SnxPAOM2VfMBAAAAAAAAAA=="), Some(rid));
}

#[test]
fn published_range_reads_and_prints() {
    let rid = ChildRid::new(published_container(), ChildKind::PartitionKeyRange, 2);
    assert_eq!(rid.to_string(), "SnxPAOM2VfMCAAAAAAAAUA==");
    assert_eq!(ChildRid::parse("SnxPAOM2VfMCAAAAAAAAUA=="), Some(rid));
}

#[test]
fn slash_of_base64_is_written_as_a_minus() {
    let rid = DatabaseRid::new(u32::from_le_bytes([0xff, 0xff, 0xfb, 0x00]));
    assert_eq!(rid.to_string(), "---7AA==");
    assert_eq!(DatabaseRid::parse("---7AA=="), Some(rid));
    assert_eq!(DatabaseRid::parse("///7AA=="), None);
}

#[test]
fn first_database_ends_in_a_zero_byte() {
    assert_eq!(DatabaseRid::new(1).to_string(), "AQAAAA==");
    assert_eq!(DatabaseRid::new(0xff_ffff).bytes()[3], 0);
}

#[test]
fn users_and_containers_of_one_number_differ() {
    let database = DatabaseRid::new(7);
    let (user, container) = (
        UserRid::new(database, 1).to_string(),
        ContainerRid::new(database, 1).to_string(),
    );
    assert_eq!(UserRid::parse(&container), None);
    assert_eq!(ContainerRid::parse(&user), None);
    assert_eq!(UserRid::parse(&user).map(UserRid::database), Some(database));
}

#[test]
fn child_kinds_do_not_read_as_items() {
    for kind in ChildKind::ALL {
        let text = ChildRid::new(published_container(), kind, 1).to_string();
        assert_eq!(ItemRid::parse(&text), None, "{kind:?}");
    }
    assert_eq!(ChildRid::parse("SnxPAOM2VfMBAAAAAAAAAA=="), None);
}

#[test]
fn texts_that_are_not_rids_are_refused() {
    for text in [
        "",
        "db",
        "SnxPAA",
        "SnxPAA=",
        "SnxPAB==",
        "SnxPA===",
        "SnxP AA=",
        "SnxPAOM2VfMBAAAAAAAAAAAAAAAAAAAA",
        "é",
    ] {
        assert_eq!(DatabaseRid::parse(text), None, "{text:?}");
        assert_eq!(ItemRid::parse(text), None, "{text:?}");
    }
}

#[test]
fn offers_have_four_characters() {
    assert_eq!(OfferRid::new(1).to_string(), "AQAA");
    assert_eq!(OfferRid::parse("AQAA"), Some(OfferRid::new(1)));
}

proptest! {
    #[test]
    fn every_rid_reads_back(database: u32, container in 0..1_u32 << 31, number in 0..1_u64 << 56) {
        let database = DatabaseRid::new(database);
        prop_assert_eq!(DatabaseRid::parse(&database.to_string()), Some(database));
        let user = UserRid::new(database, container);
        prop_assert_eq!(UserRid::parse(&user.to_string()), Some(user));
        let permission = PermissionRid::new(user, number);
        prop_assert_eq!(PermissionRid::parse(&permission.to_string()), Some(permission));
        let container = ContainerRid::new(database, container);
        prop_assert_eq!(ContainerRid::parse(&container.to_string()), Some(container));
        prop_assert_eq!(container.database(), database);
        let item = ItemRid::new(container, number);
        prop_assert_eq!(ItemRid::parse(&item.to_string()), Some(item));
        for kind in ChildKind::ALL {
            let child = ChildRid::new(container, kind, number);
            prop_assert_eq!(ChildRid::parse(&child.to_string()), Some(child));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if let Some(rid) = ItemRid::parse(&text) {
            prop_assert_eq!(rid.to_string(), text);
        }
    }
}
