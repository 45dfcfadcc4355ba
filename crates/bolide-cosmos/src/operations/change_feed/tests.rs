use bolide_model::limits;
use http::HeaderValue;

use super::*;

fn start_of(headers: &[(http::HeaderName, &'static str)]) -> Result<FeedStart> {
    start(
        &headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect(),
    )
}

#[test]
fn the_key_of_a_deleted_item_is_shown_however_large_it_was() {
    let definition = PartitionKeyDefinition::from_json(&json!({"paths": ["/pk"]})).expect("a definition");
    let item = |filler: &str| json!({"id": "a", "pk": "p", "filler": filler}).to_string();
    let filler = "x".repeat(limits::ITEM_BYTES - item("").len());
    let shown = item(&filler).replacen('{', r#"{"_rid":"SnxPAOM2VfMBAAAAAAAAAA==","_ts":1,"#, 1);
    assert_eq!(
        partition_key(shown.as_bytes(), &definition).expect("a stored item"),
        json!({"pk": "p"})
    );
}

#[test]
fn a_continuation_goes_before_a_time_and_may_lack_quotes() {
    let time = (IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:01:00 GMT");
    assert_eq!(start_of(&[]).expect("nothing given"), FeedStart::Beginning);
    assert_eq!(
        start_of(std::slice::from_ref(&time)).expect("a date"),
        FeedStart::Time(UnixSeconds(60))
    );
    let utc = (IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:01:00 UTC");
    assert_eq!(start_of(&[utc]).expect("a date"), FeedStart::Time(UnixSeconds(60)));
    assert_eq!(
        start_of(&[(IF_NONE_MATCH, "*"), time.clone()]).expect("now"),
        FeedStart::Now
    );
    for etag in ["\"57\"", "57"] {
        let start = start_of(&[(IF_NONE_MATCH, etag), time.clone()]).expect("a continuation");
        assert_eq!(start, FeedStart::After("57".to_owned()));
    }
    assert!(start_of(&[(IF_MODIFIED_SINCE, "yesterday")]).is_err());
}
