//! Random queries against a naive evaluator over the live items (TTL-244…247): with random page sizes, and with expiry, purges and writes
//! between the pages.
//!
//! Without changes between pages the result must be the evaluator's, whatever the page size. With changes, items that were live, unchanged and
//! selected the whole time must be returned exactly once, and no item may be returned that does not exist when its page is made.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bolide_core::{QueryItems, Throughput};
use serde_json::{Value, json};

use crate::random::RandomChoices;
use crate::test_container::{START, TestContainer};

const ROUNDS: u64 = 120;

/// What the evaluator knows of an item.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    body: Value,
    /// The first second at which the item has expired.
    gone_at: i64,
    /// The number of the item's last write.
    version: u64,
}

/// The items by id, ghosts included.
type Items = BTreeMap<String, Kept>;

/// A filter, as text and as its meaning: true, false, or undefined.
#[derive(Debug, Clone)]
enum Filter {
    AtLeast(i64),
    InGroup(i64),
    HasNumber,
    HasTag(&'static str),
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

impl Filter {
    fn random(choices: &mut RandomChoices, depth: u32) -> Filter {
        let nested = |choices: &mut RandomChoices| Box::new(Filter::random(choices, depth - 1));
        match choices.roll(if depth == 0 { 4 } else { 7 }) {
            0 => Filter::AtLeast(choices.roll(6) as i64),
            1 => Filter::InGroup(choices.roll(3) as i64),
            2 => Filter::HasNumber,
            3 => Filter::HasTag(["x", "y"][choices.roll(2) as usize]),
            4 => Filter::Not(nested(choices)),
            5 => Filter::And(nested(choices), nested(choices)),
            _ => Filter::Or(nested(choices), nested(choices)),
        }
    }

    fn text(&self) -> String {
        match self {
            Filter::AtLeast(least) => format!("c.n >= {least}"),
            Filter::InGroup(group) => format!("c.g = {group}"),
            Filter::HasNumber => "IS_NUMBER(c.n)".to_owned(),
            Filter::HasTag(tag) => format!("ARRAY_CONTAINS(c.t, '{tag}')"),
            Filter::Not(inner) => format!("NOT ({})", inner.text()),
            Filter::And(one, other) => format!("({}) AND ({})", one.text(), other.text()),
            Filter::Or(one, other) => format!("({}) OR ({})", one.text(), other.text()),
        }
    }

    fn holds(&self, item: &Value) -> Option<bool> {
        match self {
            Filter::AtLeast(least) => item["n"].as_i64().map(|n| n >= *least),
            Filter::InGroup(group) => item.get("g").map(|g| *g == json!(group)),
            Filter::HasNumber => Some(item["n"].is_number()),
            Filter::HasTag(tag) => item["t"].as_array().map(|tags| tags.contains(&json!(tag))),
            Filter::Not(inner) => inner.holds(item).map(|holds| !holds),
            Filter::And(one, other) => match (one.holds(item), other.holds(item)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Filter::Or(one, other) => match (one.holds(item), other.holds(item)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

/// What the query returns for the items that pass the filter.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Ids,
    Tags,
    Groups,
    SortedGroups,
    LimitedGroups,
    NestedGroups,
    GroupedGroups,
    Counts,
    SortedUp,
    SortedDown,
    Window { skip: usize, take: usize },
    Number,
    Sum,
}

impl Shape {
    fn random(choices: &mut RandomChoices) -> Shape {
        match choices.roll(13) {
            0 => Shape::Ids,
            1 => Shape::Tags,
            2 => Shape::Groups,
            3 => Shape::Counts,
            4 => Shape::SortedUp,
            5 => Shape::SortedDown,
            6 => Shape::Window {
                skip: choices.roll(3) as usize,
                take: choices.roll(5) as usize,
            },
            7 => Shape::Number,
            8 => Shape::SortedGroups,
            9 => Shape::LimitedGroups,
            10 => Shape::NestedGroups,
            11 => Shape::GroupedGroups,
            _ => Shape::Sum,
        }
    }

    fn text(self, filter: &Filter) -> String {
        let filter = filter.text();
        match self {
            Shape::Ids => format!("SELECT VALUE c.id FROM c WHERE {filter}"),
            Shape::Tags => format!("SELECT VALUE t FROM c JOIN t IN c.t WHERE {filter}"),
            Shape::Groups => format!("SELECT DISTINCT VALUE c.g FROM c WHERE {filter}"),
            Shape::SortedGroups => format!("SELECT DISTINCT VALUE c.g FROM c WHERE {filter} ORDER BY c.g DESC"),
            Shape::LimitedGroups => format!("SELECT DISTINCT TOP 5 VALUE c.g FROM c WHERE {filter}"),
            Shape::NestedGroups => {
                format!("SELECT VALUE d FROM (SELECT DISTINCT VALUE c.g FROM c WHERE {filter}) d")
            }
            Shape::GroupedGroups => {
                format!("SELECT VALUE c.g FROM c WHERE {filter} GROUP BY c.g OFFSET 0 LIMIT 5")
            }
            Shape::Counts => format!("SELECT c.g, COUNT(1) AS k FROM c WHERE {filter} GROUP BY c.g"),
            Shape::SortedUp => format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY c.n"),
            Shape::SortedDown => format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY c.n DESC"),
            Shape::Window { skip, take } => {
                format!("SELECT VALUE c.n FROM c WHERE {filter} ORDER BY c.n OFFSET {skip} LIMIT {take}")
            }
            Shape::Number => format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}"),
            Shape::Sum => format!("SELECT VALUE SUM(c.n) FROM c WHERE {filter}"),
        }
    }

    /// Returns whether each group is returned as one row.
    fn gives_groups(self) -> bool {
        matches!(
            self,
            Shape::Groups | Shape::SortedGroups | Shape::LimitedGroups | Shape::NestedGroups | Shape::GroupedGroups
        )
    }

    /// Returns the rows for the items that pass the filter, and whether their order is guaranteed.
    fn rows(self, items: &[&Value]) -> (Vec<Value>, bool) {
        let ids = |items: Vec<&Value>| items.into_iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
        match self {
            Shape::Ids => (ids(items.to_vec()), false),
            Shape::Tags => (
                items
                    .iter()
                    .flat_map(|item| item["t"].as_array().cloned().unwrap_or_default())
                    .collect(),
                false,
            ),
            Shape::Groups | Shape::SortedGroups | Shape::LimitedGroups | Shape::NestedGroups | Shape::GroupedGroups => {
                let groups: BTreeSet<i64> = items.iter().filter_map(|item| item["g"].as_i64()).collect();
                (groups.into_iter().map(Value::from).collect(), false)
            }
            Shape::Counts => {
                let mut counts: BTreeMap<Option<i64>, u64> = BTreeMap::new();
                for item in items {
                    *counts.entry(item["g"].as_i64()).or_default() += 1;
                }
                let row = |(group, count)| match group {
                    Some(group) => json!({"g": group, "k": count}),
                    None => json!({"k": count}),
                };
                (counts.into_iter().map(row).collect(), false)
            }
            // Only the `Window` shape determines which of several equal items comes first.
            Shape::SortedUp | Shape::SortedDown => (ids(sorted(items)), false),
            Shape::Window { skip, take } => {
                let sorted = sorted(items).into_iter().map(|item| item["n"].clone());
                (sorted.skip(skip).take(take).collect(), true)
            }
            Shape::Number => (vec![json!(items.len())], true),
            Shape::Sum => {
                let numbers: Vec<&Value> = items.iter().filter_map(|item| item.get("n")).collect();
                let sum: Option<i64> = numbers.iter().map(|number| number.as_i64()).sum();
                (sum.map(Value::from).into_iter().collect(), true)
            }
        }
    }
}

/// Sorts by `n`: null, numbers, strings; items without it are left out.
fn sorted<'i>(items: &[&'i Value]) -> Vec<&'i Value> {
    let mut with: Vec<&Value> = items.iter().copied().filter(|item| item.get("n").is_some()).collect();
    with.sort_by(|one, other| compare(&one["n"], &other["n"]));
    with
}

fn compare(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Number(_) => 1,
        _ => 2,
    };
    let numbers = one.as_i64().cmp(&other.as_i64());
    rank(one)
        .cmp(&rank(other))
        .then(numbers)
        .then_with(|| one.as_str().cmp(&other.as_str()))
}

/// A container, and the evaluator's view of it.
struct Play {
    test: TestContainer,
    choices: RandomChoices,
    items: Items,
    now: i64,
    default_ttl: i64,
    writes: u64,
}

impl Play {
    async fn new(seed: u64) -> Play {
        let mut choices = RandomChoices::new(seed);
        let default_ttl = [-1, 6][choices.roll(2) as usize];
        let throughput = (choices.roll(3) == 0).then_some(Throughput::Manual { ru: 12_000 });
        let test = TestContainer::with_throughput(json!({ "defaultTtl": default_ttl }), throughput).await;
        let mut play = Play {
            test,
            choices,
            items: Items::new(),
            now: START,
            default_ttl,
            writes: 0,
        };
        for _ in 0..play.choices.roll(25) {
            play.write().await;
        }
        play
    }

