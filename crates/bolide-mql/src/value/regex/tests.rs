use super::work::{STEPS, Work};
use super::{Options, Regex, SearchError};

fn regex(pattern: &str, options: &str) -> Result<Regex, String> {
    Regex::new(pattern, Options::parse(options).unwrap())
}

#[test]
fn options_and_syntax_are_those_of_pcre() {
    let cases = [
        ("^ab", "", "abc", true),
        ("^ab", "", "xabc", false),
        ("AB", "i", "xabc", true),
        ("É", "i", "é", true),
        ("^b", "m", "a\nb", true),
        ("^b", "", "a\nb", false),
        ("a.b", "s", "a\nb", true),
        ("a.b", "", "a\nb", false),
        ("a b # comment", "x", "ab", true),
        ("a", "u", "a", true),
        ("a(?=b)", "", "ab", true),
        ("(?<!a)b", "", "ab", false),
        (r"(a|b)\1", "", "abb", true),
        ("(?i)AB", "", "ab", true),
        ("(*UTF8)(*UCP)ä", "", "ä", true),
        ("", "", "", true),
        // Without (*UCP), the classes are of ASCII.
        (r"^\w+$", "", "aZ_9", true),
        (r"^\w+$", "", "café", false),
        (r"(*UCP)^\w+$", "", "café", true),
        (r"^\W$", "", "é", true),
        (r"\d", "", "١", false),
        (r"^[\d-z]+$", "", "1-z", true),
        (r"^[\d-z]+$", "", "a", false),
        (r"^[^\W_]+$", "", "ab", true),
        (r"^[^\W_]+$", "", "a_", false),
        (r"\s", "", "\u{A0}", false),
        (r"\s", "", "\t", true),
        (r"\S", "", "\u{A0}", true),
        // Brackets have no operators and no white space.
        ("^[[a]+$", "", "[a", true),
        ("^[a&&b]+$", "", "a&b", true),
        ("^[]a]+$", "", "]a", true),
        ("^[[:digit:]x]+$", "", "1x", true),
        ("^[a b]$", "x", " ", true),
        ("^[a#b]$", "x", "#", true),
        (r"^a\ b$", "x", "a b", true),
        (r"[\b]", "", "\u{8}", true),
    ];
    for (pattern, options, text, expected) in cases {
        let found = regex(pattern, options).unwrap().is_match(text).unwrap();
        assert_eq!(found, expected, "/{pattern}/{options} {text:?}");
    }
    assert_eq!(Options::parse("iz"), Err('z'));
}

#[test]
fn bad_and_large_patterns_are_refused() {
    let long = "a".repeat(40_000);
    for (pattern, options) in [
        ("(", ""),
        ("[", ""),
        (&long, ""),
        ("(?:a{1000}){1000}", ""),
        (r"(a)\1", "i"),
        (r"(?i)(a)\1", ""),
    ] {
        assert!(
            regex(pattern, options).is_err(),
            "{}",
            &pattern[..pattern.len().min(20)]
        );
    }
}

#[test]
fn a_search_with_too_many_steps_is_an_error() {
    let regex = regex(r"(x+x+)+\1y", "").unwrap();
    assert!(matches!(regex.is_match(&"x".repeat(40)), Err(SearchError::Failed(_))));
}

fn work(pattern: &str) -> Work {
    Work::of(&fancy_regex::Expr::parse_tree(pattern).unwrap().expr).unwrap()
}

#[test]
fn honest_patterns_are_affordable_on_long_texts() {
    const MEGABYTE: usize = 1024 * 1024;
    let patterns = [
        "^abc",
        "abc.*def",
        r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}",
        r"https?://[^\s/]+(/\S*)?",
        r"\w{3,20}",
        "(foo|bar|baz)+",
        "(?i)error|warning|fatal",
    ];
    for pattern in patterns {
        assert_eq!(work(pattern).steps_index(16 * MEGABYTE), Some(0), "{pattern}");
    }
    let with_steps = [r"^(?=.*[A-Z])(?=.*\d).{8,64}$", r"(?<!\w)foo(?!\w)", r"\b(\w+) \1\b"];
    for pattern in with_steps {
        assert!(
            work(pattern)
                .steps_index(MEGABYTE / 64)
                .is_some_and(|index| STEPS[index] >= 1_000),
            "{pattern}"
        );
    }
}

#[test]
fn costly_searches_are_refused_or_given_few_steps() {
    let nested = work("(?:(?:(?:[)-a)))]{20}){20}){20})[^A]");
    assert_eq!(nested.steps_index(16_000), Some(0));
    assert_eq!(nested.steps_index(16_000_000), None);
    assert_eq!(work("(?=[ab]*a[ab]{1200}[^ab])[ab]").steps_index(100_000), None);
    assert_eq!(
        work(r"(?=a+b)a").steps_index(1_000_000).map(|index| STEPS[index]),
        Some(1_000)
    );
}
