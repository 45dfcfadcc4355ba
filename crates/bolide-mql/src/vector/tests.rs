use bson::{RawBson, rawbson, rawdoc};

use super::*;

#[test]
fn similarities() {
    for (name, a, b, expected) in [
        ("COS", [1.0, 0.0], [2.0, 0.0], Some(1.0)),
        ("COS", [1.0, 0.0], [0.0, 3.0], Some(0.0)),
        ("COS", [1.0, 0.0], [-1.0, 0.0], Some(-1.0)),
        ("COS", [1.0, 0.0], [0.0, 0.0], None),
        ("L2", [0.0, 0.0], [3.0, 4.0], Some(5.0)),
        ("IP", [1.0, 2.0], [3.0, 4.0], Some(11.0)),
    ] {
        let similarity = Similarity::named(name).expect(name);
        assert_eq!(similarity.compare(&a, &b), expected, "{name} {a:?} {b:?}");
    }
    assert_eq!(Similarity::named("cos"), None);
}

#[test]
fn vectors_are_arrays_of_finite_numbers() {
    let read = |value: RawBson| read(value.as_raw_bson_ref());
    assert_eq!(read(rawbson!([1, 2.5, 3_i64])), Some(vec![1.0, 2.5, 3.0]));
    for value in [
        rawbson!([]),
        rawbson!([1, "a"]),
        rawbson!([f64::NAN]),
        rawbson!(1),
        rawbson!([[1]]),
    ] {
        assert_eq!(read(value.clone()), None, "{value:?}");
    }
    let path = Path::parse("a.v").expect("a path");
    let document = rawdoc! { "a": { "v": [1, 2] } };
    assert_eq!(of_document(&document, &path, 2), Some(vec![1.0, 2.0]));
    assert_eq!(of_document(&document, &path, 3), None);
}
