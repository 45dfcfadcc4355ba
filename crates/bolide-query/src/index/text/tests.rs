use super::*;
use crate::path::PathStep;

fn index(language: &str) -> TextIndex {
    TextIndex {
        path: IndexPath::of_steps(&[PathStep::name("text")]).expect("a path"),
        language: language.to_owned(),
    }
}

fn terms(language: &str, item: &str) -> Option<TextTerms> {
    index(language).terms(&Item::complete(item.as_bytes()).expect("UTF-8"))
}

fn listed(list: &[(&str, u64)]) -> Option<Vec<(String, u64)>> {
    Some(list.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect())
}

#[test]
fn words_are_counted_as_functions_compare_them() {
    let found = terms("en-US", r#"{"text":"The Dogs and the dog: running, 1,977 runs"}"#).expect("a text");
    assert_eq!(found.words, 5);
    assert_eq!(found.terms, listed(&[("1,977", 1), ("dog", 2), ("run", 2)]));
    let german = terms("de-DE", r#"{"text":"die Hunde und der Hund"}"#).expect("a text");
    assert_eq!((german.words, german.terms), (2, listed(&[("hund", 2)])));
}

#[test]
fn what_is_no_text_has_no_terms() {
    for item in [
        "{}",
        r#"{"text":1}"#,
        r#"{"text":["a"]}"#,
        r#"{"text":null}"#,
        r#"{"text":{}}"#,
    ] {
        assert_eq!(terms("en-US", item), None, "{item}");
    }
    let empty = terms("en-US", r#"{"text":"The, and."}"#).expect("a text without words");
    assert_eq!((empty.words, empty.terms), (0, listed(&[])));
}

#[test]
fn the_number_and_length_of_terms_are_bounded() {
    let numbers = |count: usize| {
        (0..count)
            .map(|n| format!("{}", 1_000_000 + n))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let of = |text: &str| terms("en-US", &format!("{{\"text\":\"{text}\"}}")).expect("a text");
    let most = of(&numbers(MAX_TERMS));
    assert_eq!(most.terms.map(|list| list.len()), Some(MAX_TERMS));
    let more = of(&numbers(MAX_TERMS + 1));
    assert_eq!((more.words, more.terms), (MAX_TERMS as u64 + 1, None));
    assert_eq!(of(&"9".repeat(TERM_BYTES)).terms.map(|list| list.len()), Some(1));
    let long = of(&format!("{} dog", "9".repeat(TERM_BYTES + 1)));
    assert_eq!((long.words, long.terms), (2, None));
}

#[test]
fn hits_are_those_of_the_terms() {
    let item = Item::complete(br#"{"text":"Dogs, a dog, and cats"}"#).expect("UTF-8");
    let terms = [
        Some("cat".to_owned()),
        None,
        Some("dog".to_owned()),
        Some("bird".to_owned()),
    ];
    assert_eq!(index("en-US").hits(&item, &terms), Some((3, vec![1, 0, 2, 0])));
}
