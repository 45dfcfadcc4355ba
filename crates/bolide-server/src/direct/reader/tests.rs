use http_body_util::BodyExt as _;
use tokio::io::{AsyncWriteExt as _, duplex, split};
use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn nothing_is_lost_while_it_is_watched_whether_the_client_leaves() {
    let (mut client, server) = duplex(64);
    let mut reader = Reader::new(split(server).0);
    client.write_all(b"abc").await.expect("open");
    let soon = std::time::Duration::from_millis(1);
    for _ in 0..3 {
        assert!(timeout(soon, reader.left()).await.is_err());
    }
    let mut read = [0; 3];
    reader.read_exact(&mut read).await.expect("three bytes");
    assert_eq!(&read, b"abc");
    drop(client);
    assert_eq!(reader.left().await.kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_payload_ends_where_the_next_frame_begins() {
    let (mut client, server) = duplex(64 * 1024);
    let mut reader = Reader::new(split(server).0);
    let payload = vec![7; 2 * READ_BYTES + 5];
    client.write_all(&payload).await.expect("open");
    client.write_all(b"next").await.expect("open");
    let read = Arriving::new(&mut reader, payload.len())
        .collect()
        .await
        .expect("a payload");
    assert_eq!(read.to_bytes(), payload);
    let mut next = [0; 4];
    reader.read_exact(&mut next).await.expect("the next frame");
    assert_eq!(&next, b"next");
    // One that breaks off is no whole payload.
    client.write_all(b"x").await.expect("open");
    drop(client);
    let mut broken = Arriving::new(&mut reader, 2);
    assert!(broken.frame().await.expect("a byte").is_ok());
    assert!(broken.frame().await.expect("an error").is_err());
    assert_eq!(broken.left(), 1);
}
