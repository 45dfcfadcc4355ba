use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;

/// What is read of a connection, byte by byte, and whether frames follow.
async fn begun(bytes: &[u8]) -> Option<(bool, Vec<u8>)> {
    let (mut client, server) = duplex(1);
    let sent = bytes.to_vec();
    let writes = tokio::spawn(async move {
        // The server may have seen enough.
        let _ = client.write_all(&sent).await;
    });
    let mut stream = Begun::read(server).await.ok()?;
    let is_direct = stream.is_direct();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("bytes");
    writes.await.expect("written");
    Some((is_direct, all))
}

#[tokio::test]
async fn the_first_bytes_tell_frames_from_http_and_are_read_again() {
    let context = [0x8F, 0, 0, 0, 0, 0, 0, 0, 7, 7];
    assert_eq!(begun(&context).await, Some((true, context.to_vec())));
    // Of a length that is a letter.
    let letter = [b'G', 0, 0, 0, 0, 0, 0, 0, 7];
    assert_eq!(begun(&letter).await, Some((true, letter.to_vec())));
    for http in [&b"GET / HTTP/1.1\r\n"[..], b"PO", &[0x8F, 0, 0, 0, 3, 0, 3, 0]] {
        assert_eq!(begun(http).await, Some((false, http.to_vec())), "{http:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_is_told() {
    assert_eq!(begun(&[]).await, None);
    assert_eq!(begun(&[0x8F, 0, 0]).await, None);
    assert_eq!(begun(b"P").await, None);
}