    /// Creates or replaces an item.
    async fn write(&mut self) {
        let number = self.choices.roll(30);
        let mut body = json!({"id": format!("i{number}"), "pk": format!("p{}", number % 7)});
        match self.choices.roll(6) {
            0 => {}
            1 => body["n"] = json!(null),
            2 => body["n"] = json!("text"),
            _ => body["n"] = json!(self.choices.roll(6)),
        }
        if self.choices.roll(4) > 0 {
            body["g"] = json!(self.choices.roll(3));
        }
        let tags: Vec<&str> = ["x", "y", "z"]
            .into_iter()
            .filter(|_| self.choices.roll(2) == 0)
            .collect();
        if self.choices.roll(3) > 0 {
            body["t"] = json!(tags);
        }
        let ttl = match self.choices.roll(3) {
            0 => None,
            1 => Some(-1),
            _ => Some(1 + self.choices.roll(8) as i64),
        };
        if let Some(ttl) = ttl {
            body["ttl"] = json!(ttl);
        }
        self.test.upsert(body.clone(), None).await.unwrap();
        let seconds = ttl.unwrap_or(self.default_ttl);
        self.writes += 1;
        let kept = Kept {
            gone_at: if seconds < 0 { i64::MAX } else { self.now + seconds },
            version: self.writes,
            body: body.clone(),
        };
        self.items.insert(body["id"].as_str().unwrap().to_owned(), kept);
    }

