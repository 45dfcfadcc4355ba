use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic};

use super::*;

fn at(x: f64, y: f64) -> Position {
    Position { x, y }
}

/// Geodesics, by which distances to edges are measured, against the width that regions give to edges.
#[test]
fn a_geodesic_is_as_near_the_great_ellipse_as_regions_assume() {
    let wgs84 = Geodesic::wgs84();
    let mut random = fastrand::Rng::with_seed(1);
    let mut closest: f64 = 0.0;
    for _ in 0..3_000 {
        let start = at(random.f64() * 360.0 - 180.0, random.f64() * 180.0 - 90.0);
        let metres = 1.27e7 * random.f64();
        let (y, x): (f64, f64) = wgs84.direct(start.y, start.x, random.f64() * 360.0, metres);
        let Some(edges) = line(&[start, at(x, y)]) else {
            continue;
        };
        let (along, azimuth, _, _): (f64, f64, f64, f64) = wgs84.inverse(start.y, start.x, y, x);
        for part in [0.1, 0.3, 0.5, 0.6, 0.9] {
            let (y, x): (f64, f64) = wgs84.direct(start.y, start.x, azimuth, along * part);
            let off = edges.arcs[0].distance(direction(at(x, y)));
            let allowed = edges.swerves[0] + MARGIN;
            assert!(off <= allowed, "{start:?} {metres} m: {off} of {allowed}");
            closest = closest.max(off / allowed);
        }
    }
    // The width is not many times too large, either.
    assert!(closest > 0.1, "{closest}");
}

fn line(positions: &[Position]) -> Option<Edges> {
    let mut edges = Edges::none();
    edges.add(positions).map(|_| edges)
}

#[test]
fn the_angle_of_a_distance_is_at_least_that_between_its_ends() {
    let wgs84 = Geodesic::wgs84();
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..3_000 {
        let start = at(random.f64() * 360.0 - 180.0, random.f64() * 180.0 - 90.0);
        let metres = 2e7 * random.f64().powi(6);
        let (y, x): (f64, f64) = wgs84.direct(start.y, start.x, random.f64() * 360.0, metres);
        let region = GlobeRegion::of(&Geometry::Point(start), metres).expect("a region");
        assert!(angle(direction(start), direction(at(x, y))) <= region.reach + MARGIN);
    }
}

#[test]
fn shapes_whose_places_are_not_certain_have_no_region() {
    let ring = |places: &[(f64, f64)]| Geometry::Polygons(vec![vec![places.iter().map(|(x, y)| at(*x, *y)).collect()]]);
    let has_region = |geometry: &Geometry| GlobeRegion::of(geometry, 0.0).is_some();
    assert!(has_region(&ring(&[(0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 0.0)])));
    assert!(!has_region(&ring(&[
        (0.0, 0.0),
        (9.0, 9.0),
        (9.0, 0.0),
        (0.0, 9.0),
        (0.0, 0.0)
    ])));
    assert!(!has_region(&ring(&[(0.0, 0.0), (9.0, 0.0), (0.0, 0.0), (0.0, 0.0)])));
    assert!(has_region(&Geometry::Line(vec![at(0.0, 0.0), at(100.0, 0.0)])));
    assert!(!has_region(&Geometry::Line(vec![at(0.0, 0.0), at(150.0, 0.0)])));
    assert!(!has_region(&Geometry::Line(vec![at(0.0, 90.0), at(0.0, -90.0)])));
}
