//! User-defined functions.

use bolide_script::{Functions, Problem, Settings};

use crate::host::{CountingPace, settings};

fn defined(source: &str) -> Functions {
    let mut functions = Functions::new(settings(CountingPace::times(300))).expect("a sandbox");
    assert!(functions.needs("f"));
    functions.define("f", source).expect(source);
    assert!(!functions.needs("f"));
    functions
}

#[test]
fn a_function_is_called_many_times() {
    let functions = defined("function (a, b) { return a + b }");
    for n in 0..100 {
        assert_eq!(functions.call("f", &format!("[{n},1]")), Ok(Some((n + 1).to_string())));
    }
    assert_eq!(functions.call("f", r#"["a"]"#), Ok(Some("\"aundefined\"".to_owned())));
}

#[test]
fn undefined_is_no_result() {
    assert_eq!(defined("function () {}").call("f", "[]"), Ok(None));
    assert_eq!(
        defined("function () { return function () {} }").call("f", "[]"),
        Ok(None)
    );
}

#[test]
fn exceptions_and_limits_end_the_call() {
    let problem = |source: &str| defined(source).call("f", "[]").expect_err(source).problem;
    assert_eq!(
        problem("function () { throw new Error('x') }"),
        Problem::Thrown { number: 0 }
    );
    assert_eq!(problem("function () { getContext() }"), Problem::Thrown { number: 0 });
    assert_eq!(problem("function () { while (true) {} }"), Problem::OutOfTime);
    assert_eq!(
        problem("function () { var a = []; for (;;) a.push([1]) }"),
        Problem::OutOfMemory
    );
    assert_eq!(problem("function f() { return f() }"), Problem::Thrown { number: 0 });
    assert_eq!(
        problem("async function () { while (true) await 0 }"),
        Problem::OutOfTime
    );
}

#[test]
fn a_function_that_does_not_compile_is_not_defined() {
    let mut functions = Functions::new(settings(CountingPace::times(300))).expect("a sandbox");
    assert_eq!(
        functions.define("f", "function (").expect_err("no function").problem,
        Problem::Syntax
    );
    assert!(functions.needs("f"));
    assert_eq!(
        functions.call("f", "[]").expect_err("not defined").problem,
        Problem::Syntax
    );
}

#[test]
fn a_sandbox_needs_some_memory() {
    let mut small: Settings = settings(CountingPace::times(300));
    small.limits.memory_bytes = 10_000;
    assert!(Functions::new(small).is_err_and(|error| error.problem == Problem::OutOfMemory));
}
