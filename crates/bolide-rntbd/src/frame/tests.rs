use super::*;
use crate::token::Kind;

#[test]
fn lengths_outside_the_bounds_are_refused() {
    let rest = |length: u32| head_rest(length.to_le_bytes(), 1_000);
    assert_eq!(rest(24), Ok(20));
    assert_eq!(rest(1_000), Ok(996));
    for length in [0, 23, 1_001, u32::MAX] {
        assert!(
            matches!(
                rest(length),
                Err(Malformed::Length {
                    least: 24,
                    most: 1_000,
                    ..
                })
            ),
            "{length}"
        );
    }
}

#[test]
fn a_request_is_laid_out_as_clients_expect() {
    let mut tokens = TokenWriter::default();
    tokens.byte(0x02, 1);
    assert!(tokens.counted(0x15, Kind::String, b"db"));
    let bytes = Outgoing::request(3, 0x13, [9; 16], &tokens)
        .with_payload(5)
        .write()
        .expect("a frame");
    let expected = [
        &[35, 0, 0, 0, 3, 0, 0x13, 0][..],
        &[9; 16],
        &[0x02, 0, 0, 1],
        &[0x15, 0, 0x08, 2, 0, b'd', b'b'],
        &[5, 0, 0, 0],
    ]
    .concat();
    assert_eq!(bytes[..], expected);
    let head = Head::read(Bytes::from(bytes).slice(4..35)).expect("a head");
    assert_eq!((head.operation(), head.activity_id), ((3, 0x13), [9; 16]));
    assert_eq!(head.tokens.get(0x15).expect("a name").text(), Ok("db"));
}

#[test]
fn a_response_has_a_status_of_32_bits() {
    let tokens = TokenWriter::default();
    let bytes = Outgoing::response(429, [1; 16], &tokens).write().expect("a frame");
    assert_eq!(bytes.len(), HEAD_BYTES);
    let head = Head::read(Bytes::from(bytes).slice(4..)).expect("a head");
    assert_eq!((head.status(), head.activity_id), (429, [1; 16]));
}

#[test]
fn a_head_that_is_too_short_is_refused() {
    for length in 0..20 {
        assert!(Head::read(Bytes::from(vec![0; length])).is_err(), "{length}");
    }
    assert!(Head::read(Bytes::from(vec![0; 20])).is_ok());
}
