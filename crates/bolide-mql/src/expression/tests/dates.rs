use bson::RawBson;
use bson::oid::ObjectId;

use super::{check, codes, date, values};

/// A date by its text in ISO 8601, computed by the crate for time zones.
fn at(text: &str) -> RawBson {
    let instant: jiff::Timestamp = text.parse().unwrap();
    date(instant.as_millisecond())
}

#[test]
fn parts_of_dates() {
    values! {
        {"$year": "$date"} => 2020,
        {"$month": "$date"} => 2,
        {"$dayOfMonth": "$date"} => 29,
        {"$dayOfYear": "$date"} => 60,
        {"$dayOfWeek": "$date"} => 7,
        {"$isoDayOfWeek": "$date"} => 6,
        {"$week": "$date"} => 8,
        {"$isoWeek": "$date"} => 9,
        {"$isoWeekYear": "$date"} => 2020_i64,
        {"$hour": ["$date"]} => 12,
        {"$minute": "$date"} => 34,
        {"$second": "$date"} => 56,
        {"$millisecond": "$date"} => 789,
        {"$hour": {"date": "$date", "timezone": "America/New_York"}} => 7,
        {"$hour": {"date": "$date", "timezone": "US/Eastern"}} => 7,
        {"$year": (ObjectId::from_bytes([0xFF; 12]))} => 1969,
        {"$minute": {"date": "$date", "timezone": "+05:30"}} => 4,
        {"$year": "$id"} => 2020,
        {"$year": "$stamp"} => 2020,
        {"$year": null} => null,
        {"$year": {"date": "$date", "timezone": null}} => null,
        {"$isoWeek": (at("2021-01-03T00:00:00Z"))} => 53,
        {"$isoWeekYear": (at("2021-01-03T00:00:00Z"))} => 2020_i64,
        {"$week": (at("2021-01-02T00:00:00Z"))} => 0,
        {"$week": (at("2021-01-03T00:00:00Z"))} => 1,
        {"$year": (at("1899-12-31T23:59:59Z"))} => 1899,
        {"$tsSecond": "$stamp"} => 1_582_979_696_i64,
        {"$tsIncrement": "$stamp"} => 7_i64,
        {"$tsSecond": null} => null,
    }
    codes! {
        {"$year": "x"} => 16006,
        {"$year": ["$date", "$date"]} => 40536,
        {"$year": {"timezone": "UTC"}} => 40539,
        {"$year": {"date": "$date", "x": 1}} => 40535,
        {"$year": {"date": "$date", "timezone": "Europe/Nowhere"}} => 40485,
        {"$year": {"date": "$date", "timezone": "europe/paris"}} => 40485,
        {"$year": {"date": "$date", "timezone": 1}} => 40517,
        {"$tsSecond": 1} => 5_687_301,
        {"$tsIncrement": "$date"} => 5_687_302,
    }
}

#[test]
fn dates_from_parts_and_back() {
    values! {
        {"$dateFromParts": {"year": 2017, "month": 2, "day": 8, "hour": 12}} => (at("2017-02-08T12:00:00Z")),
        {"$dateFromParts": {"year": 2017}} => (at("2017-01-01T00:00:00Z")),
        {"$dateFromParts": {"year": 2017, "month": 14, "day": 1, "hour": 12}} => (at("2018-02-01T12:00:00Z")),
        {"$dateFromParts": {"year": 2017, "month": 0, "day": 0}} => (at("2016-11-30T00:00:00Z")),
        {"$dateFromParts": {"year": 2017, "second": 90}} => (at("2017-01-01T00:01:30Z")),
        {"$dateFromParts": {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}} => (at("2017-02-08T12:00:00Z")),
        {"$dateFromParts": {"year": 2016, "month": 12, "day": 31, "hour": 23, "timezone": "America/New_York"}} =>
            (at("2017-01-01T04:00:00Z")),
        {"$dateFromParts": {"year": null}} => null,
        {"$dateFromParts": {"year": 2017, "day": "$missing"}} => null,
        {"$dateToParts": {"date": "$date"}} =>
            {"year": 2020, "month": 2, "day": 29, "hour": 12, "minute": 34, "second": 56, "millisecond": 789},
        {"$dateToParts": {"date": "$date", "iso8601": true, "timezone": "+02"}} =>
            {"isoWeekYear": 2020, "isoWeek": 9, "isoDayOfWeek": 6, "hour": 14, "minute": 34, "second": 56, "millisecond": 789},
        {"$dateToParts": {"date": null}} => null,
    }
    codes! {
        {"$dateFromParts": 1} => 40519,
        {"$dateFromParts": {"x": 1}} => 40518,
        {"$dateFromParts": {"month": 1}} => 40516,
        {"$dateFromParts": {"year": 2017, "isoWeek": 1}} => 40489,
        {"$dateFromParts": {"isoWeekYear": 2017, "month": 1}} => 40525,
        {"$dateFromParts": {"year": "x"}} => 40515,
        {"$dateFromParts": {"year": 10000}} => 40523,
        {"$dateFromParts": {"year": 2017, "month": 40000}} => 31034,
        {"$dateFromParts": {"year": 2017, "second": (i64::MAX)}} => 159,
        {"$dateToParts": 1} => 40524,
        {"$dateToParts": {"x": 1}} => 40520,
        {"$dateToParts": {"iso8601": true}} => 40522,
        {"$dateToParts": {"date": "$date", "iso8601": 1}} => 40521,
    }
}

