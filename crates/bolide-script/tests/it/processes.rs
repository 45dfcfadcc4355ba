//! Scripts in processes: whatever they do, they end, and the next one can run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_script::{
    Cancel, Finished, Grant, Hosting, Hosts, Limits, Operation, OperationError, Problem, Reply, ScriptError,
};
use serde_json::{Value, json};

use crate::host::{Echo, NOW_MS, procedure};

/// Scripts that stay inside a built-in function of the engine, or try to.
const STUCK: [&str; 12] = [
    "var s = 'a'.repeat(2 ** 21), t = 'b' + 'a'.repeat(400); for (;;) s.lastIndexOf(t)",
    "Array.prototype.fill.call(new Array(1e7), 0); for (;;) new Uint8Array(3e7).fill(1).sort((a, b) => b - a)",
    "for (;;) new Float64Array(4e6).map((_, i) => -i).sort()",
    "var a = []; a.length = 2 ** 32 - 1; for (;;) { a.indexOf(1); a.includes(2); a.lastIndexOf(3) }",
    "for (;;) console.log('x'.repeat(2e7))",
    "var n = 3n ** 1000000n; for (;;) n * n",
    "var n = 7n ** 2000000n; for (;;) n.toString()",
    "var o = []; for (var i = 0; i < 1e5; i++) o.push({a: [i]}); for (;;) JSON.stringify(o)",
    "for (;;) 'ä'.repeat(1e6).normalize('NFD').localeCompare('a'.repeat(1e6))",
    "getContext().getResponse().setBody({toJSON() { for (;;); }})",
    "getContext().getResponse().setBody({get a() { for (;;) 'x'.padStart(2e7).split('') }})",
    "/^(a+)+$/.test('a'.repeat(64) + 'b')",
];

fn hosts() -> Hosts {
    let hosting = Hosting::Processes {
        program: PathBuf::from(env!("CARGO_BIN_EXE_test-script-host")),
        arguments: vec![],
    };
    Hosts::new(hosting, 1, Monotonic::system())
}

fn grant(time: Duration) -> Grant {
    Grant {
        limits: Limits::default(),
        random_seed: 7,
        now_ms: NOW_MS,
        is_clock_running: false,
        time,
        cancel: Cancel::default(),
    }
}

/// Long enough for scripts that end by themselves.
const LONG: Duration = Duration::from_secs(60);
/// For scripts that do not.
const SHORT: Duration = Duration::from_millis(50);

fn run(hosts: &Hosts, rest: &str, grant: &Grant) -> Result<Finished, ScriptError> {
    let call = procedure(&format!("function (a) {{ {rest} }}"), "[41]");
    hosts.run(&call, grant, &mut Echo { accepted: usize::MAX })
}

fn body(hosts: &Hosts, rest: &str) -> Value {
    let finished = run(hosts, rest, &grant(LONG)).unwrap_or_else(|error| panic!("{rest}: {error}"));
    serde_json::from_str(&finished.body.expect("a body")).expect("a body is JSON")
}

/// The flag of files that a new process does not inherit.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

