use proptest::prelude::*;
use proptest::sample::select;

use crate::execution::PageLimit;
use crate::index::TextCondition;
use crate::parameters::Parameters;
use crate::query::Query;
use crate::schema::Schema;
use crate::session::Environment;
use crate::value::Item;

fn conditions(filter: &str) -> Vec<TextCondition> {
    let text = format!("SELECT * FROM c WHERE {filter}");
    let query = Query::compile(&text, &Parameters::none(), &Schema::metadata()).expect("a query");
    query.text_conditions()
}

fn lists(filter: &str) -> Vec<Vec<Vec<String>>> {
    conditions(filter)
        .into_iter()
        .map(|condition| condition.any_of)
        .collect()
}

fn words(lists: &[&[&str]]) -> Vec<Vec<String>> {
    lists
        .iter()
        .map(|list| list.iter().map(|word| (*word).to_owned()).collect())
        .collect()
}

#[test]
fn a_condition_has_the_words_that_evaluation_compares() {
    let found = conditions("FullTextContains(c.a.b, 'Running DOGS')");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].text.path.to_string(), &found[0].text.language[..]),
        ("/a/b/?".to_owned(), "en-US")
    );
    assert_eq!(found[0].any_of, words(&[&["run", "dog"]]));
    assert_eq!(
        lists("FullTextContainsAll(c.a, 'red', 'cars')"),
        [words(&[&["red"]]), words(&[&["car"]])]
    );
    assert_eq!(
        lists("FullTextContainsAny(c.a, 'red', 'blue cars')"),
        [words(&[&["red"], &["blue", "car"]])]
    );
}

#[test]
fn a_term_without_words_is_in_no_text() {
    assert_eq!(lists("FullTextContains(c.a, 'the')"), [words(&[])]);
    assert_eq!(lists("FullTextContainsAny(c.a, 'the', 'red')"), [words(&[&["red"]])]);
    assert_eq!(lists("FullTextContains(c.a, 1)"), [words(&[])]);
}

#[test]
fn or_unites_conditions_on_one_text() {
    assert_eq!(
        lists("FullTextContains(c.a, 'red') OR FullTextContains(c.a, 'blue')"),
        [words(&[&["red"], &["blue"]])]
    );
    assert_eq!(lists("FullTextContains(c.a, 'red') AND c.n = 1"), [words(&[&["red"]])]);
    for filter in [
        "FullTextContains(c.a, 'red') OR c.n = 1",
        "FullTextContains(c.a, 'red') OR FullTextContains(c.b, 'red')",
        "NOT FullTextContains(c.a, 'red')",
        "FullTextContains(c.a, c.b)",
        "FullTextContains(c.l[0], 'red')",
        "FullTextContains(c.a, {'term': 'red', 'distance': 1})",
    ] {
        assert_eq!(lists(filter), Vec::<Vec<Vec<String>>>::new(), "{filter}");
    }
}

#[test]
fn a_condition_is_bounded() {
    let any = |count: usize| {
        (0..count)
            .map(|n| format!("'{}'", 1_000 + n))
            .collect::<Vec<_>>()
            .join(",")
    };
    assert_eq!(lists(&format!("FullTextContainsAny(c.a, {})", any(64))).len(), 1);
    assert_eq!(lists(&format!("FullTextContainsAny(c.a, {})", any(65))).len(), 0);
    assert_eq!(
        lists(&format!("FullTextContains(c.a, '{}')", "9".repeat(100_000))).len(),
        0
    );
}

const WORDS: [&str; 8] = ["dog", "Dogs", "red", "the", "cars", "running", "1,5", "über"];

fn words_of_text() -> impl Strategy<Value = String> {
    prop::collection::vec(select(WORDS.to_vec()), 0..6).prop_map(|words| words.join(" "))
}

fn filter() -> impl Strategy<Value = String> {
    let terms = || prop::collection::vec(words_of_text(), 1..3).prop_map(|list| format!("'{}'", list.join("', '")));
    let call = prop_oneof![
        words_of_text().prop_map(|term| format!("FullTextContains(c.a, '{term}')")),
        terms().prop_map(|terms| format!("FullTextContainsAll(c.a, {terms})")),
        terms().prop_map(|terms| format!("FullTextContainsAny(c.a, {terms})")),
        Just("c.n = 1".to_owned()),
        Just("FullTextContains(c.a, {'term': 'dig', 'distance': 1})".to_owned()),
    ];
    call.prop_recursive(2, 8, 3, |inner| {
        let list = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            list().prop_map(|list| format!("({})", list.join(" AND "))),
            list().prop_map(|list| format!("({})", list.join(" OR "))),
            inner.prop_map(|operand| format!("NOT ({operand})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn a_text_with_a_row_is_admitted_by_each_condition(
        filter in filter(),
        texts in prop::collection::vec(words_of_text(), 1..8),
    ) {
        let query = format!("SELECT VALUE c.a FROM c WHERE {filter}");
        let query = Query::compile(&query, &Parameters::none(), &Schema::metadata()).expect("a query");
        for text in texts {
            let item = format!("{{\"n\":1,\"a\":\"{text}\"}}");
            let mut page = query.execution(Environment::default(), PageLimit::NONE, None).expect("a page");
            page.push(item.as_bytes(), 1).expect("no error");
            let has_row = page.finish(true).expect("it ends").rows.len() == 1;
            let item = Item::complete(item.as_bytes()).expect("UTF-8");
            for condition in query.text_conditions() {
                let terms = condition.text.terms(&item).and_then(|text| text.terms).expect("a short text");
                let words: Vec<String> = terms.into_iter().map(|(word, _)| word).collect();
                prop_assert!(!has_row || condition.admits(&words), "{} leaves out {} by {:?}", filter, text, condition);
            }
        }
    }
}