#[test]
fn dates_as_strings() {
    values! {
        {"$dateToString": {"date": "$date"}} => "2020-02-29T12:34:56.789Z",
        {"$dateToString": {"date": "$date", "timezone": "+01"}} => "2020-02-29T13:34:56.789Z",
        {"$dateToString": {"date": "$date", "format": "%Y-%m-%d %H:%M:%S:%L"}} => "2020-02-29 12:34:56:789",
        {"$dateToString": {"date": "$date", "format": "%j %u %w %U %V %G"}} => "060 6 7 08 09 2020",
        {"$dateToString": {"date": "$date", "format": "%z %Z", "timezone": "-03:30"}} => "-0330 -210",
        {"$dateToString": {"date": "$date", "format": "%Z", "timezone": "+01"}} => "60",
        {"$dateToString": {"date": "$date", "format": "%b %B %%"}} => "Feb February %",
        {"$dateToString": {"date": null}} => null,
        {"$dateToString": {"date": "$missing", "onNull": "none"}} => "none",
        {"$dateToString": {"date": "$date", "format": null}} => null,
    }
    codes! {
        {"$dateToString": 1} => 18629,
        {"$dateToString": {"x": 1}} => 18534,
        {"$dateToString": {"format": "x"}} => 18628,
        {"$dateToString": {"date": "$date", "format": 1}} => 18533,
        {"$dateToString": {"date": "$date", "format": "%"}} => 18535,
        {"$dateToString": {"date": "$date", "format": "%n"}} => 18536,
        {"$dateToString": {"date": (date(i64::MAX))}} => 18537,
        {"$dateToString": {"date": "x"}} => 16006,
    }
}

