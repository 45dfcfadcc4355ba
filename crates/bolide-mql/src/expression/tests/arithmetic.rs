use bson::RawBson;

use super::{codes, date, decimal, values};

#[test]
fn sums_have_the_widest_type() {
    values! {
        {"$add": [1, 2]} => 3,
        {"$add": []} => 0,
        {"$add": "$n"} => 5,
        {"$add": [1, 2_i64]} => 3_i64,
        {"$add": [1, 2.5]} => 3.5,
        {"$add": [2_147_483_647, 1]} => 2_147_483_648_i64,
        {"$add": [9_223_372_036_854_775_807_i64, 1]} => 9_223_372_036_854_775_808.0,
        {"$add": [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]} => 1.0,
        {"$add": [(decimal("1.5")), 1]} => (decimal("2.5")),
        {"$add": ["$missing", 1]} => null,
        {"$add": [1, null]} => null,
        {"$add": ["$date", 1000]} => (date(1_582_979_697_789)),
        {"$add": ["$date", (decimal("0.6"))]} => (date(1_582_979_696_790)),
        {"$add": [1.5, "$date"]} => (date(1_582_979_696_791)),
        {"$add": [(f64::INFINITY), 1]} => (f64::INFINITY),
    }
    codes! {
        {"$add": [1, "x"]} => 14,
        {"$add": ["$date", "$date"]} => 16612,
        {"$add": ["$date", 9_223_372_036_854_775_807_i64]} => 15,
        {"$add": ["$date", (f64::NAN)]} => 15,
    }
}

#[test]
fn differences_of_numbers_and_dates() {
    values! {
        {"$subtract": [5, 3]} => 2,
        {"$subtract": [(-2_147_483_648), 1]} => (-2_147_483_649_i64),
        {"$subtract": [5, 0.5]} => 4.5,
        {"$subtract": ["$date", "$date"]} => 0_i64,
        {"$subtract": ["$date", 789]} => (date(1_582_979_696_000)),
        {"$subtract": ["$date", 0.9]} => (date(1_582_979_696_789)),
        {"$subtract": ["$date", null]} => null,
        {"$subtract": ["$missing", "x"]} => null,
    }
    codes! {
        {"$subtract": [1, "$date"]} => 14,
        {"$subtract": ["x", 1]} => 14,
        {"$subtract": [1]} => 16020,
        {"$subtract": [1, 2, 3]} => 16020,
    }
}

#[test]
fn products_quotients_and_remainders() {
    values! {
        {"$multiply": [2, 3]} => 6,
        {"$multiply": []} => 1,
        {"$multiply": [2, 3.0]} => 6.0,
        {"$multiply": [65536, 65536]} => 4_294_967_296_i64,
        {"$multiply": [9_223_372_036_854_775_807_i64, 2]} => 1.844_674_407_370_955_2e19,
        {"$multiply": [2, null]} => null,
        {"$divide": [6, 3]} => 2.0,
        {"$divide": [1, 8]} => 0.125,
        {"$divide": [(decimal("1")), 4]} => (decimal("0.25")),
        {"$divide": [null, 0]} => null,
        {"$mod": [7, 3]} => 1,
        {"$mod": [(-7), 3]} => (-1),
        {"$mod": [7.5, 2]} => 1.5,
        {"$mod": [7_i64, 4]} => 3_i64,
        {"$mod": [7, 4.0]} => 3,
        {"$mod": [7_i64, 4.0]} => 3_i64,
        {"$mod": [7.0, 4]} => 3.0,
        {"$mod": [500_000_000_000_i64, 450_000_000_000.0]} => 50_000_000_000.0,
        {"$mod": ["$missing", 4]} => null,
    }
    codes! {
        {"$multiply": ["x", 1]} => 14,
        {"$divide": [1, 0]} => 2,
        {"$divide": [1.0, 0.0]} => 2,
        {"$divide": [1, "x"]} => 14,
        {"$mod": [1, 0]} => 16610,
        {"$mod": [1, "x"]} => 16611,
    }
}

