use super::*;

fn steps(pattern: &str) -> Option<Steps> {
    of(pattern, &Fuel::new(500_000_000, None))
}

#[test]
fn hard_loops_multiply() {
    for (pattern, loops) in [
        ("(?=abc)a", 0),
        ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", 0),
        ("^(?:(?!end).)*$", 1),
        (r"(a+)+b\1", 2),
        (r"^(?:(?=\1).)*(a)", 1),
        ("^(?:(?=.*)a)*b", 1),
        ("^(?:x(?:(?=.*)a)*)*b", 2),
        ("^(?:(?=.{5})a){9}", 0),
        ("^(?>(?:(?=(?>(?:(?=.*)a)*))a)*)b", 2),
        ("(a)?(?(1)(?:(?=a*)a)*|b)", 1),
    ] {
        assert_eq!(steps(pattern).map(|own| own.loops), Some(loops), "{pattern}");
    }
    for invalid in ["(", r"(a)\g<1>(?=x)"] {
        assert_eq!(steps(invalid), None, "{invalid}");
    }
}

#[test]
fn patterns_of_too_many_parts_are_invalid() {
    let classes = |count: usize| r"(?=a)".to_owned() + &r"[a-z](?=a)".repeat(count);
    assert!(steps(&classes(PARTS)).is_some());
    assert_eq!(steps(&classes(PARTS + 1)), None);
    let words = |count: usize| r"(?=a)".to_owned() + &r"\w(?=a)".repeat(count);
    assert!(steps(&words(64)).is_some());
    assert_eq!(steps(&words(PARTS)), None, "they would take too long to compile");
}

#[test]
fn loops_whose_places_are_thrown_away_multiply_with_steps_back() {
    for (pattern, has_cuts) in [
        ("^(?:(?!end).)*$", false),
        ("(?>a*)b", false),
        ("^(?:a(?!(?:(?<!c)a)*b))*b", true),
        ("^(?:(?=(?:(?<!c)a)*b)a)*b", false),
        ("(?>(?:(?=c)a)*)b", true),
    ] {
        let own = steps(pattern).expect(pattern);
        assert_eq!(own.has_cuts, has_cuts, "{pattern}");
    }
}

#[test]
fn a_part_that_reaches_the_end_of_the_text_costs_its_length_each_time() {
    let long = steps("(?=[ab]*a[ab]{1200}[^ab])[ab]").expect("a pattern");
    let per_step = long.units(2_000, true, 101).expect("units") - long.units(2_000, true, 100).expect("units");
    assert!(per_step >= 2_000 * 1_200 * 6, "{per_step}");
    let short = steps(r"(?<!\d)\d{3}-\d{4}(?!\d)").expect("a pattern");
    let (some, many) = (short.units(100, true, 1_000), short.units(100_000, true, 1_000));
    assert_eq!(some, many, "it checks for interrupts at some characters");
}

#[test]
fn rounds_that_must_be_are_counted() {
    let once = steps("(?:(?=a)a?)x").expect("a pattern");
    let often = steps("(?:(?=a)a?){1000000000}x").expect("a pattern");
    let (once, often) = (once.units(10, true, 0), often.units(10, true, 0));
    assert!(often > once.map(|units| units * 1_000_000), "{once:?} {often:?}");
}

#[test]
fn references_that_ignore_case_are_for_short_texts_beyond_ascii() {
    for pattern in [r"(?i)(\w+) \1", r"(?i:(a.*)\1)"] {
        let own = steps(pattern).expect("a pattern");
        assert!(own.units(100_000, true, 10).is_some(), "{pattern}");
        assert!(own.units(FOLDED_BYTES, false, 10).is_some(), "{pattern}");
        assert_eq!(own.units(FOLDED_BYTES + 1, false, 10), None, "{pattern}");
    }
    let exact = steps(r"(\w+) \1").expect("a pattern");
    assert!(exact.units(100_000, false, 10).is_some());
}
