use super::*;

#[test]
fn issued_numbers_are_read_as_they_were_written() {
    let numbers = NextNumbers {
        database: 3,
        offer: 12,
        partition: 4_294_967_296,
    };
    assert_eq!(encode_numbers(numbers), "3 12 4294967296");
    assert_eq!(decode_numbers("3 12 4294967296"), Some(numbers));
    for broken in ["", "3", "3 12", "a b c", "3 12 -1"] {
        assert_eq!(decode_numbers(broken), None, "{broken}");
    }
}
