use super::*;

/// A function of `lines` lines, with text above it.
fn function(above: &str, lines: usize) -> String {
    format!(
        "struct S;\n\n{above}pub async fn f(s: [u8; 4]) {{\n{}}}\n",
        "    g();\n".repeat(lines - 2)
    )
}

fn found(text: String) -> Vec<LongFunction> {
    let path = "src/a.rs".to_owned();
    long_ones(&TextFile { path, text })
}

#[test]
fn a_function_is_limited_in_length() {
    assert_eq!(found(function("", LINES_LIMIT)), []);
    let long = found(function("", LINES_LIMIT + 1));
    let expected = LongFunction {
        name: "f".to_owned(),
        line: 3,
        lines: LINES_LIMIT + 1,
    };
    assert_eq!(long, [expected]);
}

#[test]
fn a_longer_one_gives_its_reason_right_above() {
    let reason = "// Long: one arm for each kind.\n";
    let attribute = "#[expect(\n    lint,\n    reason = \"}\"\n)]\n";
    for above in [reason.to_owned(), format!("/// Does.\n{reason}{attribute}")] {
        assert_eq!(found(function(&above, 100)), [], "{above}");
    }
    for above in [
        "// Long: \n",
        "// Long: of another.\n\n",
        "// Long: of another.\nfn g() {}\n",
        "// Longer: x\n",
    ] {
        assert_eq!(found(function(above, 100)).len(), 1, "{above}");
    }
}

#[test]
fn types_of_functions_and_functions_without_a_body_have_no_length() {
    let text = format!(
        "type F = fn(u8) -> u8;\ntrait T {{\n    fn f();\n{}}}\n",
        "    const A: u8 = 1;\n".repeat(100)
    );
    assert_eq!(found(text), []);
}

#[test]
fn tests_may_be_as_long_as_they_need() {
    let long = function("", 100);
    assert_eq!(found(format!("#[cfg(test)]\nmod tests {{\n{long}}}\n")), []);
}
