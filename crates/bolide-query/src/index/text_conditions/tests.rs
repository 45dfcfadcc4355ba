use crate::index::TextCondition;
use crate::parameters::Parameters;
use crate::query::Query;
use crate::schema::Schema;

fn conditions(filter: &str) -> Vec<TextCondition> {
    let text = format!("SELECT * FROM c WHERE {filter}");
    let query = Query::compile(&text, &Parameters::none(), &Schema::metadata()).expect("a query");
    query.text_conditions()
}

fn lists(filter: &str) -> Vec<Vec<Vec<String>>> {
    conditions(filter).into_iter().map(|condition| condition.any_of).collect()
}

fn words(lists: &[&[&str]]) -> Vec<Vec<String>> {
    lists.iter().map(|list| list.iter().map(|word| (*word).to_owned()).collect()).collect()
}

#[test]
fn a_condition_has_the_words_that_evaluation_compares() {
    let found = conditions("FullTextContains(c.a.b, 'Running DOGS')");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].text.path.to_string(), &found[0].text.language[..]), ("/a/b/?".to_owned(), "en-US"));
    assert_eq!(found[0].any_of, words(&[&["run", "dog"]]));
    assert_eq!(lists("FullTextContainsAll(c.a, 'red', 'cars')"), [words(&[&["red"]]), words(&[&["car"]])]);
    assert_eq!(lists("FullTextContainsAny(c.a, 'red', 'blue cars')"), [words(&[&["red"], &["blue", "car"]])]);
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
    let any = |count: usize| (0..count).map(|n| format!("'{}'", 1_000 + n)).collect::<Vec<_>>().join(",");
    assert_eq!(lists(&format!("FullTextContainsAny(c.a, {})", any(64))).len(), 1);
    assert_eq!(lists(&format!("FullTextContainsAny(c.a, {})", any(65))).len(), 0);
    assert_eq!(lists(&format!("FullTextContains(c.a, '{}')", "9".repeat(100_000))).len(), 0);
}
