//! Clients that stop in the middle of a message or reply.

use super::*;

#[tokio::test]
async fn clients_that_stop_in_the_middle_of_a_long_message_are_disconnected() {
    let long = rawdoc! { "insert": "c", "documents": [{ "text": "x".repeat(4 * 1024 * 1024) }], "$db": "db" };
    let clock = Monotonic::manual();
    let options = MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    };
    // A request: the time for all of it is not over.
    let mut client = Connected::at(options, clock.clone()).await;
    client.send(&request(1, 0, &ping())).await;
    client.receive().await;
    let bytes = request(2, 0, &long);
    for part in [&bytes[..1000], &bytes[1000..2000]] {
        client.send(part).await;
        settle().await;
        clock.advance(TIMEOUTS.request - Duration::from_millis(1));
        settle().await;
        assert!(!client.serving.is_finished());
    }
    clock.advance(Duration::from_millis(1));
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn clients_that_stop_taking_a_long_reply_are_disconnected() {
    let clock = Monotonic::manual();
    let options = MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    };
    let mut client = Connected::at(options, clock.clone()).await;
    let long = rawdoc! { "insert": "c", "documents": [{ "_id": 1, "text": "x".repeat(4 * 1024 * 1024) }], "$db": "db" };
    client.send(&request(1, 0, &long)).await;
    client.receive().await;
    let modify = rawdoc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$set": { "n": 1 } }, "$db": "db" };
    client.send(&request(2, 0, &modify)).await;
    let mut part = vec![0; 1024 * 1024];
    for _ in 0..2 {
        client.stream.read_exact(&mut part).await.expect("a part of the reply");
        settle().await;
        clock.advance(TIMEOUTS.request - Duration::from_millis(1));
        settle().await;
        assert!(!client.serving.is_finished());
    }
    clock.advance(Duration::from_millis(1));
    settle().await;
    let rest = client.closed().await;
    assert!(rest.len() < 2 * 1024 * 1024, "the rest was not sent");
}
