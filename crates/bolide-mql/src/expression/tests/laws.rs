use bson::{RawArrayBuf, RawBson, rawbson};
use proptest::prelude::*;

use super::evaluate;

fn value(expression: RawBson) -> RawBson {
    evaluate(expression.as_raw_bson_ref()).unwrap().unwrap()
}

fn array(values: &[i32]) -> RawBson {
    RawBson::Array(values.iter().copied().collect::<RawArrayBuf>())
}

proptest! {
    #[test]
    fn reversing_twice_changes_nothing(values in prop::collection::vec(any::<i32>(), 0..20)) {
        let list = rawbson!({"$literal": (array(&values))});
        prop_assert_eq!(value(rawbson!({"$reverseArray": {"$reverseArray": list}})), array(&values));
    }

    #[test]
    fn joined_parts_of_a_string_are_the_string(text in "[a-c,é]{0,12}", separator in "[,a]{1,2}") {
        let parts = rawbson!({"$split": [{"$literal": (text.clone())}, {"$literal": (separator.clone())}]});
        let joined = rawbson!({"$reduce": {
            "input": parts,
            "initialValue": null,
            "in": {"$cond": [
                {"$eq": ["$$value", null]},
                "$$this",
                {"$concat": ["$$value", {"$literal": separator}, "$$this"]},
            ]},
        }});
        prop_assert_eq!(value(joined), RawBson::String(text));
    }

    #[test]
    fn a_document_survives_its_array_form(values in prop::collection::vec(any::<i32>(), 0..10)) {
        let pairs: RawArrayBuf = values.iter().enumerate().map(|(index, value)| rawbson!([(format!("k{index}")), (*value)])).collect();
        let made = value(rawbson!({"$arrayToObject": {"$literal": pairs}}));
        let again = rawbson!({"$arrayToObject": {"$objectToArray": {"$literal": (made.clone())}}});
        prop_assert_eq!(value(again), made);
    }

    #[test]
    fn remainder_and_quotient_make_the_dividend(a in any::<i32>(), b in any::<i32>().prop_filter("a divisor", |b| *b != 0)) {
        let quotient = rawbson!({"$toLong": {"$trunc": {"$divide": [a, b]}}});
        let sum = rawbson!({"$add": [{"$multiply": [quotient, b]}, {"$mod": [a, b]}]});
        prop_assert_eq!(value(sum), RawBson::Int64(a.into()));
    }

    #[test]
    fn parts_of_a_date_make_the_date(millis in -62_135_596_800_000_i64..253_402_300_799_999) {
        let date = super::date(millis);
        let made = rawbson!({"$let": {
            "vars": {"p": {"$dateToParts": {"date": date.clone(), "timezone": "+0330"}}},
            "in": {"$dateFromParts": {
                "year": "$$p.year", "month": "$$p.month", "day": "$$p.day", "hour": "$$p.hour",
                "minute": "$$p.minute", "second": "$$p.second", "millisecond": "$$p.millisecond", "timezone": "+0330",
            }},
        }});
        // Years from 1 to 9999 in the zone.
        prop_assume!(millis > -62_135_596_800_000 + 86_400_000 && millis < 253_402_300_799_999 - 86_400_000);
        prop_assert_eq!(value(made), date.clone());
        let text = rawbson!({"$dateFromString": {"dateString": {"$dateToString": {"date": date.clone()}}}});
        prop_assert_eq!(value(text), date);
    }

    #[test]
    fn any_values_as_named_arguments_are_a_value_or_an_error(choice in prop::collection::vec(0..16_usize, 14)) {
        let value = |index: usize| match choice[index] {
            0 => rawbson!(null),
            1 => rawbson!(-1),
            2 => rawbson!(i64::MAX),
            3 => rawbson!(i64::MIN),
            4 => rawbson!(-1e300),
            5 => rawbson!("-é1"),
            6 => rawbson!([1, [2], {"k": "a", "v": null}, "x"]),
            7 => rawbson!(super::date(i64::MIN)),
            8 => rawbson!(super::date(i64::MAX)),
            9 => rawbson!("$missing"),
            10 => rawbson!("$date"),
            11 => rawbson!("Asia/Kolkata"),
            12 => rawbson!("month"),
            13 => rawbson!(super::decimal("9E+6144")),
            14 => rawbson!("2017-02-30T25:61:61.999999+9999"),
            _ => rawbson!("$list"),
        };
        for expression in [
            rawbson!({"$dateAdd": {"startDate": (value(0)), "unit": (value(1)), "amount": (value(2)), "timezone": (value(3))}}),
            rawbson!({"$dateDiff": {"startDate": (value(0)), "endDate": (value(1)), "unit": (value(2)), "timezone": (value(3))}}),
            rawbson!({"$dateTrunc": {"date": (value(0)), "unit": (value(1)), "binSize": (value(2)), "timezone": (value(3))}}),
            rawbson!({"$dateToString": {"date": (value(0)), "format": "%Y%G%j%V%U%z%Z%B", "timezone": (value(3))}}),
            rawbson!({"$dateFromString": {"dateString": (value(0)), "timezone": (value(3)), "onError": 1}}),
            rawbson!({"$dateFromParts": {"year": 9999, "day": (value(0)), "hour": (value(1)), "second": (value(2)), "millisecond": (value(3))}}),
            rawbson!({"$dateToParts": {"date": (value(0)), "timezone": (value(3)), "iso8601": true}}),
            rawbson!({"$convert": {"input": (value(0)), "to": (value(1)), "onError": (value(2)), "onNull": (value(3))}}),
            rawbson!({"$slice": [(value(4)), (value(5)), (value(6))]}),
            rawbson!({"$range": [(value(4)), 10, (value(6))]}),
            rawbson!({"$round": [(value(7)), (value(8))]}),
            rawbson!({"$pow": [(value(7)), (value(8))]}),
            rawbson!({"$mod": [(value(7)), (value(8))]}),
            rawbson!({"$sin": (value(7))}),
            rawbson!({"$acosh": (value(7))}),
            rawbson!({"$atan2": [(value(7)), (value(8))]}),
            rawbson!({"$substrBytes": [(value(9)), (value(10)), (value(11))]}),
            rawbson!({"$indexOfBytes": [(value(9)), (value(10)), (value(11)), (value(12))]}),
            rawbson!({"$regexFindAll": {"input": (value(9)), "regex": (value(10))}}),
            rawbson!({"$zip": {"inputs": [(value(11)), (value(12))], "useLongestLength": true, "defaults": [(value(13)), 1]}}),
            rawbson!({"$sortArray": {"input": (value(11)), "sortBy": {"k": 1, "v": -1}}}),
            rawbson!({"$percentile": {"input": (value(11)), "p": [(value(12))], "method": "approximate"}}),
        ] {
            // Neither a panic nor an overflow; which of both comes back is checked elsewhere.
            let _ = evaluate(expression.as_raw_bson_ref());
        }
    }

    #[test]
    fn any_value_as_argument_of_any_operator_is_a_value_or_an_error(index in 0..1000_usize, choice in prop::collection::vec(0..12_usize, 0..4)) {
        let values = [
            rawbson!(null), rawbson!(1), rawbson!(-1), rawbson!(i64::MAX), rawbson!(f64::NAN), rawbson!(-1e300), rawbson!("x"), rawbson!(""),
            rawbson!([1, "a"]), rawbson!({"input": "x", "n": 1}), rawbson!(super::date(i64::MIN)), rawbson!("$missing"),
        ];
        let names = crate::expression::operators::names();
        let arguments: RawArrayBuf = choice.iter().filter_map(|index| values.get(*index)).cloned().collect();
        let mut operation = bson::RawDocumentBuf::new();
        let name: &bson::raw::CStr = names[index % names.len()].try_into().unwrap();
        operation.append(name, arguments);
        // Neither a panic nor an overflow; which of both comes back is checked elsewhere.
        let _ = evaluate(RawBson::Document(operation).as_raw_bson_ref());
    }
}
