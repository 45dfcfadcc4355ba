use bson::raw::{RawBson, RawDocumentBuf};
use bson::{rawbson, rawdoc};

use super::*;

fn distance(operators: &RawDocumentBuf, place: &RawBson) -> Option<f64> {
    Near::parse(operators)
        .expect("a distance")
        .distance(place.as_raw_bson_ref())
}

/// One degree of a great circle, in metres.
const DEGREE: f64 = 6_378_100.0 * std::f64::consts::PI / 180.0;

#[test]
fn distances_have_the_unit_of_the_centre() {
    let geojson = rawdoc! {"type": "Point", "coordinates": [0, 0]};
    let place = rawbson!([0, 3]);
    for (operators, expected) in [
        (rawdoc! {"$near": {"$geometry": geojson.clone()}}, 3.0 * DEGREE),
        (rawdoc! {"$nearSphere": {"$geometry": geojson.clone()}}, 3.0 * DEGREE),
        (rawdoc! {"$near": geojson}, 3.0 * DEGREE),
        (rawdoc! {"$nearSphere": [0, 0]}, 3.0_f64.to_radians()),
        (rawdoc! {"$near": [4, 0]}, 5.0),
        (rawdoc! {"$near": {"x": 4, "y": 0}}, 5.0),
    ] {
        let found = distance(&operators, &place).expect("a distance");
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

#[test]
fn the_range_includes_its_ends() {
    let place = rawbson!([0, 5]);
    for (operators, is_near) in [
        (rawdoc! {"$near": [0, 0], "$maxDistance": 5}, true),
        (rawdoc! {"$near": [0, 0], "$maxDistance": 4.9}, false),
        (rawdoc! {"$near": [0, 0], "$minDistance": 5}, true),
        (rawdoc! {"$minDistance": 5.1, "$near": [0, 0]}, false),
        (rawdoc! {"$near": [0, 0, 5]}, true),
        (rawdoc! {"$near": [0, 0, 4]}, false),
    ] {
        assert_eq!(distance(&operators, &place).is_some(), is_near);
    }
    let point = rawdoc! {"type": "Point", "coordinates": [0, 0]};
    let inside = rawdoc! {"$near": {"$geometry": point.clone(), "$maxDistance": 600_000, "$minDistance": 500_000}};
    assert!(distance(&inside, &place).is_some());
    let outside = rawdoc! {"$near": {"$geometry": point, "$maxDistance": 500_000}};
    assert_eq!(distance(&outside, &place), None);
}

#[test]
fn shapes_are_as_far_as_their_nearest_place() {
    let near = rawdoc! {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}};
    for (place, degrees) in [
        (rawdoc! {"type": "LineString", "coordinates": [[-5, 2], [5, 2]]}, 2.0),
        (rawdoc! {"type": "MultiPoint", "coordinates": [[9, 0], [0, 4]]}, 4.0),
        (
            rawdoc! {"type": "Polygon", "coordinates": [[[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]]},
            0.0,
        ),
        (
            rawdoc! {"type": "Polygon", "coordinates": [[[3, -1], [4, -1], [4, 1], [3, 1], [3, -1]]]},
            3.0,
        ),
    ] {
        let found = distance(&near, &RawBson::Document(place)).expect("a distance") / DEGREE;
        assert!((found - degrees).abs() < 0.01, "{found} {degrees}");
    }
    let flat = rawdoc! {"$near": [0, 0]};
    let line = rawdoc! {"type": "LineString", "coordinates": [[-5, 2], [5, 2]]};
    assert_eq!(distance(&flat, &RawBson::Document(line)), None);
    assert_eq!(distance(&flat, &rawbson!("x")), None);
}

#[test]
fn the_stage_has_its_centre_and_range() {
    let place = rawbson!([0, 1]);
    let of = |center: RawBson, is_spherical: bool| {
        let near = Near::around(center.as_raw_bson_ref(), is_spherical, None, Some(1e9)).expect("a distance");
        (
            near.distance(place.as_raw_bson_ref()).expect("in range"),
            near.is_spherical(),
        )
    };
    assert_eq!(of(rawbson!([0, 0]), false), (1.0, false));
    let (radians, is_spherical) = of(rawbson!([0, 0]), true);
    assert!((radians - 1.0_f64.to_radians()).abs() < 1e-12 && is_spherical);
    let point = RawBson::Document(rawdoc! {"type": "Point", "coordinates": [0, 0]});
    assert!((of(point, false).0 - DEGREE).abs() < 1e-6);
}

#[test]
fn malformed_operators_are_refused() {
    for (operators, code, text) in [
        (rawdoc! {"$near": 5}, 2, "geo near query argument is not an object"),
        (
            rawdoc! {"$near": ["a", 1]},
            2,
            "Point must only contain numeric elements",
        ),
        (
            rawdoc! {"$near": [0, 0], "$maxDistance": "x"},
            16895,
            "$maxDistance must be a number",
        ),
        (
            rawdoc! {"$near": [0, 0], "$minDistance": -1},
            16894,
            "$minDistance must be non-negative",
        ),
        (
            rawdoc! {"$near": [0, 0, -1]},
            18522,
            "max distance must be non-negative",
        ),
        (
            rawdoc! {"$near": [0, 0], "$exists": true},
            34413,
            "invalid argument in geo near query: $exists",
        ),
        (
            rawdoc! {"$nearSphere": [200, 0]},
            17444,
            "Legacy point is out of bounds for spherical query",
        ),
        (
            rawdoc! {"$near": {"$geometry": {"type": "Point", "coordinates": [1000, 1000]}}},
            2,
            "invalid point in geo near query $geometry argument: { type: \"Point\", coordinates: [ 1000, 1000 ] }  \
             Longitude/latitude is out of bounds, lng: 1000 lat: 1000",
        ),
        (
            rawdoc! {"$near": {"$geometry": {"type": "Point", "coordinates": [1, 1]}, "$foo": 1}},
            2,
            "invalid argument in geo near query: $foo",
        ),
        (
            rawdoc! {"$near": {"$geometry": [1, 1]}},
            16681,
            "$near requires geojson point, given [ 1, 1 ]",
        ),
    ] {
        let error = Near::parse(&operators).err().map(|error| (error.code.0, error.message));
        assert_eq!(error, Some((code, text.to_owned())));
    }
}
