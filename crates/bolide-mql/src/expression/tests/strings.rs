use bson::{RawBson, Regex};

use super::{codes, missing, values};

fn regex(pattern: &str, options: &str) -> RawBson {
    RawBson::RegularExpression(Regex {
        pattern: pattern.try_into().unwrap(),
        options: options.try_into().unwrap(),
    })
}

#[test]
fn joining_and_cases() {
    values! {
        {"$concat": ["a", "$text", "c"]} => "aabcc",
        {"$concat": []} => "",
        {"$concat": ["a", null]} => null,
        {"$concat": ["a", "$missing"]} => null,
        {"$toUpper": "aBcé"} => "ABCé",
        {"$toLower": ["ABC"]} => "abc",
        {"$toLower": null} => "",
        {"$toUpper": 12} => "12",
        {"$toUpper": "$date"} => "2020-02-29T12:34:56.789Z",
        {"$toUpper": "$stamp"} => "FEB 29 12:34:56:7",
        {"$strcasecmp": ["abc", "ABC"]} => 0,
        {"$strcasecmp": ["a", "B"]} => (-1),
        {"$strcasecmp": [null, "a"]} => (-1),
        {"$strLenBytes": "é"} => 2,
        {"$strLenCP": "é"} => 1,
        {"$split": ["a-b-c", "-"]} => ["a", "b", "c"],
        {"$split": ["abc", "x"]} => ["abc"],
        {"$split": ["-a-", "-"]} => ["", "a", ""],
        {"$split": [null, "-"]} => null,
    }
    codes! {
        {"$concat": ["a", 1]} => 16702,
        {"$toUpper": [[1, 2]]} => 16007,
        {"$toUpper": {"$literal": true}} => 16007,
        {"$strLenBytes": null} => 34473,
        {"$strLenCP": "$missing"} => 34471,
        {"$split": [1, "-"]} => 40085,
        {"$split": ["a", 1]} => 40086,
        {"$split": ["a", ""]} => 40087,
    }
}

#[test]
fn parts_of_strings() {
    values! {
        {"$substr": ["hello", 1, 3]} => "ell",
        {"$substrBytes": ["hello", 1, (-1)]} => "ello",
        {"$substrBytes": ["hello", 9, 1]} => "",
        {"$substrBytes": [null, 0, 1]} => "",
        {"$substrBytes": ["héllo", 0, 3]} => "hé",
        {"$substrBytes": [12345, 1, 2]} => "23",
        {"$substrCP": ["héllo", 1, 2]} => "él",
        {"$substrCP": ["abc", 5, 2]} => "",
        {"$substrCP": ["$missing", 0, 2]} => "",
    }
    codes! {
        {"$substrBytes": ["hello", "x", 1]} => 16034,
        {"$substrBytes": ["hello", 1, "x"]} => 16035,
        {"$substrBytes": ["hello", (-1), 1]} => 50752,
        {"$substrBytes": ["héllo", 2, 1]} => 28656,
        {"$substrBytes": ["héllo", 0, 2]} => 28657,
        {"$substrCP": ["abc", "x", 1]} => 34450,
        {"$substrCP": ["abc", 0.5, 1]} => 34451,
        {"$substrCP": ["abc", 0, "x"]} => 34452,
        {"$substrCP": ["abc", 0, 0.5]} => 34453,
        {"$substrCP": ["abc", 0, (-1)]} => 34454,
        {"$substrCP": ["abc", (-1), 1]} => 34455,
    }
}

#[test]
fn positions_in_strings() {
    values! {
        {"$indexOfBytes": ["cafétéria", "é"]} => 3,
        {"$indexOfBytes": ["cafétéria", "t"]} => 5,
        {"$indexOfCP": ["cafétéria", "t"]} => 4,
        {"$indexOfCP": ["cafétéria", "é", 4]} => 5,
        {"$indexOfCP": ["cafétéria", "é", 4, 5]} => (-1),
        {"$indexOfBytes": ["aéa", "a", 2]} => 3,
        {"$indexOfBytes": ["aéa", "é", 0, 2]} => (-1),
        {"$indexOfBytes": ["abc", "x"]} => (-1),
        {"$indexOfBytes": ["abc", "a", 10]} => (-1),
        {"$indexOfBytes": ["abc", "", 1]} => 1,
        {"$indexOfCP": ["abc", "b", 2, 1]} => (-1),
        {"$indexOfCP": ["abc", "bc", 0, 2]} => 1,
        {"$indexOfCP": ["abc", "", 2]} => 2,
        {"$indexOfCP": ["abc", "", 3]} => (-1),
        {"$indexOfCP": ["abc", "", 1, 1]} => (-1),
        {"$indexOfCP": ["abc", "c", 0, 2]} => (-1),
        {"$indexOfBytes": [null, "a"]} => null,
    }
    codes! {
        {"$indexOfBytes": [1, "a"]} => 40091,
        {"$indexOfBytes": ["a", 1]} => 40092,
        {"$indexOfCP": [1, "a"]} => 40093,
        {"$indexOfCP": ["a", null]} => 40094,
        {"$indexOfCP": ["a", "a", "x"]} => 40096,
        {"$indexOfCP": ["a", "a", (-1)]} => 40097,
        {"$indexOfCP": ["a"]} => 28667,
    }
}

