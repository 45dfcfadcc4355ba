use bson::raw::{RawBson, RawDocumentBuf};
use bson::rawdoc;

use super::super::specification::ParseOptions;
use super::super::time_to_live::TtlMode;
use super::*;

fn existing() -> Vec<IndexDefinition> {
    let specifications: Vec<RawDocumentBuf> = vec![
        rawdoc! {"key": {"_id": 1}, "name": "_id_"},
        rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 50},
        rawdoc! {"key": {"p": 1}, "name": "plain"},
        rawdoc! {"key": {"p": 1, "q": 1}, "name": "pq"},
        rawdoc! {"key": {"_ts": 1}, "name": "ts", "expireAfterSeconds": 10},
        rawdoc! {"key": {"b": 1}, "name": "b1"},
        rawdoc! {"key": {"b": 1}, "name": "b2", "sparse": true},
        rawdoc! {"key": {"h": "hashed"}, "name": "h"},
        rawdoc! {"key": {"r": 1}, "name": "r", "prepareUnique": true, "hidden": true},
    ];
    specifications
        .iter()
        .map(|each| IndexDefinition::parse(each, &ParseOptions::default()).expect("an index"))
        .collect()
}

fn modify(index: &RawDocumentBuf) -> Result<Modified, (i32, String)> {
    let definitions = existing();
    let existing = Existing {
        namespace: "db.c",
        definitions: &definitions,
        ttl_mode: TtlMode::Mongodb,
    };
    IndexModification::parse(index)
        .and_then(|modification| modification.apply(&existing))
        .map_err(|error| (error.code.0, error.message))
}

#[test]
fn expiry_is_changed_and_reported_as_int64() {
    for (index, stored, reply) in [
        (
            rawdoc! {"keyPattern": {"t": 1.0}, "expireAfterSeconds": 100},
            100,
            rawdoc! {"expireAfterSeconds_old": 50_i64, "expireAfterSeconds_new": 100_i64},
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": 2_147_483_648_i64},
            2_147_483_647,
            rawdoc! {"expireAfterSeconds_old": 50_i64, "expireAfterSeconds_new": 2_147_483_647_i64},
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": f64::INFINITY},
            2_147_483_647,
            rawdoc! {"expireAfterSeconds_old": 50_i64, "expireAfterSeconds_new": 2_147_483_647_i64},
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": 30.5},
            30,
            rawdoc! {"expireAfterSeconds_old": 50_i64, "expireAfterSeconds_new": 30_i64},
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": 0},
            0,
            rawdoc! {"expireAfterSeconds_old": 50_i64, "expireAfterSeconds_new": 0_i64},
        ),
        (
            rawdoc! {"name": "plain", "expireAfterSeconds": 60},
            60,
            rawdoc! {"expireAfterSeconds_new": 60_i64},
        ),
        (
            rawdoc! {"keyPattern": {"_ts": 1}, "expireAfterSeconds": -1},
            -1,
            rawdoc! {"expireAfterSeconds_old": 10_i64, "expireAfterSeconds_new": -1_i64},
        ),
    ] {
        let modified = modify(&index).map(|modified| (modified.definition.expire_after_seconds(), modified.reply));
        assert_eq!(modified, Ok((Some(stored), reply)));
    }
}

#[test]
fn other_options_are_changed() {
    let hidden = modify(&rawdoc! {"name": "plain", "hidden": true}).expect("a change");
    assert!(hidden.definition.is_hidden());
    assert_eq!(hidden.reply, rawdoc! {"hidden_old": false, "hidden_new": true});
    let same = modify(&rawdoc! {"name": "plain", "hidden": false}).expect("no change");
    assert_eq!(same.reply, rawdoc! {});

    let prepared = modify(&rawdoc! {"name": "plain", "prepareUnique": true}).expect("a change");
    assert!(prepared.definition.enforces_unique() && !prepared.becomes_unique);
    assert_eq!(
        prepared.reply,
        rawdoc! {"prepareUnique_old": false, "prepareUnique_new": true}
    );

    let unique = modify(&rawdoc! {"name": "r", "unique": true, "hidden": false}).expect("a change");
    assert_eq!(unique.position, 8);
    assert!(unique.definition.is_unique() && unique.becomes_unique);
    assert_eq!(
        unique.reply,
        rawdoc! {"unique_new": true, "hidden_old": true, "hidden_new": false}
    );
    let listed = rawdoc! {"v": 2, "key": {"r": 1}, "name": "r", "unique": true};
    assert_eq!(unique.definition.to_document(), listed);
}

