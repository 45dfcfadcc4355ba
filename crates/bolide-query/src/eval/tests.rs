//! Filters, compared with a second, naive evaluator over `serde_json` trees.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::{Environment, PageLimit, Parameters, Query, Schema};

/// A condition, as text and as a function.
#[derive(Debug, Clone)]
enum Condition {
    Compare(Operand, &'static str, Operand),
    In(Operand, Vec<Json>),
    Between(Operand, Operand, Operand),
    Defined(Operand),
    Flag(Operand),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

#[derive(Debug, Clone)]
enum Operand {
    Property(&'static str),
    Literal(Json),
    Sum(Box<Operand>, Box<Operand>),
}

impl Operand {
    fn text(&self) -> String {
        match self {
            Operand::Property(name) => format!("c.{name}"),
            Operand::Literal(value) => value.to_string(),
            Operand::Sum(a, b) => format!("({} + {})", a.text(), b.text()),
        }
    }

    fn value(&self, item: &Json) -> Option<Json> {
        match self {
            Operand::Property(name) => item.get(name).cloned(),
            Operand::Literal(value) => Some(value.clone()),
            Operand::Sum(a, b) => Some(json!(a.value(item)?.as_f64()? + b.value(item)?.as_f64()?)),
        }
    }
}

fn same(a: &Json, b: &Json) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn ordering(a: &Json, b: &Json) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Json::Null, Json::Null) => Some(std::cmp::Ordering::Equal),
        (Json::Bool(a), Json::Bool(b)) => Some(a.cmp(b)),
        (Json::Number(a), Json::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn compare(op: &str, a: Option<Json>, b: Option<Json>) -> Option<bool> {
    let (a, b) = (a?, b?);
    match op {
        "=" => Some(same(&a, &b)),
        "!=" => Some(!same(&a, &b)),
        "<" => ordering(&a, &b).map(|o| o.is_lt()),
        "<=" => ordering(&a, &b).map(|o| o.is_le()),
        ">" => ordering(&a, &b).map(|o| o.is_gt()),
        _ => ordering(&a, &b).map(|o| o.is_ge()),
    }
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(false) || b == Some(false) {
        Some(false)
    } else {
        a.zip(b).map(|_| true)
    }
}

impl Condition {
    fn text(&self) -> String {
        match self {
            Condition::Compare(a, op, b) => format!("({} {op} {})", a.text(), b.text()),
            Condition::In(a, list) => {
                format!(
                    "({} IN ({}))",
                    a.text(),
                    list.iter().map(Json::to_string).collect::<Vec<_>>().join(", ")
                )
            }
            Condition::Between(a, b, c) => format!("({} BETWEEN {} AND {})", a.text(), b.text(), c.text()),
            Condition::Defined(a) => format!("IS_DEFINED({})", a.text()),
            Condition::Flag(a) => a.text(),
            Condition::And(a, b) => format!("({} AND {})", a.text(), b.text()),
            Condition::Or(a, b) => format!("({} OR {})", a.text(), b.text()),
            Condition::Not(a) => format!("(NOT {})", a.text()),
        }
    }

    fn holds(&self, item: &Json) -> Option<bool> {
        match self {
            Condition::Compare(a, op, b) => compare(op, a.value(item), b.value(item)),
            Condition::In(a, list) => a.value(item).map(|a| list.iter().any(|b| same(&a, b))),
            Condition::Between(a, b, c) => both(
                compare(">=", a.value(item), b.value(item)),
                compare("<=", a.value(item), c.value(item)),
            ),
            Condition::Defined(a) => Some(a.value(item).is_some()),
            Condition::Flag(a) => a.value(item).and_then(|a| a.as_bool()),
            Condition::And(a, b) => both(a.holds(item), b.holds(item)),
            Condition::Or(a, b) => both(a.holds(item).map(|x| !x), b.holds(item).map(|x| !x)).map(|x| !x),
            Condition::Not(a) => a.holds(item).map(|x| !x),
        }
    }
}

fn value() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-3..4_i64).prop_map(Json::from),
        (-3..4_i64).prop_map(|n| Json::from(n as f64 / 2.0)),
        "[ab]{0,2}".prop_map(Json::from),
        Just(json!([1, "a"])),
        Just(json!({"x": 1, "y": [true]})),
    ]
}

