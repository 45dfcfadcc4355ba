use super::*;

fn ring(points: &[(f64, f64)]) -> Vec<Point> {
    points.iter().map(|(lng, lat)| point(*lng, *lat)).collect()
}

#[test]
fn angles_are_exact_at_both_ends() {
    let cases = [
        ((0.0, 0.0), (90.0, 0.0), FRAC_PI_2),
        ((0.0, 0.0), (180.0, 0.0), PI),
        ((10.0, 90.0), (200.0, -90.0), PI),
        ((7.0, 7.0), (7.0, 7.0), 0.0),
        ((179.5, 0.0), (-179.5, 0.0), 1.0_f64.to_radians()),
    ];
    for (a, b, expected) in cases {
        let found = angle(point(a.0, a.1), point(b.0, b.1));
        assert!((found - expected).abs() < 1e-12, "{a:?} {b:?}: {found}");
    }
}

#[test]
fn the_distance_to_an_edge_is_to_its_nearest_point() {
    let (a, b) = (point(0.0, 0.0), point(10.0, 0.0));
    for (p, degrees) in [
        ((5.0, 3.0), 3.0),
        ((5.0, -3.0), 3.0),
        ((-4.0, 0.0), 4.0),
        ((13.0, 0.0), 3.0),
        ((10.0, 2.0), 2.0),
        ((5.0, 0.0), 0.0),
        // On the same great circle, on the other side of the sphere.
        ((-175.0, 0.0), 175.0),
    ] {
        let found = distance_to_edge(point(p.0, p.1), a, b).to_degrees();
        assert!((found - degrees).abs() < 1e-9, "{p:?}: {found}");
    }
}

#[test]
fn edges_cross_inside_both() {
    let edge = |a: (f64, f64), b: (f64, f64)| (point(a.0, a.1), point(b.0, b.1));
    let across = edge((-1.0, 0.0), (1.0, 0.0));
    for (other, crosses, touches) in [
        (edge((0.0, -1.0), (0.0, 1.0)), true, true),
        (edge((0.0, 1.0), (0.0, 2.0)), false, false),
        (edge((0.0, 0.0), (0.0, 2.0)), false, true),
        (edge((1.0, 0.0), (2.0, 2.0)), false, true),
        // On the other side of the sphere.
        (edge((180.0, -1.0), (180.0, 1.0)), false, false),
    ] {
        assert_eq!(do_cross(across.0, across.1, other.0, other.1), crosses, "{other:?}");
        assert_eq!(do_touch(across.0, across.1, other.0, other.1), touches, "{other:?}");
    }
}

#[test]
fn the_smaller_area_is_inside_in_both_directions() {
    let square = ring(&[(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]);
    let mut reversed = square.clone();
    reversed.reverse();
    for ring in [Ring::smaller(square.clone()), Ring::smaller(reversed.clone())] {
        assert!(ring.has_inside(point(1.0, 1.0)));
        assert!(!ring.contains(point(3.0, 1.0)));
        assert!(!ring.contains(point(-179.0, -1.0)), "the opposite side");
        for (lng, lat) in [(0.0, 0.0), (2.0, 2.0), (1.0, 0.0), (2.0, 1.0)] {
            assert!(
                ring.contains(point(lng, lat)) && !ring.has_inside(point(lng, lat)),
                "{lng} {lat}"
            );
        }
    }
    let left = Ring::left(square);
    let right = Ring::left(reversed);
    assert!(left.contains(point(1.0, 1.0)) && !left.contains(point(50.0, 50.0)));
    assert!(!right.contains(point(1.0, 1.0)) && right.contains(point(50.0, 50.0)));
    assert!(right.contains(point(1.0, 0.0)), "edges belong to it");
}

#[test]
fn edges_are_arcs_of_great_circles() {
    // Between 60° west and 60° east the northern edge runs well north of 60°.
    let wide = Ring::smaller(ring(&[(-60.0, 0.0), (60.0, 0.0), (60.0, 60.0), (-60.0, 60.0)]));
    assert!(wide.contains(point(0.0, 70.0)));
    assert!(!wide.contains(point(0.0, 75.0)));
}

#[test]
fn rings_hold_at_the_date_line_and_the_pole() {
    let pacific = Ring::smaller(ring(&[(170.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (170.0, 10.0)]));
    assert!(pacific.contains(point(180.0, 0.0)));
    assert!(pacific.contains(point(-175.0, 5.0)));
    assert!(!pacific.contains(point(0.0, 0.0)));
    let arctic = Ring::smaller(ring(&[(0.0, 70.0), (90.0, 70.0), (180.0, 70.0), (-90.0, 70.0)]));
    assert!(arctic.contains(point(33.0, 90.0)));
    assert!(!arctic.contains(point(45.0, 60.0)));
}
