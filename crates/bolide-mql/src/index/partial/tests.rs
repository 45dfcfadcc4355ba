use bson::{Regex, rawdoc};

use super::*;

fn refusal(filter: &RawDocument) -> Option<(i32, String)> {
    let checked = PartialFilter::read(filter).and_then(|partial| partial.check());
    checked.err().map(|error| (error.code.0, error.message))
}

#[test]
fn simple_conditions_are_supported() {
    for filter in [
        rawdoc! {},
        rawdoc! {"a": 1},
        rawdoc! {"a": bson::RawBson::Null},
        rawdoc! {"a": {"b": 1}},
        rawdoc! {"a": {"$exists": true}},
        rawdoc! {"a": {"$exists": 1}},
        rawdoc! {"a": {"$gte": 1, "$lt": 5}, "b": {"$type": "string"}},
        rawdoc! {"a": {"$in": [1, 2]}},
        rawdoc! {"$or": [{"a": 1}, {"b": {"$gt": 2}}]},
        rawdoc! {"$and": [{"$and": [{"$and": [{"x": 3}]}]}]},
    ] {
        assert_eq!(refusal(&filter), None, "{}", value::text::render_document(&filter));
    }
}

#[test]
fn other_conditions_are_refused() {
    for (filter, tree) in [
        (rawdoc! {"a": {"$ne": 1}}, "$not\n    a $eq 1\n"),
        (rawdoc! {"a": {"$exists": false}}, "$not\n    a exists\n"),
        (rawdoc! {"a": {"$regex": "x"}}, "a regex /x/\n"),
        (rawdoc! {"a": {"$size": 2}}, "a $size : 2\n"),
        (rawdoc! {"$or": [{"a": {"$ne": 1}}]}, "$not\n    a $eq 1\n"),
        (
            rawdoc! {"$and": [{"a": 1}, {"b": {"$exists": false}}]},
            "$not\n    b exists\n",
        ),
    ] {
        let text = format!("Expression not supported in partial index: {tree}");
        assert_eq!(refusal(&filter), Some((67, text)));
    }
    let regex = Regex {
        pattern: "abc".try_into().expect("no NUL"),
        options: "".try_into().expect("no NUL"),
    };
    for filter in [
        rawdoc! {"$nor": [{"a": 1}]},
        rawdoc! {"a": {"$not": {"$gt": 1}}},
        rawdoc! {"a": {"$nin": [1]}},
        rawdoc! {"a": {"$mod": [2, 0]}},
        rawdoc! {"a": {"$elemMatch": {"$gt": 1}}},
        rawdoc! {"a": {"$bitsAllSet": 1}},
        rawdoc! {"a": regex},
    ] {
        let code = refusal(&filter).map(|(code, _)| code);
        assert_eq!(code, Some(67), "{}", value::text::render_document(&filter));
    }
}

#[test]
fn what_is_more_than_the_document_is_refused_everywhere() {
    for (filter, code, operator) in [
        (rawdoc! {"$expr": {"$eq": ["$a", 1]}}, 224, "$expr"),
        (rawdoc! {"$and": [{"$expr": true}]}, 224, "$expr"),
        (rawdoc! {"$where": "1"}, 2, "$where"),
        (rawdoc! {"$text": {"$search": "a"}}, 2, "$text"),
        (rawdoc! {"a": {"$near": [0, 0]}}, 2, "$near"),
    ] {
        let text = format!("{operator} is not allowed in this context");
        assert_eq!(refusal(&filter), Some((code, text)));
    }
}

#[test]
fn four_levels_are_allowed() {
    let text = "partialFilterExpression depth may not exceed 4".to_owned();
    for filter in [
        rawdoc! {"$and": [{"$and": [{"$and": [{"$and": [{"x": 3}]}]}]}]},
        rawdoc! {"$and": [{"$or": [{"$and": [{"x": 3, "y": 4}]}]}]},
        rawdoc! {"$and": [{"$or": [{"$and": [{"x": {"$gt": 3, "$lt": 4}}]}]}]},
    ] {
        assert_eq!(refusal(&filter), Some((67, text.clone())));
    }
}

#[test]
fn a_document_is_in_the_index_if_it_matches() {
    let collation = Collation::parse(&rawdoc! {"locale": "en", "strength": 2})
        .ok()
        .flatten();
    let filter = rawdoc! {"$or": [{"k": "log"}, {"n": {"$gte": 5}}], "z": {"$exists": true}};
    let plain = PartialFilter::read(&filter).expect("a filter");
    let folded = plain.clone().with_collation(collation.as_ref());
    for (document, by_bytes, by_collation) in [
        (rawdoc! {"k": "log", "z": bson::RawBson::Null}, true, true),
        (rawdoc! {"k": "LOG", "z": 1}, false, true),
        (rawdoc! {"n": [1, 7], "z": 1}, true, true),
        (rawdoc! {"n": "7", "z": 1}, false, false),
        (rawdoc! {"k": "log"}, false, false),
    ] {
        let text = value::text::render_document(&document);
        assert_eq!(plain.matches(&document).ok(), Some(by_bytes), "{text}");
        assert_eq!(folded.matches(&document).ok(), Some(by_collation), "{text}");
    }
}

#[test]
fn the_filter_itself_must_be_right() {
    for filter in [rawdoc! {"$and": 5}, rawdoc! {"a": {"$foo": 1}}, rawdoc! {"$or": []}] {
        assert_eq!(refusal(&filter).map(|(code, _)| code), Some(2));
    }
}
