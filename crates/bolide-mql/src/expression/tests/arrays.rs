use bson::rawbson;

use super::{check, codes, missing, values};

#[test]
fn elements_and_sizes() {
    values! {
        {"$arrayElemAt": ["$list", 0]} => 1,
        {"$arrayElemAt": ["$list", (-1)]} => 3,
        {"$arrayElemAt": ["$list", 1.0]} => 2,
        {"$arrayElemAt": [null, 0]} => null,
        {"$first": "$list"} => 1,
        {"$last": "$list"} => 3,
        {"$first": "$missing"} => null,
        {"$size": "$list"} => 3,
        {"$size": [[]]} => 0,
        {"$isArray": "$list"} => true,
        {"$isArray": ["$n"]} => false,
        {"$isArray": "$missing"} => false,
        {"$reverseArray": "$list"} => [3, 2, 1],
        {"$reverseArray": null} => null,
        {"$in": [2.0, "$list"]} => true,
        {"$in": [9, "$list"]} => false,
        {"$in": [null, [1]]} => false,
        {"$indexOfArray": ["$list", 2]} => 1,
        {"$indexOfArray": ["$list", 9]} => (-1),
        {"$indexOfArray": ["$list", 1, 1]} => (-1),
        {"$indexOfArray": ["$list", 3, 0, 2]} => (-1),
        {"$indexOfArray": [null, 1]} => null,
        {"$concatArrays": ["$list", [4]]} => [1, 2, 3, 4],
        {"$concatArrays": []} => [],
        {"$concatArrays": ["$list", null]} => null,
    }
    missing! {
        {"$arrayElemAt": ["$list", 3]},
        {"$arrayElemAt": ["$list", (-4)]},
        {"$first": [[]]},
        {"$last": {"$literal": []}},
    }
    codes! {
        {"$arrayElemAt": [1, 0]} => 28689,
        {"$arrayElemAt": ["$list", "x"]} => 28690,
        {"$arrayElemAt": ["$list", 1.5]} => 28691,
        {"$first": 1} => 28689,
        {"$size": "$n"} => 17124,
        {"$size": "$missing"} => 17124,
        {"$size": null} => 17124,
        {"$reverseArray": 1} => 34435,
        {"$in": [1, 2]} => 40081,
        {"$in": [1, "$missing"]} => 40081,
        {"$indexOfArray": [1, 2]} => 40090,
        {"$indexOfArray": ["$list", 2, "x"]} => 40096,
        {"$indexOfArray": ["$list", 2, (-1)]} => 40097,
        {"$concatArrays": [1]} => 28664,
    }
}

#[test]
fn ranges() {
    values! {
        {"$range": [0, 3]} => [0, 1, 2],
        {"$range": [0, 10, 4]} => [0, 4, 8],
        {"$range": [3, 0, (-1)]} => [3, 2, 1],
        {"$range": [0, 3, (-1)]} => [],
        {"$range": [3, 3]} => [],
        {"$range": [2_147_483_640, 2_147_483_647, 5]} => [2_147_483_640, 2_147_483_645],
    }
    codes! {
        {"$range": ["x", 1]} => 34443,
        {"$range": [0.5, 1]} => 34444,
        {"$range": [0, null]} => 34445,
        {"$range": [0, 4_294_967_296_i64]} => 34446,
        {"$range": [0, 1, "x"]} => 34447,
        {"$range": [0, 1, 0.5]} => 34448,
        {"$range": [0, 1, 0]} => 34449,
    }
}

#[test]
fn slices() {
    values! {
        {"$slice": ["$list", 2]} => [1, 2],
        {"$slice": ["$list", (-2)]} => [2, 3],
        {"$slice": ["$list", 9]} => [1, 2, 3],
        {"$slice": ["$list", 1, 1]} => [2],
        {"$slice": ["$list", (-2), 1]} => [2],
        {"$slice": ["$list", (-9), 2]} => [1, 2],
        {"$slice": ["$list", 9, 2]} => [],
        {"$slice": ["$list", 0]} => [],
        {"$slice": [null, 1]} => null,
        {"$firstN": {"n": 2, "input": "$list"}} => [1, 2],
        {"$lastN": {"n": 2, "input": "$list"}} => [2, 3],
        {"$lastN": {"n": 9, "input": "$list"}} => [1, 2, 3],
        {"$minN": {"n": 2, "input": [3, null, 1, 2]}} => [1, 2],
        {"$maxN": {"n": 2, "input": [3, null, 1, 2]}} => [3, 2],
    }
    codes! {
        {"$slice": [1, 1]} => 28724,
        {"$slice": ["$list", "x"]} => 28725,
        {"$slice": ["$list", 0.5]} => 28726,
        {"$slice": ["$list", 0, "x"]} => 28727,
        {"$slice": ["$list", 0, 0.5]} => 28728,
        {"$slice": ["$list", 0, 0]} => 28729,
        {"$firstN": 1} => 5_787_900,
        {"$firstN": {"n": 1, "input": [], "x": 1}} => 5_787_901,
        {"$firstN": {"n": "x", "input": []}} => 5_787_902,
        {"$firstN": {"n": 1.5, "input": []}} => 5_787_903,
        {"$firstN": {"input": []}} => 5_787_906,
        {"$firstN": {"n": 1}} => 5_787_907,
        {"$firstN": {"n": 0, "input": []}} => 5_787_908,
        {"$firstN": {"n": 1, "input": null}} => 5_788_200,
    }
}

