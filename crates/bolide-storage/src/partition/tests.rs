//! Claims about partition ids.

use super::*;

#[test]
fn a_plain_number_is_a_partition_that_is_its_own_home() {
    for number in [0, 1, 7, u32::MAX] {
        let id = PartitionId::in_own_home(number);
        assert_eq!(id, PartitionId(u64::from(number)));
        assert_eq!((id.home(), id.number()), (HomeId(number), number));
        assert_eq!(id.to_string(), number.to_string());
    }
    assert_eq!(PartitionId::CATALOG, PartitionId::in_own_home(0));
}

#[test]
fn a_partition_of_a_shared_home_has_both() {
    let id = PartitionId::in_home(HomeId(3), 7).unwrap();
    assert_eq!(id, PartitionId(0x3_0000_0007));
    assert_eq!((id.home(), id.number()), (HomeId(3), 7));
    assert_eq!(id.to_string(), "3/7");
}

#[test]
fn each_partition_has_one_name() {
    assert_eq!(PartitionId::in_home(HomeId(7), 7), Some(PartitionId::in_own_home(7)));
    assert_eq!(PartitionId::in_home(HomeId(0), 0), Some(PartitionId::CATALOG));
    assert_eq!(PartitionId::in_home(HomeId(0), 7), None);
}
