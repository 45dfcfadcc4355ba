use super::{codes, decimal, values};

#[test]
fn sums_and_means() {
    values! {
        {"$sum": "$list"} => 6,
        {"$sum": ["$n", 1]} => 6,
        {"$sum": ["$list", 1]} => 1,
        {"$sum": [["x", null, 2, 0.5]]} => 2.5,
        {"$sum": "$missing"} => 0,
        {"$avg": "$list"} => 2.0,
        {"$avg": ["$n", "x"]} => 5.0,
        {"$avg": [(decimal("1")), 2]} => (decimal("1.5")),
        {"$avg": [(decimal("10")), 20.0]} => (decimal("15")),
        {"$avg": "$missing"} => null,
        {"$avg": [[]]} => null,
    }
}

#[test]
fn extremes_and_deviations() {
    values! {
        {"$min": "$list"} => 1,
        {"$max": ["$list", 100]} => [1, 2, 3],
        {"$max": [[1, "a", null]]} => "a",
        {"$min": [null, "$missing"]} => null,
        {"$stdDevPop": [[2, 4, 4, 4, 5, 5, 7, 9]]} => 2.0,
        {"$stdDevSamp": [[1, 3]]} => (2.0_f64.sqrt()),
        {"$stdDevSamp": [[1]]} => null,
        {"$stdDevPop": [["x"]]} => null,
    }
}

#[test]
fn percentiles() {
    values! {
        {"$percentile": {"input": [5, 1, 4, 2, 3], "p": [0, 0.5, 0.9, 1], "method": "approximate"}} => [1.0, 3.0, 5.0, 5.0],
        {"$percentile": {"input": [], "p": [0.5], "method": "approximate"}} => [null],
        {"$percentile": {"input": 7, "p": [0.5], "method": "approximate"}} => [7.0],
        {"$median": {"input": [4, 1, 3, 2, "x"], "method": "approximate"}} => 2.0,
        {"$median": {"input": "x", "method": "approximate"}} => null,
    }
    codes! {
        {"$percentile": 1} => 7_429_703,
        {"$percentile": {"input": 1, "p": [2], "method": "approximate"}} => 7_750_303,
        {"$percentile": {"input": 1, "p": 1, "method": "approximate"}} => 7_750_301,
        {"$percentile": {"input": 1, "p": ["x"], "method": "approximate"}} => 7_750_302,
        {"$percentile": {"input": 1, "method": "approximate"}} => 40414,
        {"$median": {"input": 1, "method": "exact"}} => 2,
        {"$median": {"input": 1, "method": "approximate", "x": 1}} => 40415,
    }
}
