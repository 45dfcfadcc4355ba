//! Scripts that exceed their limits. Each must end with the right reason, and must not affect the next one.

use bolide_script::{Problem, run};
use serde_json::json;

use crate::host::{CountingPace, Echo, body, execute, procedure, settings};

/// The problem of a script that runs until the pace ends it, which is asked every few thousand steps.
fn problem(source: &str) -> Problem {
    run(
        &procedure(source, "[]"),
        settings(CountingPace::times(300)),
        Echo { accepted: usize::MAX },
    )
    .expect_err(source)
    .problem
}

#[test]
fn endless_loops_run_out_of_time() {
    for source in [
        "function () { while (true) {} }",
        "function () { for (;;) { try { while (true) {} } catch (e) {} finally { continue } } }",
        "function () { getContext().getCollection().createDocument(getContext().getCollection().getSelfLink(), {id: 'a'}, function () { while (true) {} }) }",
        "function () { (function next() { getContext().getCollection().createDocument(getContext().getCollection().getSelfLink(), {id: 'a'}, next) })() }",
        "async function () { while (true) await 0 }",
        "function () { (function next() { Promise.resolve().then(next) })() }",
        "function () { throw { get message() { while (true) {} } } }",
        "function () { getContext().getResponse().setBody({ toJSON() { while (true) {} } }) }",
        "function () { JSON.stringify = JSON.parse = null; Array.prototype.push = null; while (true) {} }",
        "(function () { while (true) {} })(), function () {}",
        "function () { Object.prototype.toString = Array.isArray = function () { while (true) {} }; [1].concat([2]); while (true) {} }",
    ] {
        assert_eq!(problem(source), Problem::OutOfTime, "{source}");
    }
}

#[test]
fn regular_expressions_run_out_of_time() {
    assert_eq!(
        problem("function () { /^(a+)+$/.test('a'.repeat(64) + 'b') }"),
        Problem::OutOfTime
    );
    assert_eq!(
        problem("function () { for (;;) 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.replace(/(a|aa)+$/g, '') }"),
        Problem::OutOfTime
    );
}

#[test]
fn huge_allocations_run_out_of_memory() {
    for source in [
        "function () { var all = []; for (;;) all.push('x'.repeat(1000) + all.length) }",
        "function () { var s = 'x'; for (;;) s += s + '!' }",
        "function () { return new ArrayBuffer(1e9) }",
        "function () { return new Array(1e8).fill({}) .map(() => ({})) }",
        "function () { 'x'.repeat(5e8).split('') }",
        "function () { JSON.stringify(new Array(4e9)) }",
    ] {
        let error = execute(source).expect_err(source);
        assert!(
            matches!(error.problem, Problem::OutOfMemory | Problem::Thrown { .. }),
            "{source}: {error}"
        );
    }
    assert_eq!(
        execute("function () { var all = []; for (;;) all.push([all.length]) }")
            .expect_err("too much")
            .problem,
        Problem::OutOfMemory
    );
}

#[test]
fn deep_recursion_is_an_exception() {
    for source in [
        "function deep() { deep() }",
        "function () { var o = {}; for (var i = 0; i < 1e5; i++) o = {o}; JSON.stringify(o) }",
        "function () { JSON.parse('['.repeat(1e6)) }",
        "function () { new RegExp('('.repeat(1e6)) }",
        "function () { eval('['.repeat(1e6)) }",
        "function () { var a = []; a[0] = a; a.flat(Infinity) }",
    ] {
        assert!(
            matches!(
                execute(source).expect_err(source).problem,
                Problem::Thrown { .. } | Problem::Syntax
            ),
            "{source}"
        );
    }
}

