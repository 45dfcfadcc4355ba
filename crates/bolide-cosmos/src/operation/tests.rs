use http::{HeaderName, HeaderValue};

use super::*;

fn decide(method: &str, path: &str, headers: &[(&'static str, &'static str)]) -> Result<Operation, u16> {
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let method = Method::from_bytes(method.as_bytes()).expect("the test names a method");
    let route = Route::parse(path).expect("the path decodes");
    Operation::of(&route, &method, &headers.collect()).map_err(|failure| failure.status.http.as_u16())
}

#[test]
fn numbers_follow_the_order_of_the_list() {
    for (number, operation) in Operation::all().enumerate() {
        assert_eq!(operation as usize, number, "{}", operation.name());
    }
}

#[test]
fn the_operation_of_a_post_to_items_is_decided_in_order() {
    const DOCS: &str = "/dbs/d/colls/c/docs";
    let plan = ("x-ms-cosmos-is-query-plan-request", "True");
    let query = ("x-ms-documentdb-isquery", "True");
    let upsert = ("x-ms-documentdb-is-upsert", "True");
    assert_eq!(decide("POST", DOCS, &[]), Ok(Operation::CreateItem));
    assert_eq!(decide("POST", DOCS, &[upsert]), Ok(Operation::UpsertItem));
    assert_eq!(decide("POST", DOCS, &[upsert, query]), Ok(Operation::QueryItems));
    assert_eq!(decide("POST", DOCS, &[upsert, query, plan]), Ok(Operation::QueryPlan));
    assert_eq!(
        decide("POST", DOCS, &[plan, ("x-ms-cosmos-is-batch-request", "True")]),
        Ok(Operation::Batch)
    );
}

#[test]
fn the_change_feed_is_a_feed_with_a_mode() {
    const DOCS: &str = "/dbs/d/colls/c/docs";
    assert_eq!(decide("GET", DOCS, &[]), Ok(Operation::ReadFeed));
    assert_eq!(
        decide("GET", DOCS, &[("a-im", "Incremental feed")]),
        Ok(Operation::ReadChanges)
    );
    assert_eq!(
        decide("GET", DOCS, &[("a-im", "Full-Fidelity Feed")]),
        Ok(Operation::ReadChanges)
    );
    assert_eq!(decide("GET", DOCS, &[("a-im", "Other")]), Err(400));
}

#[test]
fn only_stored_procedures_are_executed() {
    assert_eq!(
        decide("POST", "/dbs/d/colls/c/sprocs/s", &[]),
        Ok(Operation::ExecuteProcedure)
    );
    assert_eq!(
        decide("POST", "/dbs/d/colls/c/sprocs", &[]),
        Ok(Operation::CreateScript)
    );
    assert_eq!(decide("POST", "/dbs/d/colls/c/udfs/u", &[]), Err(405));
    assert_eq!(decide("PATCH", "/dbs/d/colls/c/udfs/u", &[]), Err(405));
}

#[test]
fn unknown_paths_are_not_found_and_unsupported_verbs_are_refused() {
    assert_eq!(decide("POST", "/dbs/d/colls/c/triggers/t", &[]), Err(405));
    assert_eq!(
        decide("GET", "/dbs/d/clientencryptionkeys", &[]),
        Ok(Operation::ListEncryptionKeys)
    );
    assert_eq!(decide("DELETE", "/dbs/d/clientencryptionkeys/k", &[]), Err(405));
    assert_eq!(decide("GET", "/nowhere", &[]), Err(404));
    assert_eq!(decide("PUT", "/dbs/d", &[]), Err(405));
    assert_eq!(decide("BREW", "/dbs", &[]), Err(405));
}
