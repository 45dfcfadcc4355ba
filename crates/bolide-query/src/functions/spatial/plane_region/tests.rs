use super::*;

#[test]
fn a_rectangle_meets_an_edge_that_passes_through_it() {
    let at = |x, y| Position { x, y };
    let rectangle = Rectangle {
        from: [0.0, 0.0],
        to: [2.0, 1.0],
    };
    for (edge, expected) in [
        ((at(-1.0, 0.5), at(3.0, 0.5)), true),
        ((at(0.5, 0.5), at(0.6, 0.6)), true),
        ((at(-1.0, 0.0), at(1.0, 2.0)), true),
        ((at(-1.0, 0.1), at(1.0, 2.1)), false),
        ((at(3.0, 0.0), at(3.0, 1.0)), false),
        ((at(2.0, 1.0), at(3.0, 5.0)), true),
        ((at(1.0, 0.5), at(1.0, 0.5)), true),
    ] {
        assert_eq!(meets(&rectangle, edge), expected, "{edge:?}");
    }
}

#[test]
fn coordinates_whose_products_are_not_finite_have_no_region() {
    let extent = Extent::of([0.0, 0.0], [1.0, 1.0]).expect("an extent");
    let has_region = |x, reach| PlaneRegion::of(&Geometry::Point(Position { x, y: 0.0 }), reach, extent).is_some();
    assert!(has_region(1e90, 0.0) && has_region(0.0, 1e90));
    assert!(!has_region(1e200, 0.0) && !has_region(0.0, 1e200));
}