#[test]
fn trimming() {
    values! {
        {"$trim": {"input": " \t a b \n"}} => "a b",
        {"$ltrim": {"input": "  a "}} => "a ",
        {"$rtrim": {"input": "  a "}} => "  a",
        {"$trim": {"input": "xxayx", "chars": "xy"}} => "a",
        {"$trim": {"input": null}} => null,
        {"$trim": {"input": "a", "chars": null}} => null,
    }
    codes! {
        {"$trim": "x"} => 50696,
        {"$trim": {"input": "x", "y": 1}} => 50694,
        {"$trim": {"chars": "x"}} => 50695,
        {"$trim": {"input": 1}} => 50699,
        {"$trim": {"input": "x", "chars": 1}} => 50700,
    }
}

#[test]
fn replacing() {
    values! {
        {"$replaceOne": {"input": "aXbX", "find": "X", "replacement": "-"}} => "a-bX",
        {"$replaceAll": {"input": "aXbX", "find": "X", "replacement": "-"}} => "a-b-",
        {"$replaceAll": {"input": "abc", "find": "", "replacement": "-"}} => "-a-b-c-",
        {"$replaceAll": {"input": null, "find": "X", "replacement": "-"}} => null,
        {"$replaceOne": {"input": "a", "find": "$missing", "replacement": "-"}} => null,
    }
    codes! {
        {"$replaceOne": 1} => 51751,
        {"$replaceOne": {"x": 1}} => 51750,
        {"$replaceOne": {"find": "X", "replacement": "-"}} => 51749,
        {"$replaceOne": {"input": "X", "replacement": "-"}} => 51748,
        {"$replaceOne": {"input": "X", "find": "-"}} => 51747,
        {"$replaceOne": {"input": 1, "find": "X", "replacement": "-"}} => 51746,
        {"$replaceOne": {"input": "a", "find": 1, "replacement": "-"}} => 51745,
        {"$replaceOne": {"input": "a", "find": "X", "replacement": 1}} => 51744,
    }
}

#[test]
fn regular_expressions() {
    values! {
        {"$regexMatch": {"input": "Hello", "regex": "^h", "options": "i"}} => true,
        {"$regexMatch": {"input": "Hello", "regex": (regex("^h", ""))}} => false,
        {"$regexMatch": {"input": null, "regex": "x"}} => false,
        {"$regexMatch": {"input": "a\nb", "regex": "a.b", "options": "s"}} => true,
        {"$regexMatch": {"input": "ab", "regex": "a b # comment", "options": "x"}} => true,
        {"$regexMatch": {"input": "$text", "regex": "$text"}} => true,
        {"$regexFind": {"input": "café au", "regex": "a(u)(x)?"}} => {"match": "au", "idx": 5, "captures": ["u", null]},
        {"$regexFind": {"input": "abc", "regex": "x"}} => null,
        {"$regexFind": {"input": "$missing", "regex": "x"}} => null,
        {"$regexFindAll": {"input": "a1b22", "regex": "[0-9]+"}} =>
            [{"match": "1", "idx": 1, "captures": []}, {"match": "22", "idx": 3, "captures": []}],
        {"$regexFindAll": {"input": "é1é2", "regex": "[0-9]"}} =>
            [{"match": "1", "idx": 1, "captures": []}, {"match": "2", "idx": 3, "captures": []}],
        {"$regexFindAll": {"input": "ab", "regex": ""}} =>
            [{"match": "", "idx": 0, "captures": []}, {"match": "", "idx": 1, "captures": []},],
        {"$regexFindAll": {"input": "", "regex": "x*"}} => [{"match": "", "idx": 0, "captures": []}],
        {"$regexFindAll": {"input": "éab", "regex": "a*"}} =>
            [{"match": "", "idx": 0, "captures": []}, {"match": "a", "idx": 1, "captures": []}, {"match": "", "idx": 2, "captures": []}],
        {"$regexFindAll": {"input": null, "regex": "x"}} => [],
        {"$regexMatch": {"input": "aa", "regex": "(a)\\1"}} => true,
    }
    codes! {
        {"$regexMatch": "x"} => 51103,
        {"$regexMatch": {"input": "x", "regex": "x", "y": 1}} => 31024,
        {"$regexMatch": {"regex": "x"}} => 31022,
        {"$regexMatch": {"input": "x"}} => 31023,
        {"$regexMatch": {"input": 1, "regex": "x"}} => 51104,
        {"$regexMatch": {"input": "x", "regex": 1}} => 51105,
        {"$regexMatch": {"input": "x", "regex": "x", "options": 1}} => 51106,
        {"$regexMatch": {"input": "x", "regex": (regex("x", "i")), "options": "i"}} => 51107,
        {"$regexMatch": {"input": "x", "regex": "x", "options": "g"}} => 51108,
        {"$regexMatch": {"input": "x", "regex": "a\0b"}} => 51109,
        {"$regexMatch": {"input": "x", "regex": "x", "options": "i\0"}} => 51110,
        {"$regexMatch": {"input": "x", "regex": "(x"}} => 51111,
        {"$regexMatch": {"input": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "regex": "^(?:(a+)+)(?=c)\\1$"}} => 51156,
    }
    missing! {
        {"$let": {"vars": {"found": {"$regexFind": {"input": "a", "regex": "a"}}}, "in": "$$found.x"}},
    }
}
