use bolide_model::ttl::{DateRule, RuleId};
use bolide_mql::bson::oid::ObjectId;
use bolide_mql::bson::{DateTime, RawBsonRef, RawDocumentBuf};
use bolide_mql::index::IndexDefinition;

use super::*;

#[test]
fn a_text_names_the_id_of_a_document() {
    let id_index = IndexDefinition::id_index(None).expect("a definition");
    let collection = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
    let hex = "65a000000000000000000001";
    let oid = ObjectId::parse_str(hex).expect("an object id");
    for (text, id) in [
        ("plain text", RawBsonRef::String("plain text")),
        ("\"5\"", RawBsonRef::String("5")),
        ("5", RawBsonRef::Int32(5)),
        ("5.5", RawBsonRef::Double(5.5)),
        ("true", RawBsonRef::Boolean(true)),
        ("null", RawBsonRef::Null),
        (&format!("{{\"$oid\": \"{hex}\"}}"), RawBsonRef::ObjectId(oid)),
        (
            "{\"$date\": {\"$numberLong\": \"5\"}}",
            RawBsonRef::DateTime(DateTime::from_millis(5)),
        ),
    ] {
        assert_eq!(
            id_of_text(text, &collection).ok(),
            Some(DocumentId::of(id, None)),
            "{text}"
        );
    }
    for text in [
        "[1]",
        "{\"a\": 1}",
        "{\"$oid\": \"x\"}",
        "{\"$oid\": \"\", \"a\": 1}",
        "{\"$date\": 5}",
    ] {
        assert!(id_of_text(text, &collection).is_err(), "{text}");
    }
}

#[test]
fn the_oldest_ghost_ended_first_and_not_before_its_whole_second() {
    let rules = DateRules::new(vec![DateRule::new(RuleId(1), 10), DateRule::new(RuleId(2), 0)]);
    let deadline = |rule, date| Deadline {
        rule: RuleId(rule),
        date: UnixMillis(date),
    };
    assert_eq!(oldest_pending(&rules, &[]), None);
    assert_eq!(
        oldest_pending(&rules, &[deadline(1, 500), deadline(2, 11_000)]),
        Some(11)
    );
    assert_eq!(oldest_pending(&rules, &[deadline(1, 1), deadline(2, 10_000)]), Some(10));
    assert_eq!(oldest_pending(&rules, &[deadline(3, 1)]), None);
}
