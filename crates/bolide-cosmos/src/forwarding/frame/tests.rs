use super::*;

/// A request of a client, as the listener has read it.
fn head() -> Parts {
    let request = Request::post("http://one:8081/dbs/d/colls/c/docs?x=1&y")
        .header("host", "one:8081")
        .header("content-length", "9")
        .header("connection", "close")
        .header("authorization", "type%3dmaster")
        .header("date", "today")
        .header("x-ms-activity-id", "of the client")
        .header("prefer", "a")
        .header("prefer", "b");
    request.body(()).unwrap().into_parts().0
}

fn sent(head: &Parts) -> Sent<'_> {
    Sent {
        head,
        activity_id: "7",
        body: b"{\"id\":\"a\"}",
    }
}

fn request_frame() -> BytesMut {
    let mut frame = BytesMut::new();
    put_request(&mut frame, 3, sent(&head())).unwrap();
    frame
}

/// As the module describes it, written by hand.
fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn a_request_is_laid_out_as_described() {
    let mut rest = 3_u64.to_le_bytes().to_vec();
    rest.extend(text("POST"));
    rest.extend(text("/dbs/d/colls/c/docs?x=1&y"));
    rest.push(5);
    for (name, value) in [
        ("authorization", "type%3dmaster"),
        // It may be signed.
        ("date", "today"),
        ("prefer", "a"),
        ("prefer", "b"),
        ("x-ms-activity-id", "7"),
    ] {
        rest.extend(text(name));
        rest.extend(text(value));
    }
    rest.extend(b"{\"id\":\"a\"}");
    let expected = [&(rest.len() as u32).to_le_bytes()[..], &rest].concat();
    assert_eq!(request_frame(), expected);
}

#[test]
fn a_request_arrives_without_what_belongs_to_the_connection_of_its_client() {
    let (number, rest) = take(&mut request_frame()).unwrap().expect("it is complete");
    assert_eq!(number, 3);
    let arrived = request(rest).unwrap();
    assert_eq!(arrived.method(), Method::POST);
    assert_eq!(arrived.uri(), "/dbs/d/colls/c/docs?x=1&y");
    let headers = arrived.headers().iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        headers,
        [
            ("authorization", "type%3dmaster"),
            ("date", "today"),
            ("prefer", "a"),
            ("prefer", "b"),
            ("x-ms-activity-id", "7"),
        ]
    );
    assert_eq!(arrived.body(), "{\"id\":\"a\"}");
}

#[test]
fn a_response_arrives() {
    let sent = Response::builder()
        .status(412)
        .header("etag", "\"1\"")
        .header("connection", "close");
    let sent = sent.body(Bytes::from_static(b"{}")).unwrap();
    let mut frames = BytesMut::new();
    put_response(&mut frames, 9, &sent).unwrap();
    put_number(&mut frames, STOPS);
    put_number(&mut frames, 10);
    let (number, rest) = take(&mut frames).unwrap().expect("it is complete");
    let arrived = response(rest).unwrap();
    assert_eq!((number, arrived.status().as_u16()), (9, 412));
    assert_eq!(
        arrived.headers(),
        &HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"1\""))])
    );
    assert_eq!(arrived.body(), "{}");
    assert_eq!(take(&mut frames), Ok(Some((STOPS, Bytes::new()))));
    assert_eq!(take(&mut frames), Ok(Some((10, Bytes::new()))));
    assert_eq!(take(&mut frames), Ok(None));
}

#[test]
fn a_frame_is_taken_when_all_of_it_has_come() {
    let whole = request_frame();
    for length in 0..whole.len() {
        let mut arrived = BytesMut::from(&whole[..length]);
        assert_eq!(take(&mut arrived), Ok(None), "{length}");
        arrived.extend_from_slice(&whole[length..]);
        assert!(take(&mut arrived).unwrap().is_some(), "{length}");
        assert!(arrived.is_empty());
    }
}

#[test]
fn what_is_too_large_is_not_sent_and_not_taken() {
    let mut frames = request_frame();
    let before = frames.clone();
    let large = vec![0; FRAME_BYTES];
    let head = head();
    let refused = put_request(
        &mut frames,
        4,
        Sent {
            body: &large,
            ..sent(&head)
        },
    );
    assert_eq!((refused, &frames), (Err(Malformed), &before));
    let long = HeaderValue::try_from(vec![b'x'; 65_536]).unwrap();
    let mut response = Response::new(Bytes::new());
    response.headers_mut().insert(header::ETAG, long);
    assert_eq!(
        (put_response(&mut frames, 4, &response), &frames),
        (Err(Malformed), &before)
    );

    for length in [0, 7, FRAME_BYTES as u32 + 1, u32::MAX] {
        let mut arrived = BytesMut::from(&length.to_le_bytes()[..]);
        assert_eq!(take(&mut arrived), Err(Malformed), "{length}");
    }
    let mut arrived = BytesMut::from(&(FRAME_BYTES as u32).to_le_bytes()[..]);
    assert_eq!(take(&mut arrived), Ok(None));
}

#[test]
fn the_largest_request_that_is_forwarded_fits() {
    let mut request = Request::new(());
    for number in 0..crate::forwarding::HEADERS {
        let name = HeaderName::try_from(format!("x-{number}")).unwrap();
        let value = HeaderValue::try_from(vec![b'x'; 1_600]).unwrap();
        request.headers_mut().insert(name, value);
    }
    let (head, ()) = request.into_parts();
    let body = vec![0; crate::forwarding::BODY_BYTES];
    assert_eq!(
        put_request(
            &mut BytesMut::new(),
            1,
            Sent {
                body: &body,
                ..sent(&head)
            }
        ),
        Ok(())
    );
}

#[test]
fn parts_of_frames_and_other_bytes_are_no_requests_and_no_responses() {
    let (_, whole) = take(&mut request_frame()).unwrap().expect("it is complete");
    let head_bytes = whole.len() - b"{\"id\":\"a\"}".len();
    for length in 0..head_bytes {
        assert_eq!(request(whole.slice(..length)).err(), Some(Malformed), "{length}");
    }
    for wrong in [
        // A method, a path, a header name and a value that are none.
        [text("GE T"), text("/"), vec![0]].concat(),
        [text("GET"), text("/a b"), vec![0]].concat(),
        [text("GET"), text("/"), vec![1], text("a b"), text("c")].concat(),
        [text("GET"), text("/"), vec![1], text("a"), text("b\r\nc")].concat(),
    ] {
        assert_eq!(request(Bytes::from(wrong.clone())).err(), Some(Malformed), "{wrong:?}");
    }
    for wrong in [&[][..], &[200], &[200, 0], &[5, 0, 0], &[200, 0, 1]] {
        assert_eq!(
            response(Bytes::copy_from_slice(wrong)).err(),
            Some(Malformed),
            "{wrong:?}"
        );
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let mut bytes = whole.to_vec();
        for _ in 0..random.usize(1..8) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        // It does not panic, and takes no more than there is.
        let taken = request(Bytes::from(bytes.clone())).map_or(0, |request| request.body().len());
        assert!(taken <= bytes.len());
        let _ = response(Bytes::from(bytes));
    }
}
