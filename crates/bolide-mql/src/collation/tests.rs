use std::cmp::Ordering::{self, Equal, Greater, Less};

use bson::{RawDocumentBuf, rawdoc};
use proptest::prelude::*;

use super::Collation;
use crate::value::{self, key};

fn compare(specification: &RawDocumentBuf, a: &str, b: &str) -> Ordering {
    let collation = Collation::parse(specification).unwrap().unwrap();
    let found = collation.compare(a, b);
    assert_eq!(
        collation.sort_key(a).cmp(&collation.sort_key(b)),
        found,
        "{specification:?} {a} {b}"
    );
    found
}

#[test]
fn options_decide_the_order() {
    let cases = [
        (rawdoc! {"locale": "en"}, "a", "B", Less),
        (rawdoc! {"locale": "en"}, "a", "A", Less),
        (rawdoc! {"locale": "en", "strength": 2}, "a", "A", Equal),
        (rawdoc! {"locale": "en", "strength": 2}, "e", "é", Less),
        (rawdoc! {"locale": "en", "strength": 1}, "e", "É", Equal),
        (
            rawdoc! {"locale": "en", "strength": 1, "caseLevel": true},
            "e",
            "E",
            Less,
        ),
        (
            rawdoc! {"locale": "en", "strength": 1, "caseLevel": true},
            "e",
            "é",
            Equal,
        ),
        (rawdoc! {"locale": "en", "caseFirst": "upper"}, "a", "A", Greater),
        (rawdoc! {"locale": "en", "caseFirst": "lower"}, "a", "A", Less),
        (rawdoc! {"locale": "en"}, "10", "9", Less),
        (rawdoc! {"locale": "en", "numericOrdering": true}, "10", "9", Greater),
        (rawdoc! {"locale": "en", "alternate": "shifted"}, "a b", "ab", Equal),
        (
            rawdoc! {"locale": "en", "alternate": "shifted", "strength": 4_i64},
            "a b",
            "ab",
            Less,
        ),
        (
            rawdoc! {"locale": "en", "alternate": "shifted", "maxVariable": "space"},
            "a-b",
            "ab",
            Less,
        ),
        (
            rawdoc! {"locale": "en", "alternate": "shifted", "maxVariable": "punct"},
            "a-b",
            "ab",
            Equal,
        ),
        (rawdoc! {"locale": "en", "strength": 5.0}, "a", "a\u{1}", Less),
        (rawdoc! {"locale": "sv"}, "ö", "z", Greater),
        (rawdoc! {"locale": "de"}, "ö", "z", Less),
        (
            rawdoc! {"locale": "de@collation=phonebook", "strength": 1},
            "ö",
            "oe",
            Equal,
        ),
        (rawdoc! {"locale": "da"}, "a", "A", Greater),
        (rawdoc! {"locale": "fr"}, "coté", "côte", Less),
        (rawdoc! {"locale": "fr_CA"}, "coté", "côte", Greater),
        (rawdoc! {"locale": "fr", "backwards": true}, "coté", "côte", Greater),
        (rawdoc! {"locale": "fr_CA", "backwards": false}, "coté", "côte", Less),
    ];
    for (specification, a, b, expected) in cases {
        assert_eq!(compare(&specification, a, b), expected, "{specification:?} {a} {b}");
    }
}

#[test]
fn simple_and_empty_mean_bytes() {
    assert!(Collation::parse(&rawdoc! {"locale": "simple"}).unwrap().is_none());
    assert!(Collation::parse(&rawdoc! {}).unwrap().is_none());
}

#[test]
fn the_full_form_has_every_field_in_order() {
    let collation = Collation::parse(&rawdoc! {"strength": 2.0, "locale": "en"})
        .unwrap()
        .unwrap();
    let expected = rawdoc! {
        "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
        "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false, "version": "57.1",
    };
    assert_eq!(collation.to_document(), &*expected);
    let again = Collation::parse(collation.to_document()).unwrap().unwrap();
    assert_eq!(*again, *collation);
    let danish = Collation::parse(&rawdoc! {"locale": "da"}).unwrap().unwrap();
    assert_eq!(danish.to_document().get_str("caseFirst").unwrap(), "upper");
    let canadian = Collation::parse(&rawdoc! {"locale": "fr_CA"}).unwrap().unwrap();
    assert!(canadian.to_document().get_bool("backwards").unwrap());
}

