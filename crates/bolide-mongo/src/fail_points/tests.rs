use super::*;

fn find_fails() -> FailCommand {
    FailCommand {
        commands: vec!["find".to_owned()],
        error_code: Some(11600),
        ..FailCommand::default()
    }
}

fn applied(mode: Mode) -> Vec<bool> {
    let points = FailPoints::default();
    points.command.set(Some((mode, find_fails())));
    (0..3).map(|_| points.take("find", "", "db.c").is_some()).collect()
}

#[test]
fn modes() {
    assert_eq!(applied(Mode::AlwaysOn), [true, true, true]);
    assert_eq!(applied(Mode::Times(2)), [true, true, false]);
    assert_eq!(applied(Mode::Times(0)), [false, false, false]);
    assert_eq!(applied(Mode::Skip(2)), [false, false, true]);
    assert_eq!(applied(Mode::Probability(0.0)), [false, false, false]);
    assert_eq!(applied(Mode::Probability(1.0)), [true, true, true]);
}

#[test]
fn it_applies_to_the_named_commands_applications_and_namespaces() {
    let points = FailPoints::default();
    assert!(points.take("find", "app", "db.c").is_none());
    let fail_command = FailCommand {
        application: Some("app".to_owned()),
        namespace: Some("db.c".to_owned()),
        ..find_fails()
    };
    points.command.set(Some((Mode::AlwaysOn, fail_command)));
    assert!(points.take("insert", "app", "db.c").is_none());
    assert!(points.take("find", "other", "db.c").is_none());
    assert!(points.take("find", "app", "db.d").is_none());
    let found = points.take("find", "app", "db.c").expect("it applies");
    assert_eq!(found.error().expect("an error").code, Code(11600));
    assert_eq!(points.command.set(None), 1);
    assert!(points.take("find", "app", "db.c").is_none());
}

#[test]
fn what_the_next_use_would_do_is_not_a_use() {
    let point = FailPoint::default();
    assert_eq!(point.next(), None);
    point.set(Some((Mode::Skip(1), 7)));
    assert_eq!((point.next(), point.take()), (None, None));
    assert_eq!((point.next(), point.next(), point.take()), (Some(7), Some(7), Some(7)));
    assert_eq!(point.set(Some((Mode::Times(1), 8))), 1);
    assert_eq!((point.next(), point.take(), point.next()), (Some(8), Some(8), None));
}
