use super::*;

fn name(text: &str) -> SnapshotName {
    SnapshotName::parse(text).expect("valid")
}

/// A directory whose store is a file, which is all that moving it around needs.
fn dir_with_store(content: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join(STORE_DIR)).expect("made");
    fs::write(dir.path().join(STORE_DIR).join("x"), content).expect("written");
    dir
}

fn content(dir: &Path) -> String {
    fs::read_to_string(dir.join(STORE_DIR).join("x")).expect("a store")
}

fn put_next(dir: &Path) {
    let next = dir.join(NEXT_DIR);
    fs::create_dir_all(next.join(STORE_DIR)).expect("made");
    fs::write(next.join(STORE_DIR).join("x"), "new").expect("written");
    fs::write(next.join(WATERMARK_FILE), "new").expect("written");
    fs::write(next.join(ISSUED_FILE), "5\nabove\n").expect("written");
}

#[test]
fn a_replacement_that_was_decided_is_completed_from_every_state_that_a_crash_leaves() {
    // The moves that `complete` makes, in their order.
    let moves: [fn(&Path); 5] = [
        |dir| fs::rename(dir.join(NEXT_DIR).join(WATERMARK_FILE), dir.join(WATERMARK_FILE)).expect("moved"),
        |dir| fs::rename(dir.join(NEXT_DIR).join(ISSUED_FILE), dir.join(ISSUED_FILE)).expect("moved"),
        |dir| fs::rename(dir.join(STORE_DIR), dir.join("old-0")).expect("moved"),
        |dir| fs::rename(dir.join(NEXT_DIR).join(STORE_DIR), dir.join(STORE_DIR)).expect("moved"),
        |dir| fs::remove_dir(dir.join(NEXT_DIR)).expect("removed"),
    ];
    for done in 0..=moves.len() {
        let dir = dir_with_store("old");
        put_next(dir.path());
        moves[..done].iter().for_each(|act| act(dir.path()));
        complete(dir.path()).expect("completed");
        assert_eq!(content(dir.path()), "new", "after {done} moves");
        assert_eq!(
            fs::read_to_string(dir.path().join(WATERMARK_FILE)).expect("there"),
            "new"
        );
        let issued = Issued::read(dir.path()).expect("readable").expect("there");
        assert_eq!((issued.lsn, issued.above.as_str()), (Lsn(5), "above"));
        assert!(!dir.path().join(NEXT_DIR).exists());
        sweep_old(dir.path());
        assert!(!dir.path().join("old-0").exists());
    }
}

#[test]
fn a_replacement_that_was_not_decided_changes_nothing() {
    let dir = dir_with_store("old");
    put_next(dir.path());
    fs::rename(dir.path().join(NEXT_DIR), dir.path().join(INCOMING_DIR)).expect("moved");
    complete(dir.path()).expect("nothing to do");
    assert_eq!(content(dir.path()), "old");
    discard_undecided(dir.path()).expect("moved aside");
    sweep_old(dir.path());
    assert!(!dir.path().join(INCOMING_DIR).exists());
}

#[test]
fn issued_numbers_are_there_until_they_are_forgotten() {
    let dir = dir_with_store("old");
    let issued = Issued {
        lsn: Lsn(7),
        above: r#"{"a":1}"#.to_owned(),
    };
    fs::create_dir(dir.path().join(INCOMING_DIR)).expect("made");
    let position = Position {
        numbers: Numbers::default(),
        time: UnixMillis(3),
    };
    install(dir.path(), position, &issued, &Steps::default()).expect("installed");
    assert_eq!(Issued::read(dir.path()).expect("readable"), Some(issued));
    Issued::forget(dir.path()).expect("removed");
    Issued::forget(dir.path()).expect("removed before");
    assert_eq!(Issued::read(dir.path()).expect("readable"), None);
}

#[test]
fn a_name_has_the_content_that_was_published_last_and_others_are_swept() {
    let dir = dir_with_store("x");
    let steps = Steps::default();
    let first = draft(dir.path(), &name("base"), &steps).expect("a draft");
    assert!(list(dir.path()).expect("readable").is_empty(), "a draft is no snapshot");
    publish(dir.path(), &name("base"), first, "one", &steps).expect("published");
    let second = draft(dir.path(), &name("base"), &steps).expect("a draft");
    assert_ne!(first, second);
    publish(dir.path(), &name("base"), second, "two", &steps).expect("published");
    let unfinished = draft(dir.path(), &name("other"), &steps).expect("a draft");
    sweep(dir.path());
    let kept = list(dir.path()).expect("readable");
    assert_eq!(kept.iter().map(|kept| kept.about.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!(
        content_of(dir.path(), &name("base")).expect("there"),
        content_dir(dir.path(), second)
    );
    for (number, is_there) in [(first, false), (second, true), (unfinished, false)] {
        assert_eq!(content_dir(dir.path(), number).exists(), is_there, "{number}");
    }
    remove(dir.path(), &name("base")).expect("removed");
    assert!(matches!(
        remove(dir.path(), &name("base")),
        Err(SnapshotError::NotFound(_))
    ));
    sweep(dir.path());
    assert!(!content_dir(dir.path(), second).exists());
}

#[test]
fn there_are_at_most_so_many_and_one_may_still_be_taken_again() {
    let dir = dir_with_store("x");
    let steps = Steps::default();
    for at in 0..MAX_SNAPSHOTS {
        let name = name(&format!("n{at}"));
        let number = draft(dir.path(), &name, &steps).expect("room");
        publish(dir.path(), &name, number, "", &steps).expect("published");
    }
    assert!(matches!(
        draft(dir.path(), &name("more"), &steps),
        Err(SnapshotError::TooMany)
    ));
    draft(dir.path(), &name("n5"), &steps).expect("it takes the place of another");
}
