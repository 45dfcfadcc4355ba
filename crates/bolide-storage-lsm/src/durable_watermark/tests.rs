//! Claims about the slots of a watermark.

use super::*;

const FIRST: Position = Position {
    numbers: [1, 2, 3, 4, 5],
    time: UnixMillis(1_000),
};
const SECOND: Position = Position {
    numbers: [6, 7, 8, 9, 10],
    time: UnixMillis(2_000),
};

fn read(path: &Path) -> Option<Position> {
    DurableWatermark::open(path)
        .unwrap()
        .map(|watermark| watermark.position())
}

#[test]
fn watermark_comes_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("durable");
    let mut watermark = DurableWatermark::create(&path).unwrap();
    watermark.write(FIRST).unwrap();
    watermark.write(SECOND).unwrap();
    assert_eq!(read(&path), Some(SECOND));
}

#[test]
fn half_written_slot_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("durable");
    let mut watermark = DurableWatermark::create(&path).unwrap();
    watermark.write(FIRST).unwrap();
    watermark.write(SECOND).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // Creation writes both slots, so the second write after it went to the first slot.
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(read(&path), Some(FIRST));
}

#[test]
fn watermark_of_an_earlier_version_is_read_and_has_no_time() {
    let mut slot = UNTIMED_MAGIC.to_vec();
    slot.put_u64(2);
    FIRST.numbers.iter().for_each(|number| slot.put_u64(*number));
    slot.put_u64(fnv1a(&slot));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("durable");
    std::fs::write(&path, &slot).unwrap();
    let expected = Position {
        time: UnixMillis(i64::MIN),
        ..FIRST
    };
    assert_eq!(read(&path), Some(expected));
    DurableWatermark::open(&path).unwrap().unwrap().write(SECOND).unwrap();
    assert_eq!(read(&path), Some(SECOND));
}

#[test]
fn watermark_of_other_bytes_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("durable");
    std::fs::write(&path, b"short").unwrap();
    assert!(DurableWatermark::open(&path).unwrap().is_none());
}