#[test]
fn functions_of_elements() {
    values! {
        {"$map": {"input": "$list", "in": {"$multiply": ["$$this", 2]}}} => [2, 4, 6],
        {"$map": {"input": "$list", "as": "e", "in": {"$add": ["$$e", "$n"]}}} => [6, 7, 8],
        {"$map": {"input": "$list", "in": "$missing"}} => [null, null, null],
        {"$map": {"input": null, "in": 1}} => null,
        {"$filter": {"input": "$list", "cond": {"$gt": ["$$this", 1]}}} => [2, 3],
        {"$filter": {"input": "$list", "as": "e", "cond": {"$gt": ["$$e", 0]}, "limit": 2}} => [1, 2],
        {"$filter": {"input": "$list", "cond": true, "limit": null}} => [1, 2, 3],
        {"$filter": {"input": "$missing", "cond": true}} => null,
        {"$reduce": {"input": "$list", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}} => 6,
        {"$reduce": {"input": ["a", "b"], "initialValue": "", "in": {"$concat": ["$$value", "$$this"]}}} => "ab",
        {"$reduce": {"input": [], "initialValue": 7, "in": 1}} => 7,
        {"$reduce": {"input": null, "initialValue": 7, "in": 1}} => null,
        {"$map": {"input": [[1, 2], [3]], "as": "row", "in": {"$map": {"input": "$$row", "in": {"$add": ["$$this", {"$size": "$$row"}]}}}}}
            => [[3, 4], [4]],
    }
    codes! {
        {"$map": 1} => 16878,
        {"$map": {"input": [], "in": 1, "x": 1}} => 16879,
        {"$map": {"in": 1}} => 16880,
        {"$map": {"input": []}} => 16882,
        {"$map": {"input": "$n", "in": 1}} => 16883,
        {"$map": {"input": [], "as": "A", "in": 1}} => 9,
        {"$map": {"input": [], "as": null, "in": 1}} => 9,
        {"$filter": 1} => 28646,
        {"$filter": {"input": [], "cond": 1, "x": 1}} => 28647,
        {"$filter": {"cond": 1}} => 28648,
        {"$filter": {"input": []}} => 28650,
        {"$filter": {"input": 1, "cond": 1}} => 28651,
        {"$filter": {"input": [], "cond": 1, "limit": 1.5}} => 327_391,
        {"$filter": {"input": [], "cond": 1, "limit": 0}} => 327_392,
        {"$reduce": 1} => 40075,
        {"$reduce": {"x": 1}} => 40076,
        {"$reduce": {"initialValue": 0, "in": 1}} => 40077,
        {"$reduce": {"input": [], "in": 1}} => 40078,
        {"$reduce": {"input": [], "initialValue": 0}} => 40079,
        {"$reduce": {"input": 1, "initialValue": 0, "in": 1}} => 40080,
    }
}

#[test]
fn sorting() {
    values! {
        {"$sortArray": {"input": [3, 1, 2], "sortBy": 1}} => [1, 2, 3],
        {"$sortArray": {"input": [3, "a", 1], "sortBy": (-1)}} => ["a", 3, 1],
        {"$sortArray": {"input": [{"a": 2}, {"b": 1}, {"a": 1}], "sortBy": {"a": 1}}} => [{"b": 1}, {"a": 1}, {"a": 2}],
        {"$sortArray": {"input": [{"a": {"b": 1}, "c": 1}, {"a": {"b": 1}, "c": 2}, {"a": {"b": 2}}], "sortBy": {"a.b": (-1), "c": (-1)}}}
            => [{"a": {"b": 2}}, {"a": {"b": 1}, "c": 2}, {"a": {"b": 1}, "c": 1}],
        {"$sortArray": {"input": null, "sortBy": 1}} => null,
    }
    codes! {
        {"$sortArray": 1} => 2_942_500,
        {"$sortArray": {"x": 1}} => 2_942_501,
        {"$sortArray": {"sortBy": 1}} => 2_942_502,
        {"$sortArray": {"input": []}} => 2_942_503,
        {"$sortArray": {"input": 1, "sortBy": 1}} => 2_942_504,
        {"$sortArray": {"input": [], "sortBy": 2}} => 2_942_507,
        {"$sortArray": {"input": [], "sortBy": {}}} => 15976,
        {"$sortArray": {"input": [], "sortBy": {"a": 2}}} => 15975,
    }
}