fn operand() -> impl Strategy<Value = Operand> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["p", "q", "r"]).prop_map(Operand::Property),
        value().prop_map(Operand::Literal),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        (inner.clone(), inner).prop_map(|(a, b)| Operand::Sum(Box::new(a), Box::new(b)))
    })
}

fn condition() -> impl Strategy<Value = Condition> {
    let op = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (operand(), op, operand()).prop_map(|(a, op, b)| Condition::Compare(a, op, b)),
        (operand(), prop::collection::vec(value(), 1..8)).prop_map(|(a, list)| Condition::In(a, list)),
        (operand(), operand(), operand()).prop_map(|(a, b, c)| Condition::Between(a, b, c)),
        operand().prop_map(Condition::Defined),
        operand().prop_map(Condition::Flag),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| Condition::Not(Box::new(a))),
        ]
    })
}

fn item() -> impl Strategy<Value = Json> {
    let member = || proptest::option::of(value());
    (member(), member(), member()).prop_map(|(p, q, r)| {
        let members = [("p", p), ("q", q), ("r", r)];
        Json::Object(
            members
                .into_iter()
                .filter_map(|(name, v)| Some((name.to_owned(), v?)))
                .collect(),
        )
    })
}

/// All rows of a query over items.
fn rows(text: &str, items: &[Json]) -> Vec<Json> {
    let query = Query::compile(text, &Parameters::none(), &Schema::metadata()).unwrap();
    let mut page = query.execution(Environment::default(), PageLimit::NONE, None).unwrap();
    for (rid, item) in items.iter().enumerate() {
        page.push(item.to_string().as_bytes(), rid as u64).unwrap();
    }
    page.finish(true)
        .unwrap()
        .rows
        .iter()
        .map(|row| serde_json::from_slice(row).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn filters_agree_with_a_naive_evaluator(condition in condition(), items in prop::collection::vec(item(), 0..8)) {
        let expected: Vec<Json> = items.iter().filter(|item| condition.holds(item) == Some(true)).cloned().collect();
        let text = format!("SELECT * FROM c WHERE {}", condition.text());
        prop_assert_eq!(rows(&text, &items), expected, "{}", text);
    }
}

#[test]
fn integers_beyond_doubles_stay_exact() {
    let items = [
        json!({"n": 9_007_199_254_740_993_i64}),
        json!({"n": 9_007_199_254_740_992_i64}),
    ];
    assert_eq!(
        rows("SELECT VALUE c.n FROM c WHERE c.n = 9007199254740993", &items),
        [items[0]["n"].clone()]
    );
}

#[test]
fn escaped_and_nested_stored_text_reads_like_plain() {
    let items = [json!({"k\"ey": "a\nb", "o": {"l": [10, {"deep": "\u{e9}"}]}})];
    let row = rows(
        r#"SELECT c["k\"ey"] AS k, c.o.l[1].deep AS d, LENGTH(c["k\"ey"]) AS n FROM c"#,
        &items,
    );
    assert_eq!(row, [json!({"k": "a\nb", "d": "\u{e9}", "n": 3})]);
}

#[test]
fn non_finite_numbers_leave_as_strings() {
    assert_eq!(
        rows("SELECT VALUE [1/0, -1/0, SQRT(-1)]", &[]),
        [json!(["Infinity", "-Infinity", "NaN"])]
    );
}

#[test]
fn a_star_over_an_unnamed_input_survives_a_subquery_in_the_filter() {
    let items = [json!({"l": [[1, 2]], "id": "a"})];
    let text = "SELECT * FROM c.l[0] WHERE EXISTS(SELECT VALUE 1)";
    assert_eq!(rows(text, &items), [json!([1, 2])]);
}
