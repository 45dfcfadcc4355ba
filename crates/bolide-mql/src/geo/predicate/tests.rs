use bson::raw::RawDocumentBuf;
use bson::rawdoc;

use super::*;

fn predicate(operators: &RawDocument) -> Result<Predicate> {
    let (name, value) = operators.iter().flatten().next().expect("an operator");
    Predicate::parse(name.as_str(), value, operators)
}

fn matches(operators: &RawDocument, place: &RawDocumentBuf) -> bool {
    let predicate = predicate(operators).expect("a predicate");
    let value = place.get("p").ok().flatten().expect("a place");
    predicate.matches(value).expect("a comparison")
}

fn check(operators: &RawDocument, inside: &[RawDocumentBuf], outside: &[RawDocumentBuf]) {
    for (places, expected) in [(inside, true), (outside, false)] {
        for place in places {
            let text = value::text::render_document(place);
            assert_eq!(matches(operators, place), expected, "{text}");
        }
    }
}

#[test]
fn shapes_on_the_plane_hold_points() {
    let inside = [[1, 1], [0, 0], [2, 2], [1, 0], [2, 1]].map(|[x, y]| rawdoc! {"p": [x, y]});
    let outside = [rawdoc! {"p": [3, 1]}, rawdoc! {"p": [1, -1]}, rawdoc! {"p": "x"}];
    check(&rawdoc! {"$geoWithin": {"$box": [[0, 0], [2, 2]]}}, &inside, &outside);
    check(&rawdoc! {"$within": {"$box": [[2, 2], [0, 0]]}}, &inside, &outside);
    check(
        &rawdoc! {"$geoWithin": {"$polygon": [[0, 0], [2, 0], [2, 2], [0, 2]]}},
        &inside,
        &outside,
    );
    check(
        &rawdoc! {"$geoWithin": {"$polygon": {"a": {"x": 0, "y": 0}, "b": [2, 0], "c": [2, 2], "d": [0, 2]}}},
        &inside,
        &outside,
    );
    check(
        &rawdoc! {"$geoWithin": {"$center": [[0, 0], 5]}},
        &[
            rawdoc! {"p": [3, 4]},
            rawdoc! {"p": {"x": 0, "y": -5}},
            rawdoc! {"p": {"type": "Point", "coordinates": [1, 1]}},
        ],
        &[
            rawdoc! {"p": [4, 4]},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}},
        ],
    );
    // Legacy coordinates need not be longitude and latitude.
    check(
        &rawdoc! {"$geoWithin": {"$box": [[500, 500], [600, 600]]}},
        &[rawdoc! {"p": [550, 550]}],
        &[rawdoc! {"p": [0, 0]}],
    );
}

#[test]
fn polygons_on_the_sphere_hold_points_lines_and_polygons() {
    let ring = rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]],
    [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]};
    check(
        &rawdoc! {"$geoWithin": {"$geometry": ring}},
        &[
            rawdoc! {"p": [1, 1]},
            rawdoc! {"p": [0, 0]},
            rawdoc! {"p": [4, 5]},
            rawdoc! {"p": {"type": "Point", "coordinates": [8, 1]}},
            rawdoc! {"p": {"type": "MultiPoint", "coordinates": [[1, 1], [8, 8]]}},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[1, 1], [8, 1], [8, 8]]}},
            rawdoc! {"p": {"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 1]]]}},
        ],
        &[
            rawdoc! {"p": [5, 5]},
            rawdoc! {"p": [10, 1]},
            rawdoc! {"p": [500, 500]},
            rawdoc! {"p": {"type": "MultiPoint", "coordinates": [[1, 1], [5, 5]]}},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[1, 5], [8, 5]]}},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[1, 1], [20, 1]]}},
            rawdoc! {"p": {"type": "Polygon", "coordinates": [[[1, 1], [8, 1], [8, 8], [1, 8], [1, 1]]]}},
            rawdoc! {"p": {"type": "Polygon", "coordinates": [[[8, 8], [20, 8], [20, 20], [8, 8]]]}},
        ],
    );
    let two = rawdoc! {"type": "MultiPolygon", "coordinates": [
    [[[0, 0], [1, 0], [1, 1], [0, 0]]], [[[10, 10], [11, 10], [11, 11], [10, 10]]]]};
    check(
        &rawdoc! {"$geoWithin": {"$geometry": two}},
        &[rawdoc! {"p": [10.9, 10.5]}, rawdoc! {"p": [0.9, 0.5]}],
        &[rawdoc! {"p": [5, 5]}],
    );
}

#[test]
fn circles_on_the_sphere_have_a_radius_in_radians() {
    let degree = 1.0_f64.to_radians();
    check(
        &rawdoc! {"$geoWithin": {"$centerSphere": [[179.5, 0], degree]}},
        &[
            rawdoc! {"p": [-179.6, 0]},
            rawdoc! {"p": [179, 0.5]},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[179.2, 0], [-179.8, 0]]}},
        ],
        &[
            rawdoc! {"p": [-179.4, 0]},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[179.2, 0], [-179, 0]]}},
        ],
    );
}

