use std::time::Duration;

use super::*;

fn begun(namespace: &str) -> Begun {
    Begun {
        user: None,
        session: None,
        command: "find",
        namespace: namespace.to_owned(),
        connection: 7,
        client: Arc::from("127.0.0.1:5"),
        application: Arc::from("tests"),
    }
}

#[test]
fn a_command_is_listed_while_it_runs() {
    let operations = Arc::new(Operations::new(Monotonic::manual()));
    let (a, b) = (operations.begin(begun("db.a")), operations.begin(begun("db.b")));
    let listed = || {
        operations
            .all()
            .iter()
            .map(|operation| operation.namespace.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["db.a", "db.b"]);
    drop(a);
    assert_eq!(listed(), ["db.b"]);
    drop(b);
    assert!(listed().is_empty());
}

#[test]
fn a_command_ends_when_it_is_killed_or_late() {
    let clock = Monotonic::manual();
    let operations = Arc::new(Operations::new(clock.clone()));
    let (a, b) = (operations.begin(begun("db.a")), operations.begin(begun("db.b")));
    let deadline = clock.now() + Duration::from_millis(10);
    let (of_a, of_b) = (a.interrupt(None), b.interrupt(Some(deadline)));
    assert!(of_a.check(1).is_ok() && of_b.check(1).is_ok());
    operations.kill(operations.all()[0].id);
    operations.kill(999);
    clock.advance(Duration::from_millis(10));
    let code = |interrupt: &Arc<dyn Interrupt>| interrupt.check(1).expect_err("it ends").code.0;
    assert_eq!((code(&of_a), code(&of_b)), (11601, 50));
}
