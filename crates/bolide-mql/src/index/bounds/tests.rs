use bson::raw::RawDocumentBuf;
use bson::{Bson, DateTime, Document, RawDocument, doc, rawdoc};
use fastrand::Rng;

use super::super::specification::ParseOptions;
use super::super::stored::stored_keys;
use super::*;
use crate::context::Context;
use crate::filter::Filter;
use bolide_model::UnixMillis;

pub(super) fn index(specification: &Document) -> IndexDefinition {
    let specification = RawDocumentBuf::try_from(specification).expect("BSON");
    IndexDefinition::parse(&specification, &ParseOptions::default()).expect("an index")
}

pub(super) fn of(key: Document) -> IndexDefinition {
    index(&doc! {"key": key, "name": "n"})
}

pub(super) fn filter(document: &Document) -> Filter {
    Filter::parse(&RawDocumentBuf::try_from(document).expect("BSON")).expect("a filter")
}

/// The bounds of the only part, as they are shown for documents with or without arrays.
fn shown(definition: &IndexDefinition, query: &Document, is_multikey: bool) -> Option<String> {
    let filter = filter(query);
    let found = bounds(definition, &filter.conditions(), None);
    assert!(found.len() <= 1, "{query}");
    let found = found.first()?;
    let fields = found.shown(is_multikey).iter();
    let fields = fields.map(|(name, intervals)| format!("{name} {}", intervals.join(" ")));
    Some(fields.collect::<Vec<_>>().join("; "))
}

#[test]
fn conditions_bound_the_fields_of_an_index() {
    let a = of(doc! {"a": 1});
    let ab = of(doc! {"a": 1, "b": -1});
    let cases = [
        (&a, doc! {"a": 5}, Some("a [5, 5]")),
        (&a, doc! {"a": {"$gt": 1, "$lte": 5}}, Some("a (1, 5]")),
        (&a, doc! {"a": {"$lt": 5}}, Some("a [-inf.0, 5)")),
        (&a, doc! {"a": {"$gte": "x"}}, Some("a [\"x\", {})")),
        (&a, doc! {"a": {"$in": [3, 1, 3.0]}}, Some("a [1, 1] [3, 3]")),
        (&a, doc! {"a": null}, Some("a [undefined, undefined] [null, null]")),
        (
            &a,
            doc! {"a": {"$regex": "^ab.c"}},
            Some("a [\"ab\", \"ac\") [/^ab.c/, /^ab.c/]"),
        ),
        (
            &a,
            doc! {"a": {"$regex": "^abc?"}},
            Some("a [\"ab\", \"ac\") [/^abc?/, /^abc?/]"),
        ),
        (&a, doc! {"a": {"$regex": "^a|b"}}, None),
        (&a, doc! {"a": {"$regex": "^a", "$options": "i"}}, None),
        (&a, doc! {"a": {"$exists": true}}, None),
        (&a, doc! {"a": {"$gt": [1]}}, None),
        (&a, doc! {"b": 5}, None),
        (&a, doc! {"a": {"$gt": f64::NAN}}, Some("a ")),
        (&ab, doc! {"a": 5, "b": {"$gt": 2}}, Some("a [5, 5]; b [inf.0, 2)")),
        (
            &ab,
            doc! {"a": {"$gt": 1}, "b": 7},
            Some("a (1, inf.0]; b [MaxKey, MinKey]"),
        ),
        (&ab, doc! {"b": 7}, None),
        (
            &ab,
            doc! {"$and": [{"a": {"$gte": 1}}, {"$or": [{"a": {"$lte": 1}}]}], "b": 2},
            Some("a [1, 1]; b [2, 2]"),
        ),
    ];
    for (definition, query, expected) in cases {
        assert_eq!(shown(definition, &query, false).as_deref(), expected, "{query}");
    }
}

