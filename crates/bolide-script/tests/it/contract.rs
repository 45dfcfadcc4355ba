//! `getContext()` for stored procedures and triggers. Source: cosmos-rest §11.3.

use bolide_script::{Call, Kind, Problem, run};
use serde_json::json;

use crate::host::{ALT_LINK, CountingPace, Echo, NOW_MS, SELF_LINK, body, execute, procedure, settings};

/// The start of most scripts.
const START: &str = "var x = getContext(), r = x.getResponse(), c = x.getCollection(), l = c.getSelfLink();";

fn script(rest: &str) -> String {
    format!("function () {{ {START} {rest} }}")
}

#[test]
fn the_response_begins_as_an_empty_text_and_grows() {
    assert_eq!(body("function () {}"), json!(""));
    assert_eq!(
        body(&script("for (var i = 0; i < 10; i++) r.appendValue('Body', i);")),
        json!("0123456789")
    );
    assert_eq!(body(&script("r.setBody(4); r.appendBody(3);")), json!(7));
    assert_eq!(body(&script("r.setBody(null); r.appendBody({a: 1});")), json!({"a": 1}));
}

#[test]
fn a_body_may_be_any_json_or_undefined() {
    assert_eq!(
        body(&script("r.setBody({a: [1, 'x', null]});")),
        json!({"a": [1, "x", null]})
    );
    assert_eq!(execute(&script("r.setBody(undefined);")).expect("it ends").body, None);
}

#[test]
fn properties_that_are_not_there_or_not_writable_are_refused_by_number() {
    assert_eq!(
        body(&script(
            "try { r.setValue('Other', 1) } catch (e) { r.setBody([e.number, e.message]) }"
        ))[0],
        json!(400)
    );
    assert_eq!(
        body(&script(
            "try { x.getRequest().setValue('Body', 1) } catch (e) { r.setBody([e.number, e.message]) }"
        )),
        json!([403, "Not a writable property: Body"])
    );
    let large = "try { r.setBody('x'.repeat(3e6)) } catch (e) { r.setBody(e.number) }";
    assert_eq!(body(&script(large)), json!(413));
}