    /// Makes a random change between two pages.
    async fn disturb(&mut self) {
        match self.choices.roll(4) {
            0 => {
                self.now += self.choices.roll(4) as i64;
                self.test.at(self.now);
            }
            1 => {
                self.test.purge().await;
            }
            2 => self.write().await,
            _ => {}
        }
    }

    fn live(&self) -> Items {
        let live = self.items.iter().filter(|(_, kept)| kept.gone_at > self.now);
        live.map(|(id, kept)| (id.clone(), kept.clone())).collect()
    }

    /// Returns the pages of a query, each with the items that were live when the page was made.
    async fn pages(&mut self, text: &str, is_disturbed: bool) -> Vec<(Vec<Value>, Items)> {
        let mut query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            merges_ranges: true,
            max_items: Some(1 + self.choices.roll(4) as usize),
            ..QueryItems::default()
        };
        let mut pages = Vec::new();
        loop {
            let ctx = self.test.begin().await;
            let page = self.test.account.query(&ctx, &self.test.container, &query).await;
            let page = page.unwrap_or_else(|refusal| panic!("{text}: {refusal:?}")).value;
            let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
            pages.push((rows, self.live()));
            assert!(pages.len() < 1_000, "{text}: pages never end");
            query.continuation = page.continuation;
            if query.continuation.is_none() {
                return pages;
            }
            if is_disturbed {
                self.disturb().await;
            }
        }
    }
}

fn passing<'i>(items: &'i Items, filter: &Filter) -> Vec<&'i Value> {
    let bodies = items.values().map(|kept| &kept.body);
    bodies.filter(|body| filter.holds(body) == Some(true)).collect()
}

