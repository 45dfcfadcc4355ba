use bolide_model::UnixSeconds;
use bolide_model::epk::Epk;
use bolide_model::ttl::Class;

use super::*;

const STAMP: Stamp = Stamp {
    class: Class::Never,
    base: UnixSeconds(1),
};

/// Returns an item key, and tombstones that hide its logical partition up to an LSN.
fn item_and_tombstones(upto: u64) -> (Bytes, PartitionKeyTombstones) {
    let item = keys::item(&Epk::default(), 1).bytes;
    let mut tombstones = PartitionKeyTombstones::default();
    tombstones.push(PartitionKeyTombstone {
        epk: Bytes::copy_from_slice(keys::epk_of_item(&item)),
        upto: Lsn(upto),
        horizon: Horizon {
            inherited: 0,
            own: 0,
            dates: DateHorizon::default(),
        },
        from: Bytes::new(),
        hidden: HiddenItems::default(),
    });
    (item, tombstones)
}

#[test]
fn a_view_hides_what_was_written_up_to_the_deletion() {
    let (item, tombstones) = item_and_tombstones(5);
    let published = PublishedTombstones::default();
    let pin = published.pin();
    let before = published.view(pin).expect("nothing was removed");
    assert!(!before.hides(&item, Lsn(5), STAMP));
    published.publish(&tombstones);
    assert!(published.are_any());
    assert!(
        !before.hides(&item, Lsn(5), STAMP),
        "all rows of a read are judged by the same"
    );
    let after = published.view(pin).expect("nothing was removed");
    assert!(after.hides(&item, Lsn(5), STAMP));
    assert!(!after.hides(&item, Lsn(6), STAMP), "written later");
}

#[test]
fn no_view_is_given_to_a_reader_that_began_before_a_tombstone_went() {
    let (_, tombstones) = item_and_tombstones(5);
    let published = PublishedTombstones::default();
    let before_both = published.pin();
    published.publish(&tombstones);
    let before_removal = published.pin();
    published.publish(&tombstones);
    assert!(published.view(before_removal).is_some(), "it is still there");
    published.publish(&PartitionKeyTombstones::default());
    for pin in [before_both, before_removal] {
        assert!(published.view(pin).is_none(), "it may have read what was hidden");
    }
    assert!(!published.are_any());
    assert!(published.view(published.pin()).is_some());
}