#[test]
fn bad_specifications_are_refused_as_mongodb_does() {
    let cases = [
        (
            rawdoc! {"locale": "xx"},
            2,
            "Field 'locale' is invalid in: { locale: \"xx\" }",
        ),
        (
            rawdoc! {"locale": "EN"},
            2,
            "Field 'locale' is invalid in: { locale: \"EN\" }",
        ),
        (
            rawdoc! {"locale": "en-US"},
            2,
            "Field 'locale' is invalid in: { locale: \"en-US\" }",
        ),
        (
            rawdoc! {"locale": "en@x=y"},
            2,
            "Field 'locale' is invalid in: { locale: \"en@x=y\" }",
        ),
        (
            rawdoc! {"locale": ""},
            2,
            "Field 'locale' is invalid in: { locale: \"\" }",
        ),
        (
            rawdoc! {"strength": 1},
            40414,
            "BSON field 'collation.locale' is missing but a required field",
        ),
        (
            rawdoc! {"locale": "en", "x": 1},
            40415,
            "BSON field 'collation.x' is an unknown field.",
        ),
        (
            rawdoc! {"locale": 1},
            14,
            "BSON field 'collation.locale' is the wrong type 'int', expected type 'string'",
        ),
        (
            rawdoc! {"locale": "en", "strength": 6},
            2,
            "Enumeration value '6' for field 'collation.strength' is not a valid value.",
        ),
        (
            rawdoc! {"locale": "en", "strength": "1"},
            14,
            "BSON field 'collation.strength' is the wrong type 'string', expected types '[long, int, decimal, double']",
        ),
        (
            rawdoc! {"locale": "en", "caseFirst": "x"},
            2,
            "Enumeration value 'x' for field 'collation.caseFirst' is not a valid value.",
        ),
        (
            rawdoc! {"locale": "simple", "strength": 1},
            2,
            "If 'locale' is \"simple\", no other fields should be present in: { locale: \"simple\", strength: 1 }",
        ),
        (
            rawdoc! {"locale": "en", "strength": 1, "backwards": true},
            2,
            "'backwards' is invalid with 'strength' of 1 in: { locale: \"en\", strength: 1, backwards: true }",
        ),
        (
            rawdoc! {"locale": "en", "strength": 2, "caseFirst": "upper"},
            2,
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: { locale: \"en\", strength: 2, caseFirst: \"upper\" }",
        ),
        (
            rawdoc! {"locale": "sv", "backwards": true},
            238,
            "the collation option 'backwards' is not supported for the locale 'sv'",
        ),
    ];
    for (specification, code, message) in cases {
        let error = Collation::parse(&specification).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message));
    }
}

#[test]
fn values_and_keys_use_the_collation_inside_containers() {
    let collation = Collation::parse(&rawdoc! {"locale": "en", "strength": 2}).unwrap();
    let collation = collation.as_deref();
    let (a, b) = (rawdoc! {"a": ["X", {"b": "y"}]}, rawdoc! {"a": ["x", {"b": "Y"}]});
    let (a, b) = (bson::RawBsonRef::Document(&a), bson::RawBsonRef::Document(&b));
    assert!(value::equal_with(a, b, collation) && !value::equal(a, b));
    assert_eq!(key::of(a, collation), key::of(b, collation));
    // Names of fields are compared by their bytes.
    let (a, b) = (rawdoc! {"A": 1}, rawdoc! {"a": 1});
    assert!(!value::equal_with(
        bson::RawBsonRef::Document(&a),
        bson::RawBsonRef::Document(&b),
        collation
    ));
}

proptest! {
    #[test]
    fn sort_keys_compare_as_the_strings_do(
        a in "[aAbBéÉoö\u{301} \\-0-9ßæ]{0,5}", b in "[aAbBéÉoö\u{301} \\-0-9ßæ]{0,5}", strength in 1_i32..6, numeric: bool, shifted: bool,
        locale in prop::sample::select(vec!["en", "de", "sv", "da", "fr_CA", "ja", "lt"]),
    ) {
        let alternate = if shifted { "shifted" } else { "non-ignorable" };
        let mut specification = rawdoc! {"locale": locale, "numericOrdering": numeric, "alternate": alternate};
        if !(locale == "fr_CA" && strength == 1) {
            specification.append(bson::raw::cstr!("strength"), strength);
        }
        compare(&specification, &a, &b);
    }
}