fn in_any_order(rows: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn pages_together_are_what_the_live_items_give() {
    for seed in 1..=ROUNDS {
        let mut play = Play::new(seed).await;
        play.now += play.choices.roll(8) as i64;
        play.test.at(play.now);
        if play.choices.roll(2) == 0 {
            play.test.purge().await;
        }
        for _ in 0..4 {
            let (filter, shape) = (Filter::random(&mut play.choices, 2), Shape::random(&mut play.choices));
            let text = shape.text(&filter);
            let pages = play.pages(&text, false).await;
            let rows: Vec<Value> = pages.into_iter().flat_map(|(rows, _)| rows).collect();
            let live = play.live();
            let (expected, is_ordered) = shape.rows(&passing(&live, &filter));
            if is_ordered {
                assert_eq!(rows, expected, "seed {seed}: {text}");
            }
            assert_eq!(in_any_order(&rows), in_any_order(&expected), "seed {seed}: {text}");
            if let Shape::SortedUp | Shape::SortedDown = shape {
                let numbers: Vec<&Value> = rows.iter().map(|id| &live[id.as_str().unwrap()].body["n"]).collect();
                let is_down = matches!(shape, Shape::SortedDown);
                let in_order = |one: &&Value, other: &&Value| {
                    if is_down {
                        compare(one, other).is_ge()
                    } else {
                        compare(one, other).is_le()
                    }
                };
                assert!(numbers.is_sorted_by(in_order), "seed {seed}: {text}: {numbers:?}");
            }
        }
        play.test.assert_sound().await;
    }
}

/// TTL-247.
#[tokio::test]
async fn what_changes_between_pages_costs_nothing_else_its_place() {
    for seed in 1..=ROUNDS {
        let mut play = Play::new(seed).await;
        let filter = Filter::random(&mut play.choices, 1);
        let shapes = [
            Shape::Ids,
            Shape::SortedUp,
            Shape::SortedDown,
            Shape::Groups,
            Shape::SortedGroups,
            Shape::LimitedGroups,
            Shape::NestedGroups,
            Shape::GroupedGroups,
            Shape::Counts,
        ];
        let shape = shapes[play.choices.roll(shapes.len() as u64) as usize];
        let text = shape.text(&filter);
        let pages = play.pages(&text, true).await;
        let steady = steady(&pages);
        let bodies: Vec<&Value> = passing(&steady, &filter);
        let rows: Vec<&Value> = pages.iter().flat_map(|(rows, _)| rows).collect();
        let times = |wanted: &Value| rows.iter().filter(|row| **row == wanted).count();
        match shape {
            _ if shape.gives_groups() => {
                for group in bodies.iter().filter_map(|body| body.get("g")) {
                    assert_eq!(times(group), 1, "seed {seed}: {text}: {group} in {rows:?}");
                }
                let distinct: BTreeSet<String> = rows.iter().map(|row| row.to_string()).collect();
                assert_eq!(distinct.len(), rows.len(), "seed {seed}: {text}: {rows:?}");
            }
            Shape::Counts => {
                for body in bodies {
                    let of_group = rows.iter().filter(|row| row.get("g") == body.get("g")).count();
                    assert_eq!(of_group, 1, "seed {seed}: {text}: {body} in {rows:?}");
                }
            }
            _ => {
                for body in shape.rows(&bodies).0 {
                    assert_eq!(times(&body), 1, "seed {seed}: {text}: {body} in {rows:?}");
                }
            }
        }
        if !matches!(shape, Shape::Counts) {
            for (rows, live) in &pages {
                let allowed = shape.rows(&passing(live, &filter)).0;
                for row in rows {
                    assert!(allowed.contains(row), "seed {seed}: {text}: {row} is not there");
                }
            }
        }
    }
}

/// Returns the items that were live and unchanged while all pages were made.
fn steady(pages: &[(Vec<Value>, Items)]) -> Items {
    let mut steady = pages[0].1.clone();
    for (_, live) in pages {
        steady.retain(|id, kept| live.get(id) == Some(kept));
    }
    steady
}
