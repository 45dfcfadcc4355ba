use super::*;
use crate::fuel::Interrupt;
use crate::limits::ITEM_WORK;

fn ample() -> Fuel {
    Fuel::new(ITEM_WORK, None)
}

/// Whether the pattern occurs; `Err` if that is too much work.
fn matches(pattern: &str, text: &str, fuel: &Fuel) -> Result<Option<bool>, Interrupt> {
    let found = Pattern::new(pattern, "", fuel).and_then(|pattern| pattern.is_match(text, fuel));
    match fuel.check() {
        Ok(()) => Ok(found),
        Err(_) => Err(Interrupt::TooMuchWork),
    }
}

fn repeated(part: &str, bytes: usize) -> String {
    part.repeat(bytes / part.len() + 1)
}

/// Pseudo-random letters.
fn letters(count: usize) -> String {
    let mut random = fastrand::Rng::with_seed(1);
    (0..count).map(|_| if random.bool() { 'a' } else { 'b' }).collect()
}

#[test]
fn usual_patterns_are_within_the_limits_over_long_texts() {
    let prose = repeated("Sunflower7 fields, 12 of them; see the other page. ", 100_000);
    let other = repeated("Über die Felder: 12 Äpfel — siehe Seite 7. ", 100_000);
    for pattern in [
        r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
        r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
        r"\d{4}-\d{2}-\d{2}",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z",
        r"https?://[^\s/$.?#].[^\s]*",
        r"https?://[\w.-]+(?:/[\w./?%&=-]*)?",
        "^a.*b$",
        "^.*(error|warning|critical).*$",
        "foo|bar|baz|qux",
        "(?i)january|february|march|april|may|june|july|august|september|october|november|december",
        r"\w{3,20}!",
        r"\p{Lu}\p{Ll}+ \p{Lu}{2,}",
        r"[\p{L}\p{N}]+@",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"^\s+|\s{9}$",
        r"\+?[0-9]{1,3}[ -]?\(?[0-9]{3}\)?[ -]?[0-9]{4}",
        r"(?i)<[a-z][^>]*>",
        r"[\s\S]*xyz",
        r"\bword\b",
        "^(?=.*[A-Z])(?=.*[0-9])(?!.*@).{8,}$",
        r"(?<!\d)\d{3}-\d{4}(?!\d)",
        "foo(?!bar)",
        r"^(?:(?!end).)*$",
    ] {
        for text in [&prose, &other] {
            let found = matches(pattern, text, &ample());
            assert!(matches!(found, Ok(Some(_))), "{pattern}: {found:?}");
        }
    }
}

/// At each of its positions such a pattern may go on to the end of the text.
#[test]
fn look_arounds_beside_parts_without_end_are_within_the_limits_over_some_kilobytes() {
    let text = repeated("It was $12 at first, then 13 of them; foobar. ", 6_000);
    for pattern in [
        r"(?<=\$)[0-9]+\.[0-9]{2}",
        r"(?<!\w)@\w+",
        "foo(?!bar).*x",
        "(?=.*x)y",
        r"\b(\w+) \1\b",
        r#""(?:[^"\\]|\\.)*"(?!,)"#,
        r"(['\x22]).*?\1",
    ] {
        let found = matches(pattern, &text, &ample());
        assert_eq!(found, Ok(Some(false)), "{pattern}");
    }
}

#[test]
fn all_words_of_a_long_text_are_found() {
    let text = repeated("Sunflower7 fields, 12 of them; see the other page. ", 100_000);
    for (pattern, min) in [(r"\w+", 15_000), ("[a-z]+", 13_000), (r"\w+(?=;)", 1_900)] {
        let fuel = ample();
        let pattern = Pattern::new(pattern, "", &fuel).expect("a pattern");
        assert!(pattern.find_all(&text, &fuel).len() > min);
        assert_eq!(fuel.check(), Ok(()));
    }
}

#[test]
fn repetitions_multiply_whatever_is_in_a_class() {
    let size = |pattern: &str| match size::parse(pattern, &ample()) {
        Parsed::Hir(_, size) => size.positions,
        other => panic!("{other:?}"),
    };
    assert!(size("(?:(?:(?:[)-a)))]{20}){20}){20})[^A]") >= 8_000);
    assert!(size(r"(?:(?:[\](]{20}){20}){20}") >= 8_000);
    assert!(size("(?x)(?: [a] #{\n{20}){20}") >= 400);
    assert!(size("(?:a?){300}") >= 600);
    assert_eq!(size("[{20}]{2}"), 2);
}