fn is_running(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[test]
fn a_script_sees_what_it_would_see_on_a_thread() {
    let hosts = hosts();
    let source = "console.log('to', a); var r = getContext().getResponse(), c = getContext().getCollection(); r.setBody([a + 1, Date.now()]); \
        c.createDocument(c.getSelfLink(), {id: 'x'}, function (e, d) { r.setBody([d.id, a + 1, Date.now()]) })";
    let finished = run(&hosts, source, &grant(LONG)).expect("it ends well");
    assert_eq!(finished.body, Some(format!(r#"["x",42,{NOW_MS}]"#)));
    assert_eq!(finished.log, "to 41");
    let error = run(&hosts, "throw new Error(409, 'why')", &grant(LONG)).expect_err("it throws");
    assert_eq!(error.problem, Problem::Thrown { number: 409 });
    assert!(error.message.contains("why"), "{error}");
    let error = run(&hosts, "}", &grant(LONG)).expect_err("no JavaScript");
    assert_eq!(error.problem, Problem::Syntax);
}

#[test]
fn no_script_outlives_its_time_and_scripts_run_afterwards() {
    let hosts = hosts();
    for source in STUCK {
        let error = run(&hosts, source, &grant(SHORT)).expect_err(source);
        // Some are ended by this limit because they use too much memory.
        assert!(
            matches!(
                error.problem,
                Problem::OutOfTime | Problem::OutOfMemory | Problem::Thrown { .. }
            ),
            "{source}: {error:?}"
        );
        assert_eq!(
            body(&hosts, "getContext().getResponse().setBody(a)"),
            json!(41),
            "{source}"
        );
    }
}

#[test]
fn a_stuck_script_is_ended_however_often_it_is_run() {
    let hosts = hosts();
    for _ in 0..10 {
        let error = run(&hosts, STUCK[0], &grant(SHORT)).expect_err("it never ends");
        assert_eq!(error.problem, Problem::OutOfTime);
        assert!(hosts.process_ids().len() <= 1, "what was ended is gone");
    }
    assert_eq!(body(&hosts, "getContext().getResponse().setBody(1)"), json!(1));
}

#[test]
fn memory_and_recursion_end_a_script_only() {
    let hosts = hosts();
    for source in [
        "var all = []; for (;;) all.push(new Uint8Array(1e6))",
        "(function deep() { deep() })()",
        "var s = 'x'; for (;;) s += s",
        "var a = []; a[0] = a; a.flat(Infinity)",
        "JSON.parse('['.repeat(1e6))",
        "throw new Error('x'.repeat(3e7))",
    ] {
        let error = run(&hosts, source, &grant(LONG)).expect_err(source);
        assert!(
            matches!(error.problem, Problem::OutOfMemory | Problem::Thrown { .. }),
            "{source}: {error:?}"
        );
        assert!(error.message.len() <= 64 * 1024, "{source}");
        assert_eq!(
            body(&hosts, "getContext().getResponse().setBody(1)"),
            json!(1),
            "{source}"
        );
    }
}

#[test]
fn an_operation_that_is_too_large_is_refused_and_the_script_continues() {
    let hosts = hosts();
    let source = "var c = getContext().getCollection(); \
        c.createDocument(c.getSelfLink(), {id: 'x'.repeat(9e6)}, function (e) { getContext().getResponse().setBody(e.number) })";
    assert_eq!(body(&hosts, source), json!(413));
}

#[test]
fn a_cancelled_script_is_ended_at_once() {
    let hosts = Arc::new(hosts());
    let grant = grant(Duration::from_secs(100_000));
    let running = std::thread::spawn({
        let (hosts, grant) = (hosts.clone(), grant.clone());
        move || run(&hosts, STUCK[0], &grant)
    });
    while hosts.process_ids().is_empty() {
        std::thread::yield_now();
    }
    grant.cancel.cancel();
    let error = running.join().expect("no panic").expect_err("it was cancelled");
    assert_eq!(error.problem, Problem::OutOfTime);
    assert_eq!(body(&hosts, "getContext().getResponse().setBody(1)"), json!(1));
}

#[test]
fn closing_ends_running_and_idle_processes_and_starts_none() {
    let hosts = Arc::new(hosts());
    body(&hosts, "getContext().getResponse().setBody(1)");
    let resting = hosts.process_ids();
    assert_eq!(resting.len(), 1, "one is kept for the next script");
    let running = std::thread::spawn({
        let hosts = hosts.clone();
        move || run(&hosts, STUCK[0], &grant(Duration::from_secs(100_000)))
    });
    let busy = loop {
        // The idle process is used first, so a second script needs another.
        let (one, other) = (hosts.functions(&grant(LONG)), hosts.process_ids());
        drop(one);
        if other.len() > 1 {
            break other;
        }
    };
    hosts.close();
    assert_eq!(
        running.join().expect("no panic").expect_err("it was ended").problem,
        Problem::OutOfTime
    );
    for process in resting.into_iter().chain(busy) {
        assert!(!is_running(process), "{process}");
    }
    let error = run(&hosts, "", &grant(LONG)).expect_err("it is closed");
    assert_eq!(error.problem, Problem::Unavailable);
}

#[test]
fn a_process_that_was_ended_by_others_is_replaced() {
    let hosts = hosts();
    body(&hosts, "getContext().getResponse().setBody(1)");
    let resting = hosts.process_ids()[0];
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &resting.to_string()])
        .status()
        .expect("kill can be run");
    assert!(killed.success());
    // Over when its last thread has ended.
    let threads = || std::fs::read_dir(format!("/proc/{resting}/task")).map_or(0, Iterator::count);
    let stat = || std::fs::read_to_string(format!("/proc/{resting}/stat")).unwrap_or_default();
    while threads() > 1 || !stat().contains(") Z ") {
        std::thread::yield_now();
    }
    assert_eq!(body(&hosts, "getContext().getResponse().setBody(2)"), json!(2));
}

#[test]
fn a_process_inherits_nothing_and_gives_up_rights_that_it_does_not_need() {
    let hosts = hosts();
    body(&hosts, "getContext().getResponse().setBody(1)");
    let process = PathBuf::from(format!("/proc/{}", hosts.process_ids()[0]));
    let read = |name: &str| std::fs::read_to_string(process.join(name)).expect("proc can be read");
    assert_eq!(read("environ"), "");
    assert_eq!(
        std::fs::read_link(process.join("cwd")).expect("a directory"),
        Path::new("/")
    );
    for file in std::fs::read_dir(process.join("fd")).expect("files are listed") {
        let number = file.expect("a file").file_name().to_string_lossy().into_owned();
        // Files that the parent of the test process left open are not ours.
        let ours = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = ours.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        let is_from_outside = flags.is_some_and(|flags| flags & CLOSE_ON_EXEC == 0);
        assert!(
            ["0", "1", "2"].contains(&&number[..]) || is_from_outside,
            "{number}: {ours}"
        );
    }
    assert!(read("status").contains("NoNewPrivs:\t1"), "{}", read("status"));
    let limits = read("limits");
    for (name, soft, hard) in [
        ("Max core file size", "0", "0"),
        ("Max file size", "0", "0"),
        ("Max open files", "16", "16"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).expect(name);
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        assert_eq!(words[..2], [soft, hard], "{line}");
    }
}

#[test]
fn functions_share_a_process_and_each_call_has_its_time() {
    let hosts = hosts();
    let mut functions = hosts.functions(&grant(Duration::ZERO)).expect("a process");
    for n in 0..100 {
        let result = functions.call("f", "function (a, b) { return a + b }", &format!("[{n},1]"), LONG);
        assert_eq!(result, Ok(Some((n + 1).to_string())));
    }
    assert_eq!(functions.call("u", "function () {}", "[]", LONG), Ok(None));
    let error = functions.call("g", "function (", "[]", LONG).expect_err("no function");
    assert_eq!(error.problem, Problem::Syntax);
    let large = "function () { return 'x'.repeat(5e6) }";
    let large = functions.call("l", large, "[]", LONG).expect_err("5 MB");
    assert_eq!(large.problem, Problem::TooLarge);
    assert_eq!(
        functions.call("f", "", "[1,2]", LONG),
        Ok(Some("3".to_owned())),
        "it is known"
    );
    let endless = functions.call("h", "function () { for (;;); }", "[]", SHORT);
    assert_eq!(endless.expect_err("endless").problem, Problem::OutOfTime);
    drop(functions);
    assert_eq!(hosts.process_ids().len(), 1, "kept for the next");

    let stuck = format!("function () {{ {} }}", STUCK[0]);
    let mut functions = hosts.functions(&grant(LONG)).expect("a process");
    let error = functions.call("s", &stuck, "[]", SHORT).expect_err("stuck");
    assert_eq!(error.problem, Problem::OutOfTime);
    assert!(
        functions.call("f", "function () {}", "[]", LONG).is_err(),
        "its process is gone"
    );
    drop(functions);
    assert!(hosts.process_ids().is_empty(), "and not kept");
}

/// A program that does not speak the protocol.
fn wrong_program(script: &str) -> ScriptError {
    let hosting = Hosting::Processes {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), script.into()],
    };
    run(&Hosts::new(hosting, 1, Monotonic::system()), "", &grant(LONG)).expect_err(script)
}

