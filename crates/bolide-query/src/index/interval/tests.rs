use proptest::prelude::*;

use super::*;

fn interval(from: u8, to: Option<u8>) -> Interval {
    Interval {
        from: vec![from],
        to: to.map(|to| vec![to]),
    }
}

#[test]
fn overlaps_become_one_and_touching_ones_stay_apart() {
    let list = vec![
        interval(7, None),
        interval(1, Some(3)),
        interval(2, Some(4)),
        interval(4, Some(5)),
        interval(9, Some(10)),
        interval(1, Some(2)),
    ];
    assert_eq!(
        union(list),
        [interval(1, Some(4)), interval(4, Some(5)), interval(7, None)]
    );
}

#[test]
fn an_interval_has_its_lower_end_only() {
    let interval = Interval::of_prefix(vec![4]);
    let inside = [&[4][..], &[4, 0], &[4, 0xFF, 0xFF]];
    assert!(inside.iter().all(|key| interval.contains(key)));
    assert!(!interval.contains(&[3, 0xFF]) && !interval.contains(&[5]));
    assert_eq!(Interval::new(vec![4], Some(vec![4])), None);
}

fn intervals() -> impl Strategy<Value = Vec<Interval>> {
    let one = (0..12_u8, proptest::option::weighted(0.9, 1..6_u8));
    prop::collection::vec(
        one.prop_map(|(from, length)| interval(from, length.map(|length| from + length))),
        0..8,
    )
}

fn is_normal(list: &[Interval]) -> bool {
    list.iter().all(|own| own.to.as_ref().is_none_or(|to| own.from < *to))
        && list
            .windows(2)
            .all(|pair| pair[0].to.as_ref().is_some_and(|to| *to <= pair[1].from))
}

proptest! {
    #[test]
    fn unions_and_intersections_have_the_keys_they_should(a in intervals(), b in intervals()) {
        let has = |list: &[Interval], key: u8| list.iter().any(|own| own.contains(&[key]));
        let (left, right) = (union(a.clone()), union(b.clone()));
        let both = intersection(&left, &right);
        prop_assert!(is_normal(&left) && is_normal(&both), "{:?} {:?}", left, both);
        for key in 0..20 {
            prop_assert_eq!(has(&left, key), has(&a, key));
            prop_assert_eq!(has(&both, key), has(&a, key) && has(&b, key), "{} in {:?} {:?}", key, left, right);
        }
    }
}
