use super::*;

fn target(text: &str) -> Target {
    Target::parse("--endpoint", text).expect("valid")
}

#[test]
fn an_endpoint_has_a_scheme_a_host_and_a_port() {
    let local = target("http://localhost:8081/");
    assert_eq!((local.is_tls, local.authority()), (false, "localhost:8081".to_owned()));
    let v6 = target("https://[::1]:8081");
    assert_eq!(
        (v6.host.as_str(), v6.url("http")),
        ("::1", "http://[::1]:8081".to_owned())
    );
    assert_eq!(target("https://db.example").port, 443);
    assert_eq!(target("http://db.example").port, 80);
    assert!(v6.is_loopback() && !target("http://db.example").is_loopback());
}

#[test]
fn other_texts_are_refused_with_the_option_and_the_value() {
    for text in [
        "localhost:8081",
        "ftp://localhost",
        "http://",
        "http://h:1/path",
        "http://h:1/?x",
        "http://u:p@h:1",
        "",
    ] {
        let refused = Target::parse("--endpoint", text).expect_err(text).to_string();
        assert!(
            refused.contains("--endpoint") && refused.contains(&format!("`{text}`")),
            "{refused}"
        );
    }
}

#[test]
fn an_answer_is_read_to_its_declared_length() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: now\r\n\r\n{}";
    assert!(is_complete(whole) && !is_complete(&whole[..whole.len() - 1]) && !is_complete(b"HTTP/1.1 200"));
    let answer = HttpAnswer::parse(whole).expect("an answer");
    assert_eq!(
        (answer.status, answer.header("date"), answer.text()),
        (200, Some("now"), "{}".to_owned())
    );
    for other in [
        &b"\x15\x03\x03\x00\x02\x02\x46"[..],
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"",
        b"HTTP/1.1 many\r\n\r\n",
    ] {
        assert_eq!(HttpAnswer::parse(other), None);
    }
}

#[test]
fn an_endless_answer_is_cut() {
    let bytes = receive(&mut io::repeat(b'x')).expect("some bytes");
    assert!((ANSWER_BYTES..ANSWER_BYTES + 4096).contains(&bytes.len()));
}
