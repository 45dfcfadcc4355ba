use super::*;

fn of(kind: &str, partials: Value) -> Option<Value> {
    aggregate(kind, partials.as_array().expect("a list")).expect("known")
}

#[test]
fn a_part_without_values_counts_for_nothing_and_an_undefined_one_for_everything() {
    let part = |min: i32| json!({"item": min, "item2": {"min": min, "count": 2}});
    let empty = json!({"item2": {"count": 0}});
    let spoiled = json!({"item2": {"count": 3}});
    assert_eq!(of("Min", json!([part(4), empty, part(3)])), Some(json!(3)));
    assert_eq!(of("Min", json!([part(4), spoiled])), None);
    assert_eq!(of("Min", json!([empty])), None);
}

#[test]
fn a_mean_is_made_of_sums_and_counts() {
    let part = |sum: f64, count: u32| json!({"item": {"sum": sum, "count": count}});
    assert_eq!(
        of("Average", json!([part(1.0, 1), part(8.0, 2), part(0.0, 0)])),
        Some(json!(3.0))
    );
    assert_eq!(of("Average", json!([part(0.0, 0)])), None);
    assert_eq!(of("Average", json!([part(1.0, 1), {"item": {"count": 1}}])), None);
}
