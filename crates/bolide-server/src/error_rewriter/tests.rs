use super::*;

#[test]
fn only_refusals_are_replaced() {
    let status = |written: &[u8]| refused_status(written).map(|status| status.as_u16());
    assert_eq!(status(b"HTTP/1.1 431 Request Header Fields Too Large\r\n"), Some(431));
    assert_eq!(status(b"HTTP/1.1 400 Bad Request\r\n"), Some(400));
    for other in [
        &b"HTTP/1.1 100 Continue\r\n"[..],
        b"HTTP/1.1 200 OK\r\n",
        b"{}",
        b"HTTP/1.1 4",
    ] {
        assert_eq!(status(other), None, "{}", other.escape_ascii());
    }
}