#[test]
fn bad_changes_are_refused() {
    let types = "expected types '[long, int, decimal, double']";
    for (index, code, text) in [
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": "60"},
            14,
            format!("BSON field 'collMod.index.expireAfterSeconds' is the wrong type 'string', {types}"),
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": -1},
            72,
            NEGATIVE.to_owned(),
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": f64::NEG_INFINITY},
            72,
            NEGATIVE.to_owned(),
        ),
        (
            rawdoc! {"name": "t_1", "expireAfterSeconds": f64::NAN},
            72,
            "TTL index 'expireAfterSeconds' option must not be NaN".to_owned(),
        ),
        (
            rawdoc! {"name": "pq", "expireAfterSeconds": 60},
            72,
            "TTL indexes are single-field indexes, compound indexes do not support TTL".to_owned(),
        ),
        (
            rawdoc! {"name": "_id_", "expireAfterSeconds": 60},
            72,
            "the _id field does not support TTL indexes".to_owned(),
        ),
        (
            rawdoc! {"name": "h", "expireAfterSeconds": 60},
            72,
            "Index type 'hashed' cannot be a TTL index".to_owned(),
        ),
        (
            rawdoc! {"name": "_id_", "hidden": true},
            2,
            "can't hide _id index".to_owned(),
        ),
        (
            rawdoc! {"name": "nope", "hidden": true},
            27,
            "cannot find index nope for ns db.c".to_owned(),
        ),
        (
            rawdoc! {"keyPattern": {"x": 1}, "expireAfterSeconds": 5},
            27,
            "cannot find index { x: 1 } for ns db.c".to_owned(),
        ),
        (
            rawdoc! {"keyPattern": {"b": 1}, "hidden": true},
            181,
            "index keyPattern { b: 1 } matches 2 indexes, must use index name. Conflicting indexes:\
             { v: 2, key: { b: 1 }, name: \"b1\" }, { v: 2, key: { b: 1 }, name: \"b2\", sparse: true }"
                .to_owned(),
        ),
        (
            rawdoc! {"hidden": true},
            72,
            "Must specify either index name or key pattern.".to_owned(),
        ),
        (
            rawdoc! {"name": "t_1", "keyPattern": {"t": 1}, "hidden": true},
            72,
            "Cannot specify both key pattern and name.".to_owned(),
        ),
        (
            rawdoc! {"name": "t_1"},
            72,
            "no expireAfterSeconds, hidden, unique, or prepareUnique field".to_owned(),
        ),
        (
            rawdoc! {"name": "plain", "unique": true},
            72,
            "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.".to_owned(),
        ),
        (
            rawdoc! {"name": "r", "unique": false},
            2,
            "Cannot make index non-unique".to_owned(),
        ),
        (
            rawdoc! {"name": "t_1", "collation": {"locale": "en"}},
            40415,
            "BSON field 'collMod.index.collation' is an unknown field.".to_owned(),
        ),
        (
            rawdoc! {"name": 5, "hidden": true},
            14,
            "BSON field 'collMod.index.name' is the wrong type 'int', expected type 'string'".to_owned(),
        ),
        (
            rawdoc! {"keyPattern": "t", "hidden": true},
            14,
            "BSON field 'collMod.index.keyPattern' is the wrong type 'string', expected type 'object'".to_owned(),
        ),
    ] {
        assert_eq!(modify(&index).map(|modified| modified.reply), Err((code, text)));
    }
}

#[test]
fn the_core_rule_takes_no_other_numbers() {
    for seconds in [
        RawBson::Int32(0),
        RawBson::Int32(-2),
        RawBson::Double(20.5),
        RawBson::Int64(2_147_483_648),
    ] {
        let error = modify(&rawdoc! {"name": "ts", "expireAfterSeconds": seconds}).err();
        assert_eq!(error.map(|(code, _)| code), Some(72));
    }
}

#[test]
fn modes_hold_for_changes_too() {
    let definitions = existing();
    let change = rawdoc! {"name": "plain", "expireAfterSeconds": 5};
    for mode in [TtlMode::CosmosTsOnly, TtlMode::CosmosCustomPath] {
        let existing = Existing {
            namespace: "db.c",
            definitions: &definitions,
            ttl_mode: mode,
        };
        let modification = IndexModification::parse(&change).expect("a modification");
        assert_eq!(modification.apply(&existing).err().map(|error| error.code.0), Some(2));
    }
}
