#![cfg(unix)]

use std::fs;
use std::path::PathBuf;

use super::*;

const BYTES: usize = 3 * STEP_BYTES as usize + 1;

fn journal_of_some_steps(dir: &Path, number: u64) -> PathBuf {
    let path = journal::path(dir, number);
    fs::write(&path, vec![7; BYTES]).unwrap();
    path
}

fn begin_another(journals: &DeletedJournals, dir: &Path, number: u64) {
    journal_of_some_steps(dir, number);
    journals.note(dir, number);
}

fn wait(journals: &DeletedJournals) {
    let freeing = journals.0.lock().freeing.take();
    freeing.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_deleted_journal_is_cut_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal_of_some_steps(dir.path(), 0);
    let journals = DeletedJournals::default();
    journals.note(dir.path(), 0);
    let other = File::open(&path).unwrap();
    begin_another(&journals, dir.path(), 1);
    assert!(!journals.free(), "it has its name");
    fs::remove_file(&path).unwrap();
    assert_eq!(other.metadata().unwrap().len(), BYTES as u64, "the store frees nothing");
    assert!(journals.free());
    wait(&journals);
    assert_eq!(other.metadata().unwrap().len(), 0);
    assert!(!journals.free(), "nothing is left");
}

#[test]
fn a_journal_with_another_name_keeps_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal_of_some_steps(dir.path(), 4);
    let journals = DeletedJournals::default();
    journals.note(dir.path(), 4);
    begin_another(&journals, dir.path(), 5);
    let backup = dir.path().join("backup");
    fs::hard_link(&path, &backup).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!journals.free());
    assert_eq!(fs::read(&backup).unwrap(), vec![7; BYTES]);
    fs::remove_file(&backup).unwrap();
    assert!(journals.free());
}

#[test]
fn the_newest_journal_is_never_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal_of_some_steps(dir.path(), 0);
    let journals = DeletedJournals::default();
    journals.note(dir.path(), 0);
    let other = File::open(&path).unwrap();
    // The store is still writing to it.
    fs::remove_file(&path).unwrap();
    assert!(!journals.free());
    assert_eq!(other.metadata().unwrap().len(), BYTES as u64);
}

#[test]
fn each_journal_is_open_once_and_few_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let journals = DeletedJournals::default();
    for number in 0..2 * OPEN_JOURNALS as u64 {
        fs::write(journal::path(dir.path(), number), "x").unwrap();
        journals.note(dir.path(), number);
        journals.note(dir.path(), number);
    }
    assert_eq!(journals.0.lock().journals.len(), OPEN_JOURNALS);
    journals.note(dir.path(), 1_000);
    assert_eq!(journals.0.lock().journals.len(), OPEN_JOURNALS, "there is no such file");
}
