use super::*;

#[test]
fn there_is_room_below_both_limits() {
    let of = |items, bytes| check_room(Usage { items, bytes }).map_err(|error| error.code).err();
    assert_eq!(of(limits::USERS - 1, limits::USERS_BYTES - 1), None);
    assert_eq!(of(limits::USERS, 0), Some(Code::OPERATION_FAILED));
    assert_eq!(of(0, limits::USERS_BYTES), Some(Code::OPERATION_FAILED));
    let bytes = limits::USERS_BYTES;
    assert_eq!(
        check_size(Usage { items: 1, bytes }).map_err(|error| error.code).err(),
        Some(Code::OPERATION_FAILED)
    );
}