#[test]
fn arguments_are_passed_and_the_request_has_their_text() {
    let call = procedure(
        "function (a, b) { getContext().getResponse().setBody([a.t, b, getContext().getRequest().getBody()]); }",
        r#"[{"t":"so"},2]"#,
    );
    let finished = run(&call, settings(CountingPace::times(1_000)), Echo { accepted: 0 }).expect("it ends");
    assert_eq!(finished.body.expect("a body"), r#"["so",2,"[{\"t\":\"so\"},2]"]"#);
}

#[test]
fn callbacks_come_after_the_script_has_returned_and_in_order() {
    let source = script(
        "var seen = []; c.createDocument(l, {id: 'a'}, function (e, d) { seen.push(d.id); r.setBody(seen); }); \
        c.createDocument(l, {id: 'b'}, function (e, d) { seen.push(d.id); r.setBody(seen); }); seen.push('main');",
    );
    assert_eq!(body(&source), json!(["main", "a", "b"]));
}

#[test]
fn a_refused_operation_reaches_its_callback_or_ends_the_script() {
    let replace = "c.replaceDocument(l + 'docs/x/', {id: 'x'}";
    assert_eq!(
        body(&script(&format!(
            "{replace}, function (e) {{ r.setBody([e.number, e.body]) }});"
        ))),
        json!([412, "another version"])
    );
    let error = execute(&script(&format!("{replace});"))).expect_err("nobody catches it");
    assert_eq!(error.problem, Problem::Thrown { number: 412 });
    assert!(
        error
            .message
            .contains("Encountered exception while executing Javascript"),
        "{error}"
    );
    assert!(error.message.contains("another version"), "{error}");
}

#[test]
fn documents_are_named_by_either_link() {
    for (link, target) in [
        ("l + 'docs/RID==/'", r#"Rid("RID==")"#),
        ("c.getAltLink() + '/docs/my id'", r#"Id("my id")"#),
    ] {
        assert_eq!(
            body(&script(&format!(
                "c.readDocument({link}, function (e, d) {{ r.setBody(d) }});"
            ))),
            json!(target)
        );
    }
    for link in ["'dbs/other/colls/c/docs/x'", "l", "null", "{}"] {
        let source = script(&format!(
            "try {{ c.readDocument({link}) }} catch (e) {{ r.setBody(e.number) }}"
        ));
        assert_eq!(body(&source), json!(400), "{link}");
    }
    assert_eq!(
        body(&script("r.setBody([l, c.getAltLink()])")),
        json!([SELF_LINK, ALT_LINK])
    );
}

#[test]
fn a_known_version_is_not_returned() {
    let source = script(
        "c.readDocument(l + 'docs/x', {ifNoneMatch: 'e'}, function (e, d, i) { r.setBody([e === undefined, d === undefined, i.notModified]) });",
    );
    assert_eq!(body(&source), json!([true, true, true]));
}

#[test]
fn queries_take_parameters_and_pages() {
    let source = script(
        "c.queryDocuments(l, {query: 'SELECT @a', parameters: [{name: '@a', value: [1]}]}, function (e, d) { r.setBody(d) });",
    );
    assert_eq!(
        body(&source),
        json!([{"text": "SELECT @a", "parameters": [["@a", [1]]]}])
    );
    let paged = script(
        "c.queryDocuments(l, 'q', {pageSize: 1}, function (e, d, i) { c.queryDocuments(l, 'q', {pageSize: 1, continuation: i.continuation}, \
        function (e, more, i) { r.setBody([d[0].n, more[0].n, i.continuation === undefined]) }) });",
    );
    assert_eq!(body(&paged), json!([3, 1, true]));
    assert_eq!(
        body(&script(
            "try { c.queryDocuments(l, 'q', {pageSize: 0}) } catch (e) { r.setBody(e.number) }"
        )),
        json!(400)
    );
}

#[test]
fn options_and_callbacks_of_the_wrong_kind_are_refused() {
    for arguments in [
        "l, {}, 5",
        "l, {}, {}, 5",
        "l, {}, 'x', function () {}",
        "l, 5",
        "l, '{', {}",
        "l, []",
        "'other', {}",
    ] {
        let source = script(&format!(
            "try {{ c.createDocument({arguments}) }} catch (e) {{ r.setBody(e.number) }}"
        ));
        assert_eq!(body(&source), json!(400), "{arguments}");
    }
}

#[test]
fn operations_are_accepted_for_a_limited_time() {
    let source =
        script("var n = 0; (function next() { if (c.createDocument(l, {id: 'x'}, next)) n++; else r.setBody(n); })();");
    let finished = run(
        &procedure(&source, "[]"),
        settings(CountingPace::times(10_000)),
        Echo { accepted: 3 },
    )
    .expect("it ends by itself");
    assert_eq!(finished.body.as_deref(), Some("3"));
}

#[test]
fn exceptions_end_the_script_wherever_they_are_thrown() {
    for rest in [
        "throw new Error('why')",
        "throw 'why'",
        "throw {message: 'why'}",
        "c.deleteDocument(l + 'docs/x', function () { throw new Error('why') })",
        "Promise.resolve().then(() => c.deleteDocument(l + 'docs/x', () => { throw new Error('why') }))",
    ] {
        let error = execute(&script(rest)).expect_err(rest);
        assert_eq!(error.problem, Problem::Thrown { number: 0 }, "{rest}");
        assert!(error.message.contains("why"), "{rest}: {error}");
    }
    let error = execute("async function () { throw new Error(409, 'late') }").expect_err("a promise that fails");
    assert_eq!(error.problem, Problem::Thrown { number: 409 });
}

#[test]
fn aborting_cannot_be_caught() {
    let error = execute(&script(
        "try { x.abort(new Error(409, 'no')) } catch (e) {} r.setBody('went on');",
    ))
    .expect_err("aborted");
    assert_eq!(error.problem, Problem::Thrown { number: 409 });
}

#[test]
fn an_error_may_have_a_number() {
    let source = script(
        "var e = new Error(404, 'gone'); r.setBody([e.number, e.message, e instanceof Error, new TypeError('t') instanceof Error, String(Error('x'))]);",
    );
    assert_eq!(body(&source), json!([404, "gone", true, true, "Error: x"]));
}

#[test]
fn log_output_is_formatted_and_limited() {
    let log = |rest: &str| execute(&script(rest)).expect("it ends").log;
    assert_eq!(
        log("console.log('The value of %s is %s.', 'x', 1)"),
        "The value of x is 1."
    );
    assert_eq!(log("console.log({a: 1}, 2)"), r#"{"a":1} 2"#);
    assert_eq!(log("for (var i = 0; i < 9999; i++) console.log('é')").len(), 4096);
    let silent = Call {
        is_logging: false,
        ..procedure(&script("console.log('x')"), "[]")
    };
    assert_eq!(
        run(&silent, settings(CountingPace::times(100)), Echo { accepted: 0 })
            .expect("it ends")
            .log,
        ""
    );
}

#[test]
fn a_pre_trigger_changes_the_request_and_has_no_response() {
    let source = "function () { var q = getContext().getRequest(), d = q.getBody(); d.id += 't1'; d.op = q.getOperationType(); q.setBody(d); \
        try { getContext().getResponse() } catch (e) { d.number = e.number } }";
    let call = Call {
        kind: Kind::PreTrigger {
            operation: "Create",
            request: r#"{"id":"DOC1"}"#.to_owned(),
        },
        ..procedure(source, "[]")
    };
    let finished = run(&call, settings(CountingPace::times(100)), Echo { accepted: 0 }).expect("it ends");
    assert_eq!(
        finished.body.as_deref(),
        Some(r#"{"id":"DOC1t1","op":"Create","number":400}"#)
    );
}

#[test]
fn a_post_trigger_sees_both_and_may_change_the_response() {
    let source = "function () { var x = getContext(); x.getResponse().setBody({sent: x.getRequest().getBody().id, stored: x.getResponse().getBody()._ts}); }";
    let kind = Kind::PostTrigger {
        operation: "Create",
        request: r#"{"id":"a"}"#.to_owned(),
        response: r#"{"id":"a","_ts":5}"#.to_owned(),
    };
    let call = Call {
        kind,
        ..procedure(source, "[]")
    };
    let finished = run(&call, settings(CountingPace::times(100)), Echo { accepted: 0 }).expect("it ends");
    assert_eq!(finished.body.as_deref(), Some(r#"{"sent":"a","stored":5}"#));
}

#[test]
fn the_integrated_query_works_on_all_documents() {
    for (query, rows) in [
        (
            "__.filter(function (d) { return d.n > 1 })",
            json!([{"n": 3, "tags": ["x"]}]),
        ),
        ("__.map(function (d) { return d.n })", json!([3, 1])),
        ("__.pluck('n')", json!([3, 1])),
        ("__.chain().pluck('tags').flatten().value()", json!(["x", "y", "z"])),
        (
            "__.chain().sortBy(function (d) { return d.n }).pluck('n').value()",
            json!([1, 3]),
        ),
        (
            "__.chain().sortByDescending(function (d) { return d.n }).map(function (d) { return d.n }).value()",
            json!([3, 1]),
        ),
        (
            "__.unwind(function (d) { return d.tags }, function (d, t) { return t + d.n })",
            json!(["x3", "y1", "z1"]),
        ),
    ] {
        let text = body(&format!(
            "function () {{ if (!{query}.isAccepted) throw new Error('not accepted'); }}"
        ));
        let text = text.as_str().expect("JSON text appended to the body");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(text).expect("JSON"),
            rows,
            "{query}"
        );
    }
    let called = "function () { __.filter(function (d) { return true }, {pageSize: 1}, function (e, d, i) { __.response.setBody([d.length, i.continuation]) }); }";
    assert_eq!(body(called), json!([1, "2"]));
}

#[test]
fn time_is_the_hosts_and_chance_follows_the_seed() {
    assert_eq!(
        body(&script(
            "r.setBody([Date.now(), +new Date(), new Date(5).getTime(), Date.UTC(1970, 0, 1), new Date() instanceof Date])"
        )),
        json!([NOW_MS, NOW_MS, 5, 0, true])
    );
    let chance = script("r.setBody([Math.random(), Math.random()])");
    let drawn = body(&chance);
    assert_eq!(drawn, body(&chance), "the same seed");
    assert_ne!(drawn[0], drawn[1]);
    let other = bolide_script::Settings {
        random_seed: 8,
        ..settings(CountingPace::times(100))
    };
    let other = run(&procedure(&chance, "[]"), other, Echo { accepted: 0 })
        .expect("it ends")
        .body;
    assert_ne!(other, Some(drawn.to_string()));
}

#[test]
fn sources_may_be_expressions_arrows_or_declarations() {
    for source in [
        "function () { getContext().getResponse().setBody(1) }",
        "  function named() { getContext().getResponse().setBody(1) };  ",
        "() => getContext().getResponse().setBody(1) // why not",
        "/* about */ function () { getContext().getResponse().setBody(one()); function one() { return 1 } }",
        "function main() { getContext().getResponse().setBody(one()) } function one() { return 1 }",
        "function () { undeclared = 1; getContext().getResponse().setBody(undeclared) }",
    ] {
        assert_eq!(body(source), json!(1), "{source}");
    }
}

#[test]
fn only_functions_compile() {
    for source in [
        "",
        "function (",
        "Line Separator (\u{2028}) & نیم",
        "42",
        "function () { return ] }",
        "import('x'), 1",
    ] {
        let error = execute(source).expect_err(source);
        assert_eq!(error.problem, Problem::Syntax, "{source}: {error}");
        assert!(
            error
                .message
                .contains("Encountered exception while compiling Javascript."),
            "{error}"
        );
    }
}
