use bson::doc;

use super::*;

fn holds(expected: Document, reply: Document) -> bool {
    check(&expected, &reply).is_ok()
}

#[test]
fn other_keys_matter_inside_but_not_at_the_root() {
    assert!(holds(doc! { "ok": 1 }, doc! { "ok": 1.0, "n": 3 }));
    assert!(!holds(doc! { "ok": 1 }, doc! { "ok": 0.0, "errmsg": "no" }));
    assert!(holds(
        doc! { "a": { "x": 1, "y": 2 } },
        doc! { "a": { "y": 2_i64, "x": 1.0 } }
    ));
    assert!(!holds(doc! { "a": { "x": 1 } }, doc! { "a": { "x": 1, "y": 2 } }));
    assert!(!holds(doc! { "a": { "x": 1 } }, doc! {}));
    assert!(!holds(doc! { "a": [1, 2] }, doc! { "a": [2, 1] }));
}

#[test]
fn special_forms() {
    let reply = || doc! { "a": { "x": 1, "y": [1, { "k": "b" }, 2] }, "n": 5_i64, "i": 5_i32 };
    let cases = [
        (doc! { "a": { "$$subset": { "x": 1 } } }, true),
        (doc! { "a": { "$$subset": { "x": 2 } } }, false),
        (
            doc! { "a": { "$$subset": { "y": { "$$unordered": [2, 1, { "k": "b" }] } } } },
            true,
        ),
        (doc! { "a": { "$$subset": { "y": { "$$unordered": [2, 1] } } } }, false),
        (doc! { "n": { "$$type": "long" } }, true),
        (doc! { "n": { "$$type": "int" } }, false),
        (doc! { "i": { "$$int": 5 } }, true),
        (doc! { "n": { "$$int": 5 } }, false),
        (doc! { "i": { "$$anyOf": [4, 5] } }, true),
        (doc! { "i": { "$$anyOf": [4, 6] } }, false),
        (doc! { "z": { "$$absent": true } }, true),
        (doc! { "i": { "$$absent": true } }, false),
        (doc! { "i": { "$$unknown": true } }, false),
    ];
    for (expected, outcome) in cases {
        assert_eq!(holds(expected.clone(), reply()), outcome, "{expected}");
    }
}

#[test]
fn an_element_that_matches_several_does_not_take_the_only_match_of_another() {
    let expected = doc! { "a": { "$$unordered": [{ "$$anyOf": [1, 2] }, 1] } };
    assert!(holds(expected, doc! { "a": [1, 2] }));
}

#[test]
fn numbers_are_compared_by_value_without_rounding() {
    assert!(holds(doc! { "n": 2_147_483_648_i64 }, doc! { "n": 2_147_483_648.0 }));
    assert!(!holds(doc! { "n": 1 }, doc! { "n": 1.5 }));
    assert!(!holds(
        doc! { "n": i64::MAX },
        doc! { "n": 9_223_372_036_854_775_807.0 }
    ));
    assert!(!holds(doc! { "n": 1 }, doc! { "n": "1" }));
}
