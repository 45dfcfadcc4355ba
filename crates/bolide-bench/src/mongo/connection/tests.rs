//! Messages as bytes.

use bson::rawdoc;

use super::{is_ok, message};

#[test]
fn a_command_is_one_section() {
    // mongo.md §2: header, flags, kind 0, document.
    let expected = [
        &[36, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0][..],
        &[0, 0, 0, 0, 0],
        &[15, 0, 0, 0, 0x10, b'p', b'i', b'n', b'g', 0, 1, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(message(&rawdoc! {"ping": 1}), expected);
}

#[test]
fn a_reply_with_write_errors_is_no_success() {
    assert!(is_ok(&rawdoc! {"n": 1, "ok": 1.0}));
    assert!(is_ok(&rawdoc! {"ok": 1}));
    assert!(!is_ok(&rawdoc! {"ok": 0.0, "code": 11000}));
    assert!(!is_ok(&rawdoc! {"n": 0, "writeErrors": [{"code": 11000}], "ok": 1.0}));
}
