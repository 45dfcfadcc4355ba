//! `$geoNear`

use super::{check, run};

const PLACES: &str = r#"[{"_id": 1, "loc": [3, 4]}, {"_id": 2, "loc": [0, 1]}, {"_id": 3}, {"_id": 4, "loc": [0, 9], "x": 1}, {"_id": 5, "loc": [1, 0]}]"#;

#[test]
fn documents_are_in_the_order_of_their_distance() {
    check(
        r#"[{"$geoNear": {"near": [0, 0], "distanceField": "d"}}, {"$project": {"d": 1}}]"#,
        PLACES,
        r#"[{"_id": 2, "d": 1.0}, {"_id": 5, "d": 1.0}, {"_id": 1, "d": 5.0}, {"_id": 4, "d": 9.0}]"#,
    );
    check(
        r#"[{"$geoNear": {"near": [0, 0], "distanceField": "a.d", "includeLocs": "a.l", "minDistance": 2, "distanceMultiplier": 2, "key": "loc"}},
            {"$limit": 1}]"#,
        PLACES,
        r#"[{"_id": 1, "loc": [3, 4], "a": {"d": 10.0, "l": [3, 4]}}]"#,
    );
    check(
        r#"[{"$geoNear": {"near": [0, 0], "distanceField": "d", "maxDistance": 9, "query": {"x": 1}}}, {"$project": {"m": {"$meta": "geoNearDistance"}}}]"#,
        PLACES,
        r#"[{"_id": 4, "m": 9.0}]"#,
    );
}

#[test]
fn distances_on_the_sphere_are_in_metres() {
    let pipeline = r#"[{"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "d", "spherical": true}}]"#;
    let results = run(pipeline, r#"[{"loc": {"type": "Point", "coordinates": [90, 0]}}]"#).unwrap();
    // A quarter of the circumference, with a radius of 6378.1 km.
    let quarter = 6_378_100.0 * std::f64::consts::FRAC_PI_2;
    assert!((results[0].get_f64("d").unwrap() - quarter).abs() < 1.0);
}