#[test]
fn zipping() {
    values! {
        {"$zip": {"inputs": [[1, 2], ["a", "b", "c"]]}} => [[1, "a"], [2, "b"]],
        {"$zip": {"inputs": [[1, 2], ["a", "b", "c"]], "useLongestLength": true}} => [[1, "a"], [2, "b"], [null, "c"]],
        {"$zip": {"inputs": [[1], ["a", "b"]], "useLongestLength": true, "defaults": [0, "z"]}} => [[1, "a"], [0, "b"]],
        {"$zip": {"inputs": [[1], null]}} => null,
        {"$zip": {"inputs": ["$list"]}} => [[1], [2], [3]],
    }
    codes! {
        {"$zip": 1} => 34460,
        {"$zip": {"inputs": 1}} => 34461,
        {"$zip": {"inputs": [[1]], "useLongestLength": true, "defaults": 1}} => 34462,
        {"$zip": {"inputs": [[1]], "useLongestLength": 1}} => 34463,
        {"$zip": {"x": 1}} => 34464,
        {"$zip": {"inputs": []}} => 34465,
        {"$zip": {"inputs": [[1]], "defaults": [1]}} => 34466,
        {"$zip": {"inputs": [[1]], "useLongestLength": true, "defaults": [1, 2]}} => 34467,
        {"$zip": {"inputs": [1]}} => 34468,
    }
}

#[test]
fn arrays_and_documents() {
    values! {
        {"$objectToArray": "$sub"} => [{"k": "k", "v": "v"}, {"k": "deep", "v": {"z": true}}],
        {"$objectToArray": null} => null,
        {"$arrayToObject": [[["a", 1], ["b", 2]]]} => {"a": 1, "b": 2},
        {"$arrayToObject": [[{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "a", "v": 3}]]} => {"a": 3, "b": 2},
        {"$arrayToObject": [[]]} => {},
        {"$arrayToObject": null} => null,
    }
    codes! {
        {"$objectToArray": 1} => 40390,
        {"$arrayToObject": 1} => 40386,
        {"$arrayToObject": [[1]]} => 40398,
        {"$arrayToObject": [[["a", 1], {"k": "a", "v": 1}]]} => 40396,
        {"$arrayToObject": [[{"k": "a", "v": 1}, ["a", 1]]]} => 40391,
        {"$arrayToObject": [[["a"]]]} => 40397,
        {"$arrayToObject": [[[1, 1]]]} => 40395,
        {"$arrayToObject": [[{"k": "a"}]]} => 40392,
        {"$arrayToObject": [[{"k": "a", "x": 1}]]} => 40393,
        {"$arrayToObject": [[{"k": 1, "v": 1}]]} => 40394,
        {"$arrayToObject": [[["a\0b", 1]]]} => 4_940_400,
    }
}

#[test]
fn sets() {
    values! {
        {"$setUnion": [[2, 1], [1.0, 3]]} => [2, 1, 3],
        {"$setUnion": [[1], null]} => null,
        {"$setIntersection": [[3, 1, 2], [2, 3, 5]]} => [2, 3],
        {"$setIntersection": [[1], [1.0]]} => [1],
        {"$setIntersection": [[1], "$missing"]} => null,
        {"$setDifference": [[3, 1, 3, 2], [1]]} => [3, 2],
        {"$setDifference": [null, [1]]} => null,
        {"$setEquals": [[1, 2, 2], [2, 1]]} => true,
        {"$setEquals": [[1], [2]]} => false,
        {"$setIsSubset": [[1, 1], [2, 1]]} => true,
        {"$setIsSubset": [[[1]], [1]]} => false,
        {"$anyElementTrue": [[0, false, 1]]} => true,
        {"$anyElementTrue": [[]]} => false,
        {"$allElementsTrue": [[1, "x"]]} => true,
        {"$allElementsTrue": [[1, null]]} => false,
    }
    codes! {
        {"$setUnion": [1]} => 17043,
        {"$setIntersection": [1]} => 17047,
        {"$setDifference": [1, []]} => 17048,
        {"$setDifference": [[], 1]} => 17049,
        {"$setEquals": [[]]} => 17045,
        {"$setEquals": [[], null]} => 17044,
        {"$setIsSubset": [null, []]} => 17046,
        {"$setIsSubset": [[], null]} => 17042,
        {"$anyElementTrue": [null]} => 17041,
        {"$allElementsTrue": [1]} => 17040,
    }
}

#[test]
fn a_union_of_nothing_is_empty() {
    check(&rawbson!({"$setUnion": []}), &rawbson!([]));
    check(&rawbson!({"$setIntersection": []}), &rawbson!([]));
}