#[test]
fn patterns_of_too_many_places_are_refused_over_long_texts() {
    let pattern = "(?:(?:(?:[)-a)))]{20}){20}){20})[^A]";
    assert_eq!(matches(pattern, "AAA", &ample()), Ok(Some(false)));
    let long = matches(pattern, &"A".repeat(16_000), &ample());
    assert_eq!(long, Err(Interrupt::TooMuchWork));
}

#[test]
fn parts_that_read_the_text_repeatedly_are_refused_over_long_texts() {
    let pattern = "(?=[ab]*a[ab]{1200}[^ab])[ab]";
    assert_eq!(matches(pattern, "ab", &ample()), Ok(Some(false)));
    for bytes in [2_000, 170_000] {
        let long = matches(pattern, &letters(bytes), &ample());
        assert_eq!(long, Err(Interrupt::TooMuchWork), "{bytes}");
    }
}

#[test]
fn references_that_ignore_case_are_refused_over_long_texts_beyond_ascii() {
    for pattern in [
        r"(?i)((?:(?:[^!)))]{30}){30}){3})\1!",
        r"((?i)([^!]*)\2!)",
        r"(?i:(é+)\1!)",
    ] {
        let text = "é".repeat(2_700) + &"É".repeat(2_750);
        let long = matches(pattern, &text, &ample());
        assert_eq!(long, Err(Interrupt::TooMuchWork), "{pattern}");
    }
    assert_eq!(matches(r"(?i)^(é+) \1$", "éé ÉÉ", &ample()), Ok(Some(true)));
    assert_eq!(
        matches(r"(?i)\b(\w+) \1\b", &repeated("of them other ", 5_000), &ample()),
        Ok(Some(false))
    );
}

/// The worker of a partition has this little.
#[test]
fn a_search_is_refused_where_less_fuel_is_left_than_it_may_take() {
    let text = "A".repeat(45_000);
    for pattern in ["(?:(?:[)-a]{20}){10})[^A]", "[a-z]{50}", "^.*b$", "[A-Z]+;"] {
        let compiled = Pattern::new(pattern, "", &ample()).expect("a pattern");
        let little = Fuel::new(50_000, None);
        assert_eq!(compiled.is_match("A", &little), Some(false), "{pattern}");
        assert_eq!(little.check(), Ok(()), "{pattern}");
        assert_eq!(compiled.is_match(&text, &little), None, "{pattern}");
        assert!(little.check().is_err(), "{pattern}");
        let little = Fuel::new(50_000, None);
        assert!(compiled.find_all(&text, &little).is_empty(), "{pattern}");
        assert!(little.check().is_err(), "{pattern}");
    }
}

#[test]
fn the_maximum_cost_of_a_search_is_spent() {
    let fuel = ample();
    let pattern = Pattern::new("[ab]*a[ab]{300}c", "", &fuel).expect("a pattern");
    let before = fuel.left();
    assert_eq!(pattern.is_match(&letters(20_000), &fuel), Some(false));
    assert!(before - fuel.left() >= 20_000 * 300 * 6);
}

#[test]
fn all_matches_in_a_text_cost_their_maximum_if_fuel_is_low() {
    let fuel = Fuel::new(1_000_000, None);
    let pattern = Pattern::new("a|.*b", "", &ample()).expect("a pattern");
    pattern.find_all(&"a".repeat(2_000), &fuel);
    assert!(fuel.check().is_err(), "each goes to the end of the text");
}

#[test]
fn compiling_is_afforded_before() {
    for pattern in [r"\w{3,20}", r"\p{L}+", "(?i)[\\s\\S]", "(?=a)b"] {
        let little = Fuel::new(50_000, None);
        assert!(Pattern::new(pattern, "", &little).is_none(), "{pattern}");
        assert!(little.check().is_err(), "{pattern}");
    }
}

/// Finding the other cases takes milliseconds for each of these classes.
#[test]
fn very_many_large_classes_that_ignore_case_are_invalid() {
    let classes = [r"[\x00-\x{10ffff}]", r"[\s\S]", "[[^a]]", r"[\d--\D]"];
    for class in classes {
        let many = class.repeat(1_000);
        for (pattern, flags) in [
            (many.clone(), "i"),
            (format!("(?i){many}"), ""),
            (format!("(?i:{many})"), ""),
            (format!("(?=a){many}"), "i"),
        ] {
            let fuel = ample();
            assert!(Pattern::new(&pattern, flags, &fuel).is_none(), "{class} {flags}");
        }
    }
    assert!(Pattern::new(r"[\s\S]*x[\s\S]*y", "i", &ample()).is_some());
}
