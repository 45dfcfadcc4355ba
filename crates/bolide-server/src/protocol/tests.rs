use super::*;

#[test]
fn the_first_bytes_tell_the_protocol() {
    assert_eq!(Protocol::of(&[0x16, 0x03]), Some(Protocol::Tls));
    assert_eq!(Protocol::of(b"PRI"), Some(Protocol::Http2));
    for verb in ["GET", "POS", "PUT", "PAT", "DEL", "G", "PO"] {
        assert_eq!(Protocol::of(verb.as_bytes()), Some(Protocol::Http1), "{verb}");
    }
    for short in ["", "P", "PR"] {
        assert_eq!(Protocol::of(short.as_bytes()), None, "{short}");
    }
}
