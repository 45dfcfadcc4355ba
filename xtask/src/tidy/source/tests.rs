use super::*;

fn texts(code: &str) -> Vec<String> {
    let code = code_of(code);
    tokens(&code).iter().map(|token| token.text.to_owned()).collect()
}

#[test]
fn comments_and_the_content_of_literals_are_not_code() {
    let text = "a // crate::x\nb /* crate /* y */ z */ c \"crate::\\\" x\" d 'x' e '\\'' f<'g> r#\"crate \" x\"# h";
    let code = code_of(text);
    assert!(
        !code.contains("crate") && !code.contains('x') && !code.contains('z'),
        "{code}"
    );
    assert_eq!(code.lines().count(), 2);
    for word in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        assert!(texts(text).iter().any(|token| token == word), "{word}: {code}");
    }
}

#[test]
fn a_path_is_words_and_double_colons_with_their_lines() {
    assert_eq!(texts("use crate::a_b;"), ["use", "crate", "::", "a_b", ";"]);
    let code = code_of("a\n\nb");
    assert_eq!(tokens(&code)[1], Token { text: "b", line: 3 });
}

#[test]
fn items_under_cfg_test_are_left_out_to_their_end() {
    let text =
        "#[cfg(test)]\nmod tests;\n#[cfg(test)] pub(crate) use a::{b, c};\n#[cfg(test)]\nfn f() { g(); }\nfn kept() {}";
    let code = code_of(text);
    let tokens = tokens(&code);
    let kept: Vec<&str> = without_tests(&tokens).iter().map(|token| token.text).collect();
    assert_eq!(kept, ["fn", "kept", "(", ")", "{", "}"]);
    assert_eq!(test_modules(&tokens), ["tests"]);
}
