use super::*;

#[test]
fn fields_come_back_as_they_were_written() {
    let mut pipe = Vec::new();
    let frame = Frame::new(7)
        .flag(true)
        .small(5)
        .number(u64::MAX)
        .text("ä")
        .optional(None);
    frame.optional(Some("")).send(&mut pipe, 100).expect("it fits");
    let bytes = receive(&mut &pipe[..], 100).expect("a frame");
    let mut fields = Fields::of(&bytes);
    assert_eq!(fields.tag(), Some(7));
    assert_eq!(fields.flag(), Some(true));
    assert_eq!(fields.small(), Some(5));
    assert_eq!(fields.number(), Some(u64::MAX));
    assert_eq!(fields.text().as_deref(), Some("ä"));
    assert_eq!(fields.optional(), Some(None));
    assert_eq!(fields.optional(), Some(Some(String::new())));
    assert_eq!(fields.end(()), Some(()));
}

#[test]
fn frames_that_are_too_long_are_neither_sent_nor_read() {
    let error = Frame::new(0)
        .text("12345")
        .send(&mut Vec::new(), 9)
        .expect_err("ten bytes");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let mut pipe = Vec::new();
    Frame::new(0).text("12345").send(&mut pipe, 10).expect("ten bytes");
    assert_eq!(
        receive(&mut &pipe[..], 9).expect_err("ten").kind(),
        ErrorKind::InvalidData
    );
    let endless = [0xFF; 100];
    assert_eq!(
        receive(&mut &endless[..], 1000).expect_err("4 GB").kind(),
        ErrorKind::InvalidData
    );
}

#[test]
fn a_frame_that_breaks_off_is_an_end() {
    let mut pipe = Vec::new();
    Frame::new(0).text("12345").send(&mut pipe, 10).expect("ten bytes");
    for length in 0..pipe.len() {
        let error = receive(&mut &pipe[..length], 10).expect_err("not whole");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length}");
    }
}

#[test]
fn fields_that_are_not_there_are_none() {
    assert_eq!(Fields::of(&[]).tag(), None);
    assert_eq!(Fields::of(&[2]).flag(), None);
    assert_eq!(Fields::of(&[0, 0, 0, 9, b'x']).text(), None);
    assert_eq!(Fields::of(&[0, 0, 0, 1, 0xFF]).text(), None);
    assert_eq!(Fields::of(&[1]).end(()), None);
}
