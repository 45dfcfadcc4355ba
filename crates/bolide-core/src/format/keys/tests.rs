use super::*;

#[test]
fn expiry_positions_order_as_their_bytes_do() {
    let position = |base, lsn, seq| ExpiryPosition {
        base: UnixSeconds(base),
        version: LogPosition { lsn: Lsn(lsn), seq },
    };
    let ordered = [
        position(i64::MIN, 0, 0),
        position(-1, 9, 9),
        position(0, 0, 1),
        position(0, 1, 0),
        position(7, 0, 0),
    ];
    for pair in ordered.windows(2) {
        assert!(pair[0].to_bytes() < pair[1].to_bytes(), "{pair:?}");
        assert!(pair[0] < pair[1], "{pair:?}");
    }
    for position in ordered {
        assert_eq!(ExpiryPosition::decode(&position.to_bytes()), Some(position));
    }
}

/// A log key of all ones, from damaged bytes, stopped the worker of its partition.
#[test]
fn the_last_position_of_all_has_a_next() {
    let last = LogPosition::decode(&[0xFF; LogPosition::BYTES]).expect("it has the length");
    assert_eq!(last.next(), last);
    let before = LogPosition {
        lsn: Lsn(7),
        seq: u32::MAX,
    };
    assert_eq!(before.next(), LogPosition { lsn: Lsn(8), seq: 0 });
}

#[test]
fn positions_have_one_length() {
    for length in (0..30).filter(|length| *length != LogPosition::BYTES) {
        assert_eq!(LogPosition::decode(&vec![0; length]), None, "{length}");
    }
}

#[test]
fn nothing_follows_the_highest_prefix() {
    assert_eq!(after_prefix(&[1, 0xFF, 0xFF]).as_deref(), Some(&[2][..]));
    assert_eq!(after_prefix(&[0xFF]), None);
    assert_eq!(after_prefix(&[]), None);
}

#[test]
fn the_next_key_is_recognised() {
    for key in [&b""[..], b"a", b"a\0", b"\0"] {
        assert!(is_after(&after(key), key), "{key:?}");
        assert!(!is_after(key, key), "{key:?}");
        assert!(!is_after(&[key, b"\x01"].concat(), key), "{key:?}");
        assert!(!is_after(&[key, b"\0\0"].concat(), key), "{key:?}");
    }
}
