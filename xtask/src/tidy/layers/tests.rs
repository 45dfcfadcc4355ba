use super::*;

const PAGE: &str = "## Layers\n\nText.\n\n### `shop`\n\n| module | what is in it |\n| --- | --- |\n| `money` | sums of `money` |\n\
                    | `cart` | x |\n| `till` | y |\n\n## Next\n\n| `none` | z |\n";

fn file(path: &str, text: &str) -> TextFile {
    TextFile {
        path: format!("crates/shop/src/{path}"),
        text: text.to_owned(),
    }
}

/// The problems of a crate with these files in addition to its `lib.rs`.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let root = file(
        "lib.rs",
        "mod money;\nmod cart;\npub mod till;\n#[cfg(test)]\nmod tests;\npub use till::Till;\n",
    );
    let others = files.iter().map(|(path, text)| file(path, text));
    check(PAGE, &std::iter::once(root).chain(others).collect::<Vec<_>>())
}

#[test]
fn modules_that_use_those_above_them_are_fine() {
    let till = "use crate::{cart::{self, Cart}, money::Sum};\nfn f(sum: crate::money::Sum) -> super::cart::Cart {}\n";
    assert_eq!(
        problems(&[("till.rs", till), ("cart/mod.rs", "use crate::money;")]),
        [""; 0]
    );
}

#[test]
fn a_use_of_a_module_further_down_is_reported_however_it_is_written() {
    for (path, text) in [
        ("money.rs", "use crate::cart::Cart;"),
        ("money.rs", "use crate::{money::Sum, cart};"),
        ("money.rs", "fn f() { crate::cart::open() }"),
        ("money.rs", "use super::cart;"),
        ("money/sum.rs", "use super::super::cart;"),
        ("money/sum/mod.rs", "use super::super::{cart::Cart};"),
        ("money.rs", "mod inner { use super::super::cart; }"),
        ("money.rs", "macro_rules! m { () => { $crate::cart::open() } }"),
    ] {
        let found = problems(&[(path, text)]);
        let expected = format!("crates/shop/src/{path}:1: money uses cart, which is not below it");
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn paths_inside_a_module_are_its_own_business() {
    let text = "use super::cart;\nuse super::till::Till;\nuse crate::money::other;\nmod inner { use super::till; }";
    assert_eq!(problems(&[("money/sum.rs", text)]), [""; 0]);
}

#[test]
fn a_name_of_the_root_is_reported_since_it_hides_its_layer() {
    for text in ["use crate::Till;", "use super::{Till};", "use crate::*;"] {
        let found = problems(&[("money.rs", text)]);
        assert!(found.len() == 1 && found[0].contains("hides"), "{text}: {found:?}");
    }
}

#[test]
fn tests_comments_and_texts_may_name_anything() {
    let text = "//! See [`crate::till`].\n/// Of [crate::Till].\nconst A: &str = \"crate::till\";\n\
                #[cfg(test)]\nmod tests { use crate::till::Till; }\n#[cfg(test)]\nmod fixtures;\n";
    let files = [
        ("money.rs", text),
        ("money/tests.rs", "use crate::till;"),
        ("money/fixtures.rs", "use crate::till;"),
        ("tests/rounding.rs", "use crate::Till;"),
    ];
    assert_eq!(problems(&files), [""; 0]);
}

#[test]
fn a_module_without_a_row_and_a_row_without_a_module_are_reported() {
    let root = file("lib.rs", "mod money;\nmod cart;\nmod shelf { mod inner; }\n");
    let money = file("money.rs", "use crate::shelf;");
    let found = check(PAGE, &[root, money]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().any(|problem| problem.contains("no row for shelf")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|problem| problem.contains("till, which is no module")),
        "{found:?}"
    );
}

#[test]
fn a_section_of_no_crate_is_reported() {
    assert_eq!(check(PAGE, &[]).len(), 1);
    assert_eq!(check("## Other\n\n### `shop`\n", &[]), [""; 0]);
}
