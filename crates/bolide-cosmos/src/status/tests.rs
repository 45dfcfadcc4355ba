use super::*;

#[test]
fn phrases_clients_search_for_come_first() {
    let failure = Failure::from(Error::not_found("no item has this id. id=`a`"));
    assert!(failure.message.starts_with("Resource Not Found"), "{}", failure.message);
    assert!(failure.message.ends_with("id=`a`"), "{}", failure.message);
}

#[test]
fn a_phrase_of_the_core_is_not_repeated() {
    let failure = Failure::from(Error::conflict(
        "Resource with specified id, name, or unique index already exists. id=`a`",
    ));
    assert_eq!(failure.message.matches("already exists").count(), 1);
}

#[test]
fn an_account_that_is_full_is_forbidden_more_in_the_services_words() {
    let failure = Failure::from(Error::new(ErrorKind::QuotaExceeded, "too many"));
    assert_eq!((failure.status.http.as_u16(), failure.status.sub), (403, 1005));
    assert_eq!(failure.message, "too many");
}

#[test]
fn a_cross_partition_query_carries_its_plan() {
    let kind = ErrorKind::CrossPartitionQuery { plan: "{}".to_owned() };
    let failure = Failure::from(Error::new(kind, "ORDER BY needs a merge"));
    assert_eq!((failure.status.http.as_u16(), failure.status.sub), (400, 1004));
    assert_eq!(failure.additional.as_deref(), Some("{}"));
}
