use super::*;

#[test]
fn published_sizes_cost_what_is_published() {
    assert_eq!(point_read(1024), RequestUnits(1.0));
    assert_eq!(write(1024), RequestUnits(4.95));
    assert_eq!(point_read(65536), RequestUnits(4.76));
    assert_eq!(write(2_097_152), RequestUnits(1250.0));
}

#[test]
fn sizes_between_cost_in_proportion() {
    assert_eq!(write(3072), RequestUnits(6.48));
}

#[test]
fn smaller_than_the_table_costs_as_its_first_row() {
    assert_eq!(point_read(0), RequestUnits(1.0));
}