#[test]
fn dates_from_strings_without_format() {
    for (text, expected) in [
        ("2017-02-08T12:10:40.787Z", "2017-02-08T12:10:40.787Z"),
        ("2017-02-08 12:10:40", "2017-02-08T12:10:40Z"),
        ("2017-02-08T12:10", "2017-02-08T12:10:00Z"),
        ("2017-02-08", "2017-02-08T00:00:00Z"),
        ("2017-02", "2017-02-01T00:00:00Z"),
        ("2017-2-8", "2017-02-08T00:00:00Z"),
        ("20170208", "2017-02-08T00:00:00Z"),
        ("20170208T121040", "2017-02-08T12:10:40Z"),
        ("2017/02/08", "2017-02-08T00:00:00Z"),
        ("02/08/2017", "2017-02-08T00:00:00Z"),
        ("08.02.2017", "2017-02-08T00:00:00Z"),
        ("08-02-2017", "2017-02-08T00:00:00Z"),
        ("8 February 2017", "2017-02-08T00:00:00Z"),
        ("Feb 8, 2017 3:05 pm", "2017-02-08T15:05:00Z"),
        ("July 4th, 2017", "2017-07-04T00:00:00Z"),
        ("Tue, 4 Jul 2017 11:56:02 GMT", "2017-07-04T11:56:02Z"),
        ("2017-02-08T12:10:40+02:00", "2017-02-08T10:10:40Z"),
        ("2017-02-08T12:10:40 -0330", "2017-02-08T15:40:40Z"),
        ("2017-07-08T12:00:00 Europe/Berlin", "2017-07-08T10:00:00Z"),
        ("2017-Jul-04 noon", "2017-07-04T12:00:00Z"),
        ("July 4th, 2017 12:39:30 BST", "2017-07-04T11:39:30Z"),
        ("2017-02-08T12:10:40 GMT-03:00", "2017-02-08T15:10:40Z"),
        ("2017W06", "2017-02-06T00:00:00Z"),
        ("2017-W06-3", "2017-02-08T00:00:00Z"),
        ("2017-039", "2017-02-08T00:00:00Z"),
        ("2017-02-08T12:10:40.7", "2017-02-08T12:10:40.700Z"),
        ("2017-02-08T12:10:40.123456789Z", "2017-02-08T12:10:40.123Z"),
    ] {
        let expression = bson::rawbson!({"$dateFromString": {"dateString": text}});
        check(&expression, &at(expected));
    }
    codes! {
        {"$dateFromString": {"dateString": "tomorrow"}} => 241,
        {"$dateFromString": {"dateString": ""}} => 241,
        {"$dateFromString": {"dateString": "12:35"}} => 241,
        {"$dateFromString": {"dateString": "2017-02-30"}} => 241,
        {"$dateFromString": {"dateString": "2017-13-01"}} => 241,
        {"$dateFromString": {"dateString": "2017-02-08T25:00"}} => 241,
        {"$dateFromString": {"dateString": "2017-02-08 blah"}} => 241,
        {"$dateFromString": {"dateString": "2017-02-08T12:00Z", "timezone": "+01"}} => 241,
        {"$dateFromString": {"dateString": 5}} => 241,
    }
}

#[test]
fn dates_from_strings_with_options() {
    values! {
        {"$dateFromString": {"dateString": "2017-02-08T12:00:00", "timezone": "America/New_York"}} => (at("2017-02-08T17:00:00Z")),
        {"$dateFromString": {"dateString": "06-15-2018", "format": "%m-%d-%Y"}} => (at("2018-06-15T00:00:00Z")),
        {"$dateFromString": {"dateString": "15 Jun 2018 10:05:06.07", "format": "%d %b %Y %H:%M:%S.%L"}} =>
            (at("2018-06-15T10:05:06.070Z")),
        {"$dateFromString": {"dateString": "2017, day 039", "format": "%Y, day %j"}} => (at("2017-02-08T00:00:00Z")),
        {"$dateFromString": {"dateString": "2017 06 3", "format": "%G %V %u"}} => (at("2017-02-08T00:00:00Z")),
        {"$dateFromString": {"dateString": "2017-02-08 +0100", "format": "%Y-%m-%d %z"}} => (at("2017-02-07T23:00:00Z")),
        {"$dateFromString": {"dateString": "2017-02-08 -60", "format": "%Y-%m-%d %Z"}} => (at("2017-02-08T01:00:00Z")),
        {"$dateFromString": {"dateString": null}} => null,
        {"$dateFromString": {"dateString": null, "onNull": 1}} => 1,
        {"$dateFromString": {"dateString": "x", "onError": 2}} => 2,
        {"$dateFromString": {"dateString": 5, "onError": 2}} => 2,
        {"$dateFromString": {"dateString": "2017-02-08", "timezone": null}} => null,
        {"$dateFromString": {"dateString": "2017-02-08", "format": null}} => null,
    }
    codes! {
        {"$dateFromString": 1} => 40540,
        {"$dateFromString": {"x": 1}} => 40541,
        {"$dateFromString": {"format": "x"}} => 40542,
        {"$dateFromString": {"dateString": "x", "format": 1}} => 40684,
        {"$dateFromString": {"dateString": "x", "format": "%U"}} => 18536,
        {"$dateFromString": {"dateString": "2018", "format": "%Y"}} => 241,
        {"$dateFromString": {"dateString": "2018-06-15x", "format": "%Y-%m-%d"}} => 241,
        {"$dateFromString": {"dateString": "2018/06/15", "format": "%Y-%m-%d"}} => 241,
    }
}

