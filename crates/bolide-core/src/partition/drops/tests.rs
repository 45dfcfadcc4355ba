use bolide_model::UnixSeconds;
use bolide_model::epk::Epk;
use bolide_model::ttl::Class;

use super::*;

fn dropped(epk: &'static [u8], upto: u64) -> Dropped {
    Dropped {
        epk: Bytes::from_static(epk),
        upto: Lsn(upto),
        horizon: Horizon { inherited: 0, own: 0 },
        from: Bytes::new(),
    }
}

#[test]
fn what_was_read_before_its_removal_stays_hidden_when_the_removal_is_done() {
    let began = Instant::now();
    let after = |seconds| move || began + Duration::from_secs(seconds);
    let item = keys::item(&Epk::default(), 1).bytes;
    let epk: &'static [u8] = keys::epk_of_item(&item).to_vec().leak();
    let stamp = Stamp {
        class: Class::Never,
        base: UnixSeconds(1),
    };
    let published = PublishedDrops::default();
    let is_hidden = || published.hiding().hides_version(&item, Lsn(5), stamp);
    assert!(!is_hidden());
    let before = published.hiding();

    let mut drops = Drops::default();
    drops.push(dropped(epk, 5));
    published.publish_at(&drops, after(0));
    assert!(is_hidden() && published.are_any());
    assert!(
        !before.hides_version(&item, Lsn(5), stamp),
        "all rows of a read are judged by the same"
    );
    assert!(!published.hiding().hides_version(&item, Lsn(6), stamp), "written later");

    published.publish_at(&Drops::default(), after(1));
    assert!(!published.are_any(), "nothing is left to remove");
    assert!(is_hidden(), "a reader may have read it before");
    published.publish_at(&Drops::default(), after(2));
    assert!(is_hidden());
    published.publish_at(&Drops::default(), after(12));
    assert!(!is_hidden() && !published.may_hide(), "nobody has read it so long ago");
}