#[test]
fn functions_of_one_number() {
    values! {
        {"$abs": (-3)} => 3,
        {"$abs": [(-2_147_483_648)]} => 2_147_483_648_i64,
        {"$abs": (-2.5)} => 2.5,
        {"$abs": (decimal("-2.50"))} => (decimal("2.50")),
        {"$abs": null} => null,
        {"$ceil": 2.1} => 3.0,
        {"$ceil": 7} => 7,
        {"$ceil": (decimal("2.1"))} => (decimal("3")),
        {"$floor": (-2.1)} => (-3.0),
        {"$floor": "$missing"} => null,
        {"$exp": 0} => 1.0,
        {"$exp": (decimal("0"))} => (decimal("1")),
        {"$ln": 1} => 0.0,
        {"$log10": 1000} => 3.0,
        {"$log10": (decimal("1000"))} => (decimal("3")),
        {"$sqrt": 9} => 3.0,
        {"$sqrt": (decimal("2"))} => (decimal("1.414213562373095048801688724209698")),
        {"$log": [8, 2]} => 3.0,
        {"$sigmoid": 0} => 0.5,
    }
    codes! {
        {"$abs": "x"} => 28765,
        {"$abs": (i64::MIN)} => 28680,
        {"$ceil": true} => 28765,
        {"$ln": 0} => 28766,
        {"$log10": (-1)} => 28761,
        {"$sqrt": (-1)} => 28714,
        {"$log": [0, 2]} => 28758,
        {"$log": [8, 1]} => 28759,
        {"$log": ["x", 2]} => 28756,
        {"$log": [2, "x"]} => 28757,
    }
}

#[test]
fn powers() {
    values! {
        {"$pow": [2, 10]} => 1024,
        {"$pow": [2, 40]} => 1_099_511_627_776_i64,
        {"$pow": [2_i64, 3]} => 8_i64,
        {"$pow": [2, 64]} => 18_446_744_073_709_551_616.0,
        {"$pow": [2, (-1)]} => 0.5,
        {"$pow": [(-1), (-3)]} => (-1),
        {"$pow": [0, 0]} => 1,
        {"$pow": [4, 0.5]} => 2.0,
        {"$pow": [(decimal("2")), 3]} => (decimal("8")),
        {"$pow": [1, (decimal("NaN"))]} => (decimal("1")),
        {"$pow": [null, "x"]} => null,
    }
    codes! {
        {"$pow": [0, (-1)]} => 28764,
        {"$pow": ["x", 1]} => 28762,
        {"$pow": [1, "x"]} => 28763,
    }
}

#[test]
fn rounding_to_places() {
    values! {
        {"$round": 2.5} => 2.0,
        {"$round": 3.5} => 4.0,
        {"$round": [2.25, 1]} => 2.2,
        {"$round": [19.25, (-1)]} => 20.0,
        {"$round": [15, (-1)]} => 20,
        {"$round": [25, (-1)]} => 20,
        {"$round": [25_i64, (-1)]} => 20_i64,
        {"$round": [7, 2]} => 7,
        {"$round": [(decimal("2.345")), 2]} => (decimal("2.34")),
        {"$round": [null, 2]} => null,
        {"$round": [1.5, null]} => null,
        {"$trunc": 2.9} => 2.0,
        {"$trunc": (-2.9)} => (-2.0),
        {"$trunc": [2.29, 1]} => 2.2,
        {"$trunc": [29, (-1)]} => 20,
        {"$trunc": (f64::INFINITY)} => (f64::INFINITY),
    }
    codes! {
        {"$round": "x"} => 51081,
        {"$round": [1.5, 0.5]} => 51082,
        {"$round": [1.5, 101]} => 51083,
        {"$round": [1.5, (-21)]} => 51083,
        {"$round": [(i64::MAX), (-1)]} => 51080,
        {"$round": [1, 2, 3]} => 28667,
    }
}

#[test]
fn trigonometry() {
    values! {
        {"$sin": 0} => 0.0,
        {"$cos": 0.0} => 1.0,
        {"$atan2": [0, 1]} => 0.0,
        {"$acosh": 1} => 0.0,
        {"$acosh": 100} => 5.298_292_365_610_485,
        {"$atanh": (-0.999_999_999_9)} => (-11.859_499_013_855_018),
        {"$atanh": 1} => (f64::INFINITY),
        {"$degreesToRadians": 180} => (std::f64::consts::PI),
        {"$radiansToDegrees": (std::f64::consts::PI)} => 180.0,
        {"$degreesToRadians": (decimal("180"))} => (decimal("3.141592653589793238462643383279503")),
        {"$tan": null} => null,
        {"$sin": (decimal("0"))} => (decimal("0")),
        {"$sin": (decimal("1"))} => (decimal("0.8414709848078965066525023216302990")),
        {"$sin": (decimal("-100"))} => (decimal("0.5063656411097587936565576104597854")),
        {"$cos": (decimal("1"))} => (decimal("0.5403023058681397174009366074429766")),
        {"$tan": (decimal("1"))} => (decimal("1.557407724654902230506974807458360")),
        {"$asin": (decimal("1"))} => (decimal("1.570796326794896619231321691639751")),
        {"$acos": (decimal("-1"))} => (decimal("3.141592653589793238462643383279503")),
        {"$atan": (decimal("1"))} => (decimal("0.7853981633974483096156608458198757")),
        {"$atan2": [(decimal("1")), (decimal("-1"))]} => (decimal("2.356194490192344928846982537459627")),
        {"$sinh": (decimal("1"))} => (decimal("1.175201193643801456882381850595601")),
        {"$cosh": (decimal("1"))} => (decimal("1.543080634815243778477905620757062")),
        {"$tanh": (decimal("1"))} => (decimal("0.7615941559557648881194582826047936")),
        {"$asinh": (decimal("1"))} => (decimal("0.8813735870195430252326093249797923")),
        {"$acosh": (decimal("2"))} => (decimal("1.316957896924816708625046347307968")),
        {"$atanh": (decimal("0.5"))} => (decimal("0.5493061443340548456976226184612629")),
    }
    codes! {
        {"$acos": 2} => 50989,
        {"$sin": (f64::INFINITY)} => 50989,
        {"$acosh": 0} => 50989,
        {"$sin": "x"} => 28765,
        {"$atan2": ["x", 1]} => 51044,
        {"$atan2": [1, "x"]} => 51045,
    }
}