#[test]
fn adding_to_dates() {
    values! {
        {"$dateAdd": {"startDate": (at("2020-01-31T00:00:00Z")), "unit": "month", "amount": 1}} => (at("2020-02-29T00:00:00Z")),
        {"$dateAdd": {"startDate": (at("2020-11-30T12:10:05Z")), "unit": "quarter", "amount": 1}} => (at("2021-02-28T12:10:05Z")),
        {"$dateAdd": {"startDate": "$date", "unit": "year", "amount": 1}} => (at("2021-02-28T12:34:56.789Z")),
        {"$dateAdd": {"startDate": "$date", "unit": "week", "amount": (-1)}} => (at("2020-02-22T12:34:56.789Z")),
        {"$dateSubtract": {"startDate": "$date", "unit": "hour", "amount": 25}} => (at("2020-02-28T11:34:56.789Z")),
        {"$dateSubtract": {"startDate": "$date", "unit": "millisecond", "amount": 789_i64}} => (at("2020-02-29T12:34:56Z")),
        // The clocks go forward on 2021-03-14 at 2 o'clock.
        {"$dateAdd": {"startDate": (at("2021-03-13T17:00:00Z")), "unit": "day", "amount": 1, "timezone": "America/New_York"}} =>
            (at("2021-03-14T16:00:00Z")),
        {"$dateAdd": {"startDate": (at("2021-03-13T17:00:00Z")), "unit": "hour", "amount": 24, "timezone": "America/New_York"}} =>
            (at("2021-03-14T17:00:00Z")),
        {"$dateAdd": {"startDate": null, "unit": "day", "amount": 1}} => null,
        {"$dateAdd": {"startDate": "$date", "unit": "$missing", "amount": 1}} => null,
    }
    codes! {
        {"$dateAdd": 1} => 5_166_400,
        {"$dateAdd": {"x": 1}} => 5_166_401,
        {"$dateAdd": {"startDate": "$date", "unit": "day"}} => 5_166_402,
        {"$dateAdd": {"startDate": "x", "unit": "day", "amount": 1}} => 5_166_403,
        {"$dateAdd": {"startDate": "$date", "unit": 1, "amount": 1}} => 5_166_404,
        {"$dateAdd": {"startDate": "$date", "unit": "day", "amount": 1.5}} => 5_166_405,
        {"$dateAdd": {"startDate": "$date", "unit": "day", "amount": (i64::MAX)}} => 5_166_406,
        {"$dateAdd": {"startDate": "$date", "unit": "year", "amount": (i64::MAX)}} => 5_166_406,
        {"$dateSubtract": {"startDate": "$date", "unit": "millisecond", "amount": (i64::MIN)}} => 5_166_406,
        {"$dateAdd": {"startDate": "$date", "unit": "century", "amount": 1}} => 9,
    }
}