#[test]
fn loops_inside_the_engine_are_short_or_interruptible() {
    for call in [
        "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
        "Array.prototype.includes.call({get length() { return 2 ** 53 - 1 }}, 1)",
        "Array.prototype.join.call({length: 2 ** 53 - 1}, '')",
        "Array.prototype.slice.call({length: 2 ** 53 - 1})",
        "Array.prototype.fill.call({length: 2 ** 53 - 1}, 0)",
        "Array.prototype.reverse.call({length: 2 ** 53 - 1})",
        "Array.prototype.sort.call({length: 2 ** 53 - 1})",
        "Array.prototype.unshift.call({length: 2 ** 53 - 10}, 0)",
        "Array.prototype.copyWithin.call({length: 2 ** 53 - 1}, 1, 0)",
        "Array.prototype.reduce.call({length: 2 ** 53 - 1}, () => 0)",
        "new Array(4e9).join('')",
        "new Array(4e9).reverse()",
        "new Array(4e9).sort()",
        "new Array(4e9).indexOf(1)",
        "[new Array(4e9)].flat()",
        "[].concat(new Array(4e9))",
        "[].concat({length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true}).length === 1 && fail()",
        "'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b')",
        "'a'.repeat(4e6).split('a'.repeat(2e6) + 'b')",
        "(2n ** 1000000n) ** 1000n",
    ] {
        let source = format!("function () {{ {call} }}");
        let error = run(
            &procedure(&source, "[]"),
            settings(CountingPace::times(300)),
            Echo { accepted: 0 },
        )
        .expect_err(call);
        assert!(
            matches!(
                error.problem,
                Problem::Thrown { .. } | Problem::OutOfTime | Problem::OutOfMemory
            ),
            "{call}: {error}"
        );
    }
}

#[test]
fn nothing_outside_can_be_reached() {
    for name in [
        "require",
        "process",
        "std",
        "os",
        "Deno",
        "fetch",
        "XMLHttpRequest",
        "setTimeout",
        "setInterval",
        "Worker",
        "WebAssembly",
        "Atomics",
        "SharedArrayBuffer",
        "performance",
        "Proxy",
        "WeakRef",
        "FinalizationRegistry",
        "native",
        "setup",
        "print",
        "load",
        "scriptArgs",
        "gc",
    ] {
        assert_eq!(
            body(&format!(
                "function () {{ getContext().getResponse().setBody(typeof {name}) }}"
            )),
            json!("undefined"),
            "{name}"
        );
    }
    let import =
        "async function () { try { await import('os') } catch (e) { getContext().getResponse().setBody('refused') } }";
    assert_eq!(body(import), json!("refused"));
}

#[test]
fn games_with_prototypes_harm_only_the_script_itself() {
    for source in [
        "function () { Object.prototype.error = {number: 1}; Object.prototype.kind = 'delete'; var c = getContext().getCollection(); \
            c.createDocument(c.getSelfLink(), {id: 'a'}, function (e, d) {}) }",
        "function () { Object.freeze(Object.prototype); Object.freeze(Array.prototype); delete globalThis.JSON; getContext().getResponse().setBody(1) }",
        "function () { globalThis.getContext = null; globalThis.__ = null; globalThis.console = null; globalThis.Error = null; Map.prototype.get = null }",
        "function () { Object.defineProperty(Object.prototype, 'then', { get() { throw new Error('x') } }); return {} }",
        "function () { __proto__ = null; Function.prototype.call = Function.prototype.apply = null }",
    ] {
        // It may succeed or fail; it must end, and must not affect the next script.
        let _ = run(
            &procedure(source, "[]"),
            settings(CountingPace::times(300)),
            Echo { accepted: 10 },
        );
        assert_eq!(
            body(
                "function () { getContext().getResponse().setBody([typeof JSON, typeof Error, ({}).kind === undefined]) }"
            ),
            json!(["object", "function", true]),
            "{source}"
        );
    }
}

#[test]
fn a_body_may_not_grow_beyond_its_limit() {
    let source = "function () { getContext().getResponse().setBody({a: 'x'.repeat(1.5e6), b: 'x'.repeat(1.5e6)}) }";
    assert_eq!(execute(source).expect_err("too large").problem, Problem::TooLarge);
    let appended = execute("function () { for (;;) getContext().getResponse().appendBody('x'.repeat(1e5)) }")
        .expect_err("too large");
    assert_eq!(appended.problem, Problem::Thrown { number: 413 });
}

#[test]
fn texts_that_are_not_unicode_are_accepted() {
    assert_eq!(
        body(
            "function () { getContext().getResponse().setBody({lone: '\\ud800'.length, whole: '\\ud83d\\ude00'}); console.log('\\ud800') }"
        ),
        json!({"lone": 1, "whole": "\u{1F600}"})
    );
}
