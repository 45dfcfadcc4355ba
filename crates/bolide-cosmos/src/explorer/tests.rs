use super::*;

#[test]
fn gzip_is_sent_to_those_who_list_it() {
    for (sent, is_read) in [
        ("gzip", true),
        ("br;q=1.0, gzip;q=0.8", true),
        ("deflate , gzip", true),
        ("gzip;q=0", false),
        ("gzip; q=0", false),
        ("br, x-gzip", false),
        ("", false),
    ] {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(sent))]);
        assert_eq!(reads_gzip(&headers), is_read, "{sent}");
    }
}

#[test]
fn what_a_client_sends_as_its_host_stays_text() {
    let session = Session {
        endpoint: "http://</script>\"",
        key: None,
    };
    let Payload::Whole(body) = session.reply().payload else {
        panic!("it is whole")
    };
    let read: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(read["endpoint"], "http://</script>\"");
    let Payload::Whole(body) = page(&session).expect("a page").payload else {
        panic!("it is whole")
    };
    let html = str::from_utf8(&body).expect("text");
    assert!(
        html.contains("&quot;endpoint&quot;:&quot;http://&lt;/script&gt;\\&quot;&quot;"),
        "{html}"
    );
    assert!(!html.contains("http://<") && !html.contains("{session}"), "{html}");
}