#[test]
fn conditions_on_arrays_are_not_put_together() {
    let a = of(doc! {"a": 1});
    let query = doc! {"a": {"$gt": 1, "$lt": 5}};
    assert_eq!(shown(&a, &query, true).as_deref(), Some("a (1, inf.0]"));
    let query = doc! {"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}};
    assert_eq!(shown(&a, &query, true).as_deref(), Some("a (1, 5)"));
    let of_items = of(doc! {"items.sku": 1, "items.n": 1});
    let query = doc! {"items.sku": "x", "items.n": 2};
    let expected = "items.sku [\"x\", \"x\"]; items.n [MinKey, MaxKey]";
    assert_eq!(shown(&of_items, &query, true).as_deref(), Some(expected));
    let query = doc! {"items": {"$elemMatch": {"sku": "x", "n": 2}}};
    let expected = "items.sku [\"x\", \"x\"]; items.n [2, 2]";
    assert_eq!(shown(&of_items, &query, true).as_deref(), Some(expected));
}

#[test]
fn an_index_that_leaves_documents_out_serves_only_queries_for_others() {
    let sparse = index(&doc! {"key": {"a": 1}, "name": "n", "sparse": true});
    assert_eq!(shown(&sparse, &doc! {"a": null}, false), None);
    let all = Some("a [MinKey, MaxKey]");
    assert_eq!(shown(&sparse, &doc! {"a": {"$exists": true}}, false).as_deref(), all);
    let partial = index(&doc! {"key": {"a": 1}, "name": "n", "partialFilterExpression": {"b": {"$gt": 5}}});
    assert_eq!(shown(&partial, &doc! {"a": 1}, false), None);
    assert_eq!(shown(&partial, &doc! {"a": 1, "b": {"$gte": 5}}, false), None);
    let served = Some("a [1, 1]");
    for query in [
        doc! {"a": 1, "b": 6},
        doc! {"a": 1, "b": {"$gt": 5}},
        doc! {"a": 1, "b": {"$gte": 5.5}},
        doc! {"a": 1, "b": {"$in": [7, 8]}},
    ] {
        assert_eq!(shown(&partial, &query, false).as_deref(), served, "{query}");
    }
}

#[test]
fn strings_of_another_collation_bound_nothing() {
    let german = index(&doc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "de", "strength": 2}});
    assert_eq!(shown(&german, &doc! {"a": "x"}, false), None);
    assert_eq!(shown(&german, &doc! {"a": 1}, false).as_deref(), Some("a [1, 1]"));
    let filter = filter(&doc! {"a": "X"});
    let found = bounds(
        &german,
        &filter.conditions(),
        german.collation().map(|collation| &**collation),
    );
    let document = rawdoc! {"a": "x"};
    assert!(is_found(&german, &document, &found[0]));
}

#[test]
fn long_keys_are_found() {
    let long = "\u{10FFFF}".repeat(600);
    let ab = of(doc! {"a": 1, "b": 1});
    let document = RawDocumentBuf::try_from(&doc! {"a": format!("{long}x"), "b": 2}).expect("BSON");
    for query in [
        doc! {"a": format!("{long}x")},
        doc! {"a": {"$gt": &long}},
        doc! {"a": {"$lt": format!("{long}y")}},
        doc! {"a": {"$regex": format!("^{long}")}, "b": 2},
    ] {
        let filter = filter(&query);
        let found = bounds(&ab, &filter.conditions(), None);
        assert!(is_found(&ab, &document, &found[0]));
    }
}

fn is_found(definition: &IndexDefinition, document: &RawDocument, bounds: &IndexBounds) -> bool {
    stored_keys(definition, document)
        .iter()
        .any(|key| bounds.ranges.iter().any(|range| range.from <= *key && key < &range.to))
}

/// Random documents, filters and definitions over few names and values, so that they meet.
pub(super) struct Random(pub Rng, pub Vec<String>);

const NAMES: [&str; 3] = ["a", "b", "c"];
const PATHS: [&str; 8] = ["a", "b", "a.b", "a.c", "a.b.c", "b.a", "a.0", "c"];

