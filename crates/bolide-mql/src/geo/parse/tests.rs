use bson::rawdoc;

use super::*;

fn refusal(document: &RawDocument) -> Option<(i32, String)> {
    geojson(document).err().map(|error| (error.code.0, error.message))
}

#[test]
fn geojson_of_all_types_is_read() {
    let square = rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]};
    for (document, counts) in [
        (rawdoc! {"type": "Point", "coordinates": [1, 2.5, 100]}, (1, 0, 0)),
        (
            rawdoc! {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]},
            (2, 0, 0),
        ),
        (
            rawdoc! {"type": "LineString", "coordinates": [[1, 2], [1, 2], [3, 4]]},
            (0, 1, 0),
        ),
        (
            rawdoc! {"type": "MultiLineString", "coordinates": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]},
            (0, 2, 0),
        ),
        (square.clone(), (0, 0, 1)),
        (
            rawdoc! {"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [1, 1], [0, 0]]]]},
            (0, 0, 1),
        ),
        (
            rawdoc! {"type": "GeometryCollection", "geometries": [square, {"type": "Point", "coordinates": [1, 2]}]},
            (1, 0, 1),
        ),
    ] {
        let geometry = geojson(&document).expect("a geometry");
        let found = (geometry.points.len(), geometry.lines.len(), geometry.polygons.len());
        assert_eq!(found, counts, "{}", value::text::render_document(&document));
    }
}

#[test]
fn malformed_geojson_is_refused() {
    let cases = [
        (rawdoc! {"type": "Circle"}, "unknown GeoJSON type: { type: \"Circle\" }"),
        (rawdoc! {"type": "Point"}, "Point must be an array or object"),
        (
            rawdoc! {"type": "Point", "coordinates": ["a", 1]},
            "Point must only contain numeric elements",
        ),
        (
            rawdoc! {"type": "Point", "coordinates": [f64::NAN, 1]},
            "Point coordinates must be finite numbers",
        ),
        (
            rawdoc! {"type": "Point", "coordinates": [181, 0]},
            "Longitude/latitude is out of bounds, lng: 181 lat: 0",
        ),
        (
            rawdoc! {"type": "LineString", "coordinates": [[1, 2], [1, 2]]},
            "GeoJSON LineString must have at least 2 vertices: [ [ 1, 2 ], [ 1, 2 ] ]",
        ),
        (
            rawdoc! {"type": "LineString", "coordinates": 5},
            "GeoJSON coordinates must be an array of coordinates",
        ),
        (
            rawdoc! {"type": "LineString", "coordinates": [5]},
            "GeoJSON coordinates must be an array",
        ),
        (rawdoc! {"type": "Polygon", "coordinates": []}, "Polygon has no loops."),
        (rawdoc! {"type": "Polygon"}, "Polygon coordinates must be an array"),
        (
            rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1]]]},
            "Loop is not closed: [ [ 0, 0 ], [ 1, 0 ], [ 1, 1 ] ]",
        ),
        (
            rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 0]]]},
            "Loop must have at least 3 different vertices: [ [ 0, 0 ], [ 1, 0 ], [ 0, 0 ] ]",
        ),
        (
            rawdoc! {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]},
            "Loop is not valid: [ [ 0, 0 ], [ 2, 2 ], [ 2, 0 ], [ 0, 2 ], [ 0, 0 ] ] Edges 0 and 2 cross",
        ),
        (
            rawdoc! {"type": "MultiPoint", "coordinates": []},
            "MultiPoint coordinates must have at least 1 element",
        ),
        (
            rawdoc! {"type": "MultiPolygon", "coordinates": 1},
            "MultiPolygon coordinates must be an array",
        ),
        (
            rawdoc! {"type": "GeometryCollection", "geometries": []},
            "GeometryCollection geometries must have at least 1 element",
        ),
        (
            rawdoc! {"type": "GeometryCollection", "geometries": [{"type": "GeometryCollection", "geometries": []}]},
            "GeometryCollections cannot be nested: { type: \"GeometryCollection\", geometries: [] }",
        ),
        (
            rawdoc! {"type": "Point", "coordinates": [1, 2], "crs": {"type": "name", "properties": {"name": "x"}}},
            "Unknown CRS name: x",
        ),
        (
            rawdoc! {"type": "Point", "coordinates": [1, 2], "crs": {"type": "name", "properties": {"name": STRICT_WINDING}}},
            "Strict winding order is only supported by polygon",
        ),
    ];
    for (document, text) in cases {
        assert_eq!(refusal(&document), Some((2, text.to_owned())));
    }
}

#[test]
fn holes_are_inside_their_polygon() {
    let outer = [[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]].map(|pair| bson::rawbson!([pair[0], pair[1]]));
    let polygon = |hole: [[i32; 2]; 4]| {
        let hole = hole.map(|pair| bson::rawbson!([pair[0], pair[1]]));
        let mut rings = bson::RawArrayBuf::new();
        rings.push(bson::RawArrayBuf::from_iter(outer.clone()));
        rings.push(bson::RawArrayBuf::from_iter(hole));
        rawdoc! {"type": "Polygon", "coordinates": rings}
    };
    assert_eq!(refusal(&polygon([[1, 1], [2, 1], [2, 2], [1, 1]])), None);
    let outside = refusal(&polygon([[20, 20], [21, 20], [21, 21], [20, 20]])).map(|(_, text)| text);
    let text = "Secondary loops not contained by first exterior loop";
    let outside = outside.unwrap_or_default();
    assert!(outside.starts_with(text), "{outside}");
}

#[test]
fn documents_have_geojson_or_legacy_points() {
    let has = |document: &RawDocument| field(document, "p").and_then(stored).is_some();
    for document in [
        rawdoc! {"p": [1, 2]},
        rawdoc! {"p": [1000, 2000, 3000]},
        rawdoc! {"p": {"lng": 1, "lat": 2, "name": "x"}},
        rawdoc! {"p": {"type": "Point", "coordinates": [1, 2]}},
    ] {
        assert!(has(&document), "{}", value::text::render_document(&document));
    }
    for document in [
        rawdoc! {"p": [1]},
        rawdoc! {"p": ["x", 1]},
        rawdoc! {"p": {"a": "x"}},
        rawdoc! {"p": "1,2"},
        rawdoc! {"p": {"type": "Point", "coordinates": [1000, 2]}},
        rawdoc! {"p": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]],
        "crs": {"type": "name", "properties": {"name": STRICT_WINDING}}}},
    ] {
        assert!(!has(&document), "{}", value::text::render_document(&document));
    }
}
