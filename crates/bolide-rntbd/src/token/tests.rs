use proptest::prelude::*;

use super::*;

/// The bytes of one token with a value.
fn bytes(id: u16, kind: u8, value: &[u8]) -> Bytes {
    let [low, high] = id.to_le_bytes();
    [&[low, high, kind], value].concat().into()
}

#[test]
fn each_type_is_read_by_its_number() {
    // rntbd.md §3.4.
    let read = |kind: u8, value: &[u8]| {
        let tokens = Tokens::read(bytes(0x0102, kind, value)).expect("a token");
        tokens.get(0x0102).expect("its id").clone()
    };
    assert_eq!(read(0x00, &[0xFE]).whole(), Ok(0xFE));
    assert_eq!(read(0x01, &[0x34, 0x12]).whole(), Ok(0x1234));
    assert_eq!(read(0x02, &[0xFF; 4]).whole(), Ok(0xFFFF_FFFF));
    assert_eq!(read(0x03, &[0xFF; 4]).whole(), Ok(-1));
    assert_eq!(read(0x04, &[0xFF; 8]).whole(), Ok(u64::MAX.into()));
    assert_eq!(
        read(0x05, &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).whole(),
        Ok(-2)
    );
    assert_eq!(read(0x06, &[7; 16]).guid(), Ok([7; 16]));
    assert_eq!(read(0x07, b"\x02ab").text(), Ok("ab"));
    assert_eq!(read(0x08, b"\x02\0ab").text(), Ok("ab"));
    assert_eq!(read(0x09, b"\x02\0\0\0ab").text(), Ok("ab"));
    assert_eq!(read(0x0A, b"\x02\x80\xFF").bytes().expect("bytes")[..], [0x80, 0xFF]);
    assert_eq!(read(0x0B, b"\x01\0\x80").bytes().expect("bytes")[..], [0x80]);
    assert_eq!(read(0x0C, b"\0\0\0\0").bytes().expect("bytes")[..], []);
    assert_eq!(read(0x0D, &1.5_f32.to_le_bytes()).double(), Ok(1.5));
    assert_eq!(read(0x0E, &(-0.25_f64).to_le_bytes()).double(), Ok(-0.25));
}

#[test]
fn a_value_of_another_type_is_told() {
    let number = Tokens::read(bytes(7, 0x02, &[1, 0, 0, 0])).expect("a token");
    let number = number.required(7).expect("it is there");
    assert_eq!(number.text(), Err(Malformed::Other(7)));
    assert_eq!(number.bytes(), Err(Malformed::Other(7)));
    assert_eq!(number.guid(), Err(Malformed::Other(7)));
    assert_eq!(number.double(), Err(Malformed::Other(7)));
    let text = Tokens::read(bytes(7, 0x07, b"\x01\xFF")).expect("a token");
    assert_eq!(text.required(7).expect("it is there").text(), Err(Malformed::Text(7)));
    assert_eq!(text.required(8), Err(Malformed::Missing(8)));
}

#[test]
fn what_is_cut_off_or_there_twice_is_refused() {
    let read = |bytes: &[u8]| Tokens::read(Bytes::copy_from_slice(bytes));
    assert_eq!(read(&[1, 0]), Err(Malformed::Rest(2)));
    assert_eq!(read(&[1, 0, 0x0F]), Err(Malformed::Kind { id: 1, kind: 0x0F }));
    assert_eq!(read(&[1, 0, 0xFF]), Err(Malformed::Kind { id: 1, kind: 0xFF }));
    assert_eq!(read(&[1, 0, 0x02, 0, 0, 0]), Err(Malformed::CutOff(1)));
    assert_eq!(read(&[1, 0, 0x08, 5]), Err(Malformed::CutOff(1)));
    assert_eq!(read(&[1, 0, 0x08, 5, 0, b'a']), Err(Malformed::CutOff(1)));
    assert_eq!(
        read(&[1, 0, 0x0C, 0xFF, 0xFF, 0xFF, 0xFF, b'a']),
        Err(Malformed::CutOff(1))
    );
    assert_eq!(read(&[1, 0, 0, 7, 2, 0, 0, 7, 1, 0, 1, 7, 7]), Err(Malformed::Twice(1)));
}

#[test]
fn a_frame_has_no_more_tokens_than_any_client_sends() {
    let frame = |count: u16| {
        let mut tokens = TokenWriter::default();
        (0..count).for_each(|id| tokens.byte(id, 0));
        Tokens::read(Bytes::copy_from_slice(tokens.bytes())).map(|_| ())
    };
    assert_eq!(frame(1024), Ok(()));
    assert_eq!(frame(1025), Err(Malformed::TooMany));
}

#[test]
fn a_text_that_is_too_long_for_its_type_is_not_written() {
    let mut tokens = TokenWriter::default();
    assert!(tokens.counted(1, Kind::SmallString, &[b'a'; 255]));
    let before = tokens.bytes().len();
    assert!(!tokens.counted(2, Kind::SmallString, &[b'a'; 256]));
    assert!(!tokens.counted(2, Kind::String, &[b'a'; 65_536]));
    assert!(!tokens.counted(2, Kind::Byte, b"a"));
    assert_eq!(tokens.bytes().len(), before);
    assert!(tokens.counted(2, Kind::ULongString, &[b'a'; 65_536]));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        byte: u8, short: u16, long: u32, signed: i64, double: f64, guid: [u8; 16], text: String, raw: Vec<u8>,
    ) {
        let mut writer = TokenWriter::default();
        writer.byte(1, byte);
        writer.u_short(2, short);
        writer.u_long(3, long);
        writer.long_long(4, signed);
        writer.double(5, double);
        writer.guid(6, guid);
        prop_assert!(writer.counted(7, Kind::ULongString, text.as_bytes()));
        prop_assert!(writer.counted(8, Kind::Bytes, &raw));
        let tokens = Tokens::read(Bytes::copy_from_slice(writer.bytes())).expect("tokens");
        let token = |id| tokens.required(id).expect("it is there");
        prop_assert_eq!(token(1).whole(), Ok(byte.into()));
        prop_assert_eq!(token(2).whole(), Ok(short.into()));
        prop_assert_eq!(token(3).whole(), Ok(long.into()));
        prop_assert_eq!(token(4).whole(), Ok(signed.into()));
        prop_assert_eq!(token(5).double().map(f64::to_bits), Ok(double.to_bits()));
        prop_assert_eq!(token(6).guid(), Ok(guid));
        prop_assert_eq!(token(7).text(), Ok(text.as_str()));
        prop_assert_eq!(&token(8).bytes().expect("bytes")[..], &raw[..]);
    }

    #[test]
    fn no_bytes_are_too_much(bytes: Vec<u8>) {
        if let Ok(tokens) = Tokens::read(bytes.into()) {
            for token in tokens.iter() {
                let _ = (token.text(), token.whole(), token.double(), token.guid(), token.bytes());
            }
        }
    }
}