#[test]
fn a_process_that_breaks_the_protocol_is_ended() {
    for script in [
        "exit 3",
        "kill -SEGV $$",
        "printf 'nonsense, and much of it'; sleep 100",
        "printf '\\377\\377\\377\\377'; sleep 100",
        "printf '\\000\\000\\000\\001\\377'; sleep 100",
        // The answer to a question that was not asked.
        "printf '\\000\\000\\000\\002\\004\\000'; sleep 100",
    ] {
        let error = wrong_program(script);
        assert_eq!(error.problem, Problem::Crashed, "{script}: {error}");
    }
}

#[test]
fn without_a_process_a_script_is_refused() {
    let hosting = Hosting::Processes {
        program: PathBuf::from("/nowhere/bolide"),
        arguments: vec![],
    };
    for hosting in [hosting, Hosting::None] {
        let error = run(&Hosts::new(hosting, 1, Monotonic::system()), "", &grant(LONG)).expect_err("nothing runs it");
        assert_eq!(error.problem, Problem::Unavailable, "{error}");
    }
}

#[test]
fn invalid_operations_are_refused_by_the_host() {
    /// Must not be called.
    struct Never;
    impl bolide_script::Host for Never {
        fn accepts(&mut self) -> bool {
            true
        }
        fn operate(&mut self, operation: Operation) -> Result<Reply, OperationError> {
            panic!("{operation:?}");
        }
    }
    // An operation with the text `x`, and then an end.
    let script = "printf '\\000\\000\\000\\006\\001\\000\\000\\000\\001x'; head -c 10 >/dev/null; exit 0";
    let hosting = Hosting::Processes {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), script.into()],
    };
    let call = procedure("function () {}", "[]");
    let error = Hosts::new(hosting, 1, Monotonic::system())
        .run(&call, &grant(LONG), &mut Never)
        .expect_err("it ends");
    assert_eq!(error.problem, Problem::Crashed);
}