#[test]
fn differences_count_boundaries() {
    values! {
        {"$dateDiff": {"startDate": (at("2020-12-31T23:59:59Z")), "endDate": (at("2021-01-01T00:00:00Z")), "unit": "year"}} => 1_i64,
        {"$dateDiff": {"startDate": (at("2020-12-31T23:59:59Z")), "endDate": (at("2021-01-01T00:00:00Z")), "unit": "quarter"}} => 1_i64,
        {"$dateDiff": {"startDate": (at("2021-01-01T00:00:00Z")), "endDate": (at("2020-11-30T00:00:00Z")), "unit": "month"}} => (-2_i64),
        {"$dateDiff": {"startDate": (at("2021-01-02T00:00:00Z")), "endDate": (at("2021-01-03T00:00:00Z")), "unit": "week"}} => 1_i64,
        {"$dateDiff": {"startDate": (at("2021-01-02T00:00:00Z")), "endDate": (at("2021-01-03T00:00:00Z")), "unit": "week", "startOfWeek": "Mon"}}
            => 0_i64,
        {"$dateDiff": {"startDate": (at("2021-01-02T23:00:00Z")), "endDate": (at("2021-01-03T01:00:00Z")), "unit": "day"}} => 1_i64,
        {"$dateDiff": {"startDate": (at("2021-01-02T23:00:00Z")), "endDate": (at("2021-01-03T01:00:00Z")), "unit": "day", "timezone": "+02"}}
            => 0_i64,
        {"$dateDiff": {"startDate": (at("2021-01-02T00:30:00Z")), "endDate": (at("2021-01-02T02:10:00Z")), "unit": "hour"}} => 2_i64,
        {"$dateDiff": {"startDate": (at("2021-01-02T00:30:00Z")), "endDate": (at("2021-01-02T01:10:00Z")), "unit": "hour", "timezone": "+05:30"}}
            => 0_i64,
        {"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": "millisecond"}} => 0_i64,
        {"$dateDiff": {"startDate": null, "endDate": "$date", "unit": "day"}} => null,
    }
    codes! {
        {"$dateDiff": 1} => 5_166_301,
        {"$dateDiff": {"x": 1}} => 5_166_302,
        {"$dateDiff": {"endDate": 1, "unit": 1}} => 5_166_303,
        {"$dateDiff": {"startDate": 1, "unit": 1}} => 5_166_304,
        {"$dateDiff": {"startDate": 1, "endDate": 1}} => 5_166_305,
        {"$dateDiff": {"startDate": 1, "endDate": "$date", "unit": "day"}} => 5_166_307,
        {"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": 1}} => 5_439_013,
        {"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": "x"}} => 5_439_014,
        {"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": "week", "startOfWeek": 1}} => 5_439_015,
        {"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": "week", "startOfWeek": "x"}} => 5_439_016,
    }
}

#[test]
fn truncating_to_bins() {
    values! {
        {"$dateTrunc": {"date": "$date", "unit": "hour"}} => (at("2020-02-29T12:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "day"}} => (at("2020-02-29T00:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "month"}} => (at("2020-02-01T00:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "quarter"}} => (at("2020-01-01T00:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "year", "binSize": 3}} => (at("2018-01-01T00:00:00Z")),
        {"$dateTrunc": {"date": (at("1999-05-01T00:00:00Z")), "unit": "year", "binSize": 3}} => (at("1997-01-01T00:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "week"}} => (at("2020-02-23T00:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "week", "startOfWeek": "monday"}} => (at("2020-02-24T00:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "minute", "binSize": 15}} => (at("2020-02-29T12:30:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "day", "timezone": "America/New_York"}} => (at("2020-02-29T05:00:00Z")),
        {"$dateTrunc": {"date": "$date", "unit": "hour", "timezone": "+05:30"}} => (at("2020-02-29T12:30:00Z")),
        {"$dateTrunc": {"date": null, "unit": "day"}} => null,
        {"$dateTrunc": {"date": "$date", "unit": "day", "binSize": null}} => null,
    }
    codes! {
        {"$dateTrunc": 1} => 5_439_007,
        {"$dateTrunc": {"x": 1}} => 5_439_008,
        {"$dateTrunc": {"unit": "day"}} => 5_439_009,
        {"$dateTrunc": {"date": "$date"}} => 5_439_010,
        {"$dateTrunc": {"date": "x", "unit": "day"}} => 5_439_012,
        {"$dateTrunc": {"date": "$date", "unit": 1}} => 5_439_013,
        {"$dateTrunc": {"date": "$date", "unit": "x"}} => 5_439_014,
        {"$dateTrunc": {"date": "$date", "unit": "day", "binSize": "x"}} => 5_439_017,
        {"$dateTrunc": {"date": "$date", "unit": "day", "binSize": 0}} => 5_439_018,
    }
}

#[test]
fn clocks_that_skip_or_repeat_an_hour() {
    values! {
        // 02:30 does not exist on this day in New York.
        {"$dateFromParts": {"year": 2021, "month": 3, "day": 14, "hour": 2, "minute": 30, "timezone": "America/New_York"}} =>
            (at("2021-03-14T07:30:00Z")),
        // 01:30 exists twice.
        {"$dateFromParts": {"year": 2021, "month": 11, "day": 7, "hour": 1, "minute": 30, "timezone": "America/New_York"}} =>
            (at("2021-11-07T05:30:00Z")),
    }
}