#[test]
fn bits_of_whole_numbers() {
    values! {
        {"$bitAnd": [12, 10]} => 8,
        {"$bitOr": [12, 10_i64]} => 14_i64,
        {"$bitXor": [12, 10]} => 6,
        {"$bitNot": 0} => (-1),
        {"$bitAnd": []} => (-1),
        {"$bitOr": [1, null]} => null,
    }
    codes! {
        {"$bitAnd": [1, 1.0]} => 14,
        {"$bitNot": "x"} => 14,
    }
}

#[test]
fn comparisons_cross_types_and_missing_is_below_null() {
    values! {
        {"$cmp": [1, 2]} => (-1),
        {"$eq": [1, 1.0]} => true,
        {"$eq": [1, (decimal("1.0"))]} => true,
        {"$eq": ["$missing", null]} => false,
        {"$lt": ["$missing", null]} => true,
        {"$gt": ["x", 1000]} => true,
        {"$gt": ["$missing", (RawBson::MinKey)]} => true,
        {"$gte": [null, null]} => true,
        {"$lt": [(f64::NAN), (-1)]} => true,
        {"$ne": [[1, 2], [1, 2]]} => false,
        {"$lte": [[1, 2], [1, 3]]} => true,
    }
    codes! {
        {"$eq": [1]} => 16020,
        {"$eq": 1} => 16020,
    }
}

#[test]
fn boolean_operators() {
    values! {
        {"$and": []} => true,
        {"$or": []} => false,
        {"$and": [1, "x", {}]} => true,
        {"$and": [true, 0]} => false,
        {"$and": [false, {"$divide": [1, "$missing.x"]}]} => false,
        {"$and": [0, {"$divide": [1, {"$subtract": ["$n", 5]}]}]} => false,
        {"$or": [null, "$missing", false]} => false,
        {"$or": [1, {"$divide": [1, {"$subtract": ["$n", 5]}]}]} => true,
        {"$not": [0]} => true,
        {"$not": "$missing"} => true,
        {"$not": [[false]]} => false,
        {"$and": "$n"} => true,
    }
    codes! {
        {"$not": [1, 2]} => 16020,
    }
}

#[test]
fn conditions() {
    values! {
        {"$cond": [true, 1, 2]} => 1,
        {"$cond": {"if": "$missing", "then": 1, "else": 2}} => 2,
        {"$ifNull": ["$missing", "$nothing", 7]} => 7,
        {"$ifNull": ["$n", 7]} => 5,
        {"$ifNull": ["$missing", null]} => null,
        {"$switch": {"branches": [{"case": false, "then": 1}, {"case": 1, "then": 2}], "default": 3}} => 2,
        {"$switch": {"branches": [{"case": false, "then": 1}], "default": 3}} => 3,
    }
    codes! {
        {"$cond": [false, {"$divide": [1, 0]}, 1]} => 2,
        {"$cond": [1, 2]} => 16020,
        {"$cond": {"then": 1, "else": 2}} => 17080,
        {"$cond": {"if": 1, "else": 2}} => 17081,
        {"$cond": {"if": 1, "then": 2}} => 17082,
        {"$cond": {"if": 1, "then": 2, "else": 3, "x": 4}} => 17083,
        {"$ifNull": [1]} => 1_257_300,
        {"$switch": 1} => 40060,
        {"$switch": {"branches": 1}} => 40061,
        {"$switch": {"branches": [1]}} => 40062,
        {"$switch": {"branches": [{"x": 1}]}} => 40063,
        {"$switch": {"branches": [{"then": 1}]}} => 40064,
        {"$switch": {"branches": [{"case": 1}]}} => 40065,
        {"$switch": {"branches": [{"case": 0, "then": 1}]}} => 40066,
        {"$switch": {"x": 1}} => 40067,
        {"$switch": {"branches": []}} => 40068,
    }
}