#[test]
fn a_polygon_with_strict_winding_may_be_larger_than_half_the_earth() {
    let system = rawdoc! {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}};
    // Clockwise: everything but the square.
    let ring = rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [0, 9], [9, 9], [9, 0], [0, 0]]], "crs": system};
    check(
        &rawdoc! {"$geoWithin": {"$geometry": ring}},
        &[rawdoc! {"p": [50, 50]}, rawdoc! {"p": [-170, -5]}],
        &[rawdoc! {"p": [5, 5]}],
    );
}

#[test]
fn places_in_common_intersect() {
    let line = rawdoc! {"type": "LineString", "coordinates": [[0, 0], [10, 0]]};
    check(
        &rawdoc! {"$geoIntersects": {"$geometry": line}},
        &[
            rawdoc! {"p": [5, 0]},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[5, -1], [5, 1]]}},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[5, 0], [5, 1]]}},
            rawdoc! {"p": {"type": "Polygon", "coordinates": [[[4, -1], [6, -1], [6, 1], [4, 1], [4, -1]]]}},
        ],
        &[
            rawdoc! {"p": [5, 0.001]},
            rawdoc! {"p": [11, 0]},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[5, 1], [5, 2]]}},
        ],
    );
    let ring = rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]],
    [[3, 3], [6, 3], [6, 6], [3, 6], [3, 3]]]};
    check(
        &rawdoc! {"$geoIntersects": {"$geometry": ring}},
        &[
            rawdoc! {"p": [1, 1]},
            rawdoc! {"p": {"type": "LineString", "coordinates": [[-5, 1], [20, 1]]}},
            rawdoc! {"p": {"type": "Polygon", "coordinates": [[[-9, -9], [20, -9], [20, 20], [-9, 20], [-9, -9]]]}},
            rawdoc! {"p": {"type": "GeometryCollection", "geometries": [
            {"type": "Point", "coordinates": [50, 50]}, {"type": "Point", "coordinates": [1, 1]}]}},
        ],
        &[
            rawdoc! {"p": [4.5, 4.5]},
            rawdoc! {"p": {"type": "Polygon", "coordinates": [[[4, 4], [5, 4], [5, 5], [4, 4]]]}},
            rawdoc! {"p": [20, 20]},
        ],
    );
    check(
        &rawdoc! {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [1, 1]}}},
        &[rawdoc! {"p": {"type": "Point", "coordinates": [1, 1]}}],
        &[rawdoc! {"p": [1, 1.0001]}],
    );
}

#[test]
fn malformed_operators_are_refused() {
    for (operators, text) in [
        (rawdoc! {"$geoWithin": 5}, "geometry must be an object"),
        (rawdoc! {"$geoWithin": {}}, "geo query doesn't have any geometry"),
        (
            rawdoc! {"$geoWithin": {"$foo": [1, 2]}},
            "unknown geo specifier: $foo: [ 1, 2 ]",
        ),
        (
            rawdoc! {"$geoWithin": {"$box": [[1, 2]]}},
            "Point must be an array or object",
        ),
        (
            rawdoc! {"$geoWithin": {"$center": [[1, 2], -1]}},
            "radius must be a non-negative number",
        ),
        (
            rawdoc! {"$geoWithin": {"$center": [[1, 2], 1, 1]}},
            "Only 2 fields allowed for circular region",
        ),
        (
            rawdoc! {"$geoWithin": {"$polygon": [[1, 2], [3, 4]]}},
            "Polygon must have at least 3 points",
        ),
        (
            rawdoc! {"$geoWithin": {"$centerSphere": [[200, 2], 1]}},
            "Longitude/latitude is out of bounds, lng: 200 lat: 2",
        ),
        (
            rawdoc! {"$geoWithin": {"$geometry": {"type": "Point", "coordinates": [1, 2]}}},
            "$within not supported with provided geometry: \
             { $geoWithin: { $geometry: { type: \"Point\", coordinates: [ 1, 2 ] } } }",
        ),
        (
            rawdoc! {"$geoIntersects": {"$box": [[1, 2], [3, 4]]}},
            "$geoIntersect not supported with provided geometry: { $geoIntersects: { $box: [ [ 1, 2 ], [ 3, 4 ] ] } }",
        ),
        (
            rawdoc! {"$geoWithin": {"$box": [[1, 2], [3, 4]]}, "$exists": true},
            "can't parse extra field: $exists",
        ),
    ] {
        let error = predicate(&operators).err().map(|error| (error.code.0, error.message));
        assert_eq!(error, Some((2, text.to_owned())));
    }
}