impl Random {
    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.0.usize(..of.len())].clone()
    }

    fn scalar(&mut self) -> Bson {
        let values = [
            Bson::Null,
            Bson::Int32(1),
            Bson::Int32(2),
            Bson::Int64(3),
            Bson::Double(2.0),
            Bson::Double(2.5),
            Bson::Double(f64::NAN),
            Bson::Double(f64::NEG_INFINITY),
            Bson::String(String::new()),
            Bson::String("x".to_owned()),
            Bson::String("X".to_owned()),
            Bson::String("xy".to_owned()),
            Bson::Boolean(false),
            Bson::Boolean(true),
            Bson::DateTime(DateTime::from_millis(5)),
            Bson::MinKey,
            Bson::MaxKey,
            Bson::Undefined,
            Bson::ObjectId(bson::oid::ObjectId::from_bytes([1; 12])),
        ];
        match self.0.u8(..10) {
            0..7 => Bson::Int32(self.0.i32(0..4)),
            _ => self.pick(&values),
        }
    }

    fn value(&mut self, depth: usize) -> Bson {
        match self.0.u8(..10) {
            0..3 if depth > 0 => {
                let length = self.0.usize(..4);
                Bson::Array((0..length).map(|_| self.value(depth - 1)).collect())
            }
            3..6 if depth > 0 => Bson::Document(self.document(depth - 1)),
            _ => self.scalar(),
        }
    }

    pub(super) fn document(&mut self, depth: usize) -> Document {
        let mut document = Document::new();
        for name in NAMES {
            if self.0.u8(..3) > 0 {
                let value = self.value(depth);
                document.insert(name, value);
            }
        }
        document
    }

    /// Mostly one of the index.
    fn path(&mut self) -> String {
        match self.1.is_empty() || self.0.u8(..4) == 0 {
            true => self.pick(&PATHS).to_owned(),
            false => self.pick(&self.1.clone()),
        }
    }

    fn test(&mut self) -> Document {
        let mut test = Document::new();
        for _ in 0..self.0.usize(1..3) {
            let operator = self.pick(&["$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$exists", "$regex", "$ne"]);
            let operand = match operator {
                "$in" => {
                    let length = self.0.usize(..3);
                    Bson::Array(
                        (0..length)
                            .map(|_| self.value(1))
                            .filter(|value| *value != Bson::Undefined)
                            .collect(),
                    )
                }
                "$exists" => Bson::Boolean(self.0.bool()),
                "$regex" => Bson::String(self.pick(&["^x", "^xy?", "^$", "x"]).to_owned()),
                _ => match self.value(2) {
                    Bson::Undefined => Bson::Null,
                    value => value,
                },
            };
            test.insert(operator, operand);
        }
        test
    }

    pub(super) fn filter(&mut self, depth: usize) -> Document {
        let mut filter = Document::new();
        for _ in 0..self.0.usize(1..3) {
            match self.0.u8(..10) {
                0 if depth > 0 => {
                    filter.insert("$and", vec![self.filter(depth - 1), self.filter(depth - 1)]);
                }
                1 if depth > 0 => {
                    filter.insert("$or", vec![self.filter(depth - 1), self.filter(depth - 1)]);
                }
                2 => {
                    let test = self.test();
                    filter.insert(self.path(), doc! {"$elemMatch": test});
                }
                3 if depth > 0 => {
                    let inner = self.filter(depth - 1);
                    filter.insert(self.path(), doc! {"$elemMatch": inner});
                }
                _ => {
                    let test = self.test();
                    filter.insert(self.path(), test);
                }
            }
        }
        filter
    }

    pub(super) fn definition(&mut self) -> Option<IndexDefinition> {
        let mut specification = doc! {"name": "n"};
        let mut key = Document::new();
        match self.0.u8(..10) {
            0 => {
                let name = self.pick(&["$**", "a.$**"]);
                key.insert(name, 1);
            }
            kind => {
                for _ in 0..self.0.usize(1..4) {
                    key.insert(self.pick(&PATHS), self.pick(&[1, -1]));
                }
                if kind == 1 {
                    key.insert(self.pick(&PATHS), "hashed");
                } else if self.0.u8(..4) == 0 {
                    specification.insert("sparse", true);
                }
            }
        }
        specification.insert("key", key);
        if self.0.u8(..5) == 0 {
            let operator = self.pick(&["$eq", "$gt", "$gte", "$lt", "$lte", "$exists"]);
            let operand = match operator {
                "$exists" => Bson::Boolean(true),
                _ => self.scalar(),
            };
            let mut test = Document::new();
            test.insert(operator, operand);
            let mut partial = Document::new();
            partial.insert(self.pick(&PATHS), test);
            specification.insert("partialFilterExpression", partial);
        }
        if self.0.u8(..6) == 0 {
            specification.insert("collation", doc! {"locale": "en", "strength": 2});
        }
        let specification = RawDocumentBuf::try_from(&specification).expect("BSON");
        IndexDefinition::parse(&specification, &ParseOptions::default()).ok()
    }
}

#[test]
fn every_document_that_matches_is_inside_of_the_bounds() {
    let mut served = 0;
    for seed in 0..ROUNDS {
        let mut random = Random(Rng::with_seed(seed), Vec::new());
        let Some(definition) = random.definition() else {
            continue;
        };
        random.1 = definition
            .key
            .fields()
            .iter()
            .map(|field| field.name.replace("$**", "b"))
            .collect();
        let query = random.filter(2);
        let Ok(parsed) = Filter::parse(&RawDocumentBuf::try_from(&query).expect("BSON")) else {
            continue;
        };
        let collation = match random.0.bool() {
            true => definition.collation().cloned(),
            false => None,
        };
        let context = Context {
            collation: collation.clone(),
            ..Context::new(UnixMillis(0))
        };
        let found = bounds(&definition, &parsed.conditions(), collation.as_deref());
        for part in &found {
            for pair in part.ranges.windows(2) {
                assert!(pair[0].to <= pair[1].from, "{seed}: {query}");
            }
        }
        for _ in 0..DOCUMENTS {
            let document = random.document(3);
            let raw = RawDocumentBuf::try_from(&document).expect("BSON");
            if found.is_empty() || !parsed.matches(&raw, &context).expect("no errors") {
                continue;
            }
            served += 1;
            for part in &found {
                assert!(
                    is_found(&definition, &raw, part),
                    "{seed}: {definition:?}\nfilter {query}\ndocument {document}\n{part:?}"
                );
            }
        }
    }
    assert!(served > ROUNDS as usize / 10, "{served}");
}

pub(super) const ROUNDS: u64 = 4_000;
const DOCUMENTS: usize = 40;

#[test]
fn no_stored_key_is_the_beginning_of_another() {
    for seed in 0..2_000 {
        let mut random = Random(Rng::with_seed(seed), Vec::new());
        let Some(definition) = random.definition() else {
            continue;
        };
        let mut all: Vec<Vec<u8>> = Vec::new();
        for _ in 0..20 {
            let raw = RawDocumentBuf::try_from(&random.document(3)).expect("BSON");
            all.extend(stored_keys(&definition, &raw));
        }
        all.sort();
        all.dedup();
        for pair in all.windows(2) {
            assert!(!pair[1].starts_with(&pair[0]), "{seed}: {definition:?}");
        }
    }
}
