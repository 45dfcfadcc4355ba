use crate::index::{TextAggregate, TextRanking};
use crate::parameters::Parameters;
use crate::query::Query;
use crate::schema::Schema;

fn query(text: &str) -> Query {
    Query::compile(text, &Parameters::none(), &Schema::metadata()).expect("a query")
}

fn ranking(text: &str) -> Option<TextRanking> {
    query(text).text_ranking()
}

fn word(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_ranked_query_has_the_terms_of_its_score() {
    let found =
        ranking("SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.a, 'Dogs', 'the', ['cats'])").expect("one");
    assert_eq!(found.terms, [word("dog"), None, word("cat")]);
    assert_eq!((found.wanted, found.ties_descend, found.given), (10, false, None));
    assert!(!found.requires_term);
    let skipping = "SELECT c.id FROM c WHERE FullTextContains(c.a, 'dog') ORDER BY RANK FullTextScore(c.a, 'dog') OFFSET 5 LIMIT 3";
    let found = ranking(skipping).expect("one");
    assert_eq!((found.wanted, found.requires_term), (8, true));
}

#[test]
fn a_component_query_gives_its_statistics() {
    let of = |rest: &str| {
        ranking(&format!(
            "SELECT TOP 120 c._rid, c.a FROM c WHERE (true) ORDER BY _FullTextScore(c.a, ['dog', 'cat'], {rest}"
        ))
    };
    let found = of("100, 900, [10, 2]) DESC").expect("one");
    let given = found.given.expect("statistics");
    assert_eq!((given.documents, given.words, given.hits), (100, 900, vec![10, 2]));
    assert!(found.ties_descend);
    // Ascending, counts that do not fit, and more texts with a term than texts.
    for rest in [
        "100, 900, [10, 2]) ASC",
        "100, 900, [10]) DESC",
        "9, 900, [10, 2]) DESC",
        "c.n, 900, [10, 2]) DESC",
    ] {
        assert_eq!(of(rest), None, "{rest}");
    }
}

#[test]
fn other_queries_are_no_such_ranking() {
    for text in [
        "SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'dog')",
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.a, 'big dog')",
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.a, {'term': 'dog', 'distance': 1})",
        "SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'dog'), FullTextScore(c.b, 'dog'))",
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.l[0], 'dog')",
        "SELECT TOP 1 * FROM c ORDER BY c.a DESC",
    ] {
        assert_eq!(ranking(text), None, "{text}");
    }
}

#[test]
fn the_statistics_of_a_plan_are_aggregates_of_texts() {
    let text = "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.a)), \"hitCounts\": \
                [COUNTIF(FullTextContains(c.a, 'dogs')), COUNTIF(FullTextContains(c.a, 'the'))]}] AS fullTextStatistics FROM c";
    let found = query(text).text_aggregates().expect("aggregates");
    let [
        TextAggregate::Documents,
        TextAggregate::Words(words),
        TextAggregate::Hits(text, term),
        TextAggregate::Hits(_, None),
    ] = &found[..]
    else {
        panic!("{found:?}");
    };
    assert_eq!((words, term), (text, &word("dog")));
    for other in [
        "SELECT COUNT(1) AS n FROM c",
        "SELECT COUNTIF(FullTextContains(c.a, 'big dog')) AS n FROM c",
        "SELECT COUNTIF(FullTextContains(c.a, 'dog')) AS n FROM c WHERE c.x = 1",
        "SELECT COUNTIF(FullTextContains(c.a, 'dog')) AS n, MAX(c.x) AS m FROM c",
        "SELECT c.x, COUNTIF(FullTextContains(c.a, 'dog')) AS n FROM c GROUP BY c.x",
    ] {
        assert_eq!(query(other).text_aggregates(), None, "{other}");
    }
}
