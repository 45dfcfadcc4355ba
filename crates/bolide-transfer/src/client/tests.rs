use std::time::Duration;

use bolide_model::account_key::WELL_KNOWN_KEY;

use super::retries::Retries;
use super::*;

/// Source: the example of the REST reference, "Access control on Cosmos DB resources".
#[test]
fn a_feed_is_signed_by_its_parent_and_a_resource_by_itself() {
    let key =
        AccountKey::parse("dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==")
            .expect("a key");
    let date = "Thu, 27 Apr 2017 00:51:12 GMT";
    assert_eq!(
        signature::signed(&key, &Method::GET, &["dbs", "ToDoList"], date),
        "type%3Dmaster%26ver%3D1%2E0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D"
    );
}

#[test]
fn ids_are_escaped_in_paths_and_not_in_signatures() {
    assert_eq!(
        path(&["dbs", "a b", "colls", "ä/ö"]),
        "/dbs/a%20b/colls/%C3%A4%2F%C3%B6"
    );
}

#[test]
fn waits_grow_and_end() {
    let mut retries = Retries::default();
    let waits: Vec<Duration> = std::iter::from_fn(|| retries.unavailable()).take(100).collect();
    assert_eq!(waits[0], Duration::from_millis(50));
    assert_eq!(waits[1], Duration::from_millis(100));
    assert!(waits.len() < 100, "it gives up");
    assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(60));
    let mut retries = Retries::default();
    assert_eq!(retries.throttled(Some(7)), Some(Duration::from_millis(7)));
    let many = std::iter::from_fn(|| retries.throttled(Some(10_000_000)))
        .take(100)
        .count();
    assert!(many < 100, "it gives up");
}

#[test]
fn a_key_that_is_none_is_refused() {
    struct Nowhere;
    impl Transport for Nowhere {
        fn send(&self, _: Request<Vec<u8>>) -> std::result::Result<Response<Vec<u8>>, String> {
            Err("nowhere".to_owned())
        }
        fn import_lines(&self, _: Request<()>, _: &mut dyn Read) -> std::result::Result<Response<Vec<u8>>, String> {
            Err("nowhere".to_owned())
        }
        fn name(&self) -> &str {
            "here"
        }
    }
    assert!(Client::new(Arc::new(Nowhere), "?").is_err());
    let client = Client::new(Arc::new(Nowhere), WELL_KNOWN_KEY).expect("a key");
    let unreachable = client.send(&Draft::get(&["dbs"])).map(|answer| answer.status);
    assert_eq!(unreachable, Err(Failure::new("here: nowhere")));
}
