//! Damages the files of a closed store, each in its own copy, and checks the next start.
//!
//! Whatever is damaged: either the server does not start, and gives the reason in one line, or it starts and for every acknowledged item a read
//! returns it or an error. It never panics, and nothing is lost silently.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::{Client, Request, create_container};
use crate::random::Random;
use crate::server::{Server, ServerFiles, Start};
use crate::wire::{expect, keyed, text, user_members, verify};

const CONTAINER: &str = "/dbs/d/colls/c";
const SEED: u64 = 7;
/// Number of copies checked at the same time.
const AT_ONCE: usize = 2;

/// A store that was closed properly, and everything that was acknowledged.
struct Closed {
    root: tempfile::TempDir,
    items: Vec<Value>,
}

/// The effect of a damage.
#[derive(Debug, PartialEq, Eq)]
enum DamageEffect {
    /// The server did not start.
    Refused(String),
    /// It started, and this many reads were errors.
    Errors(usize),
    /// It started, and nothing was missing: the damaged bytes held no data.
    Harmless,
}

impl Closed {
    /// A store with all items in the journal.
    fn small() -> Closed {
        Closed::of(40, 300)
    }

    /// A store with items in tables: closing writes tables from 4 MiB on.
    fn large() -> Closed {
        Closed::of(60, 150_000)
    }

    fn of(items: usize, bytes: u64) -> Closed {
        let root = tempfile::tempdir().expect("a temporary directory");
        let server = ServerFiles::new(root.path()).start();
        let mut client = server.client();
        create_container(&mut client);
        let mut random = Random::new(SEED, bytes);
        let items = (0..items)
            .map(|n| create(&mut client, n, &random_text(&mut random, bytes)))
            .collect();
        server.stop();
        Closed { root, items }
    }

    /// Files with data, relative to the data directory.
    fn files(&self) -> Vec<PathBuf> {
        let files = ServerFiles::new(self.root.path());
        let data = files.data_dir();
        let mut files = files_below(data);
        files.retain(|path| fs::metadata(path).is_ok_and(|found| found.len() > 0));
        // The certificate is not data and can be made again.
        files.retain(|path| {
            path.file_name()
                .is_some_and(|name| !name.to_string_lossy().starts_with("tls-"))
        });
        files.sort();
        files
            .iter()
            .map(|path| path.strip_prefix(data).expect("below it").to_owned())
            .collect()
    }

    fn journal(&self) -> PathBuf {
        let journal = self
            .files()
            .into_iter()
            .find(|path| path.extension().is_some_and(|ending| ending == "jnl"));
        journal.expect("a store has a journal")
    }

    /// Bytes of a file that are in use: the rest of a journal is filled with zeros.
    fn used_bytes(&self, file: &Path) -> u64 {
        let bytes = fs::read(ServerFiles::new(self.root.path()).data_dir().join(file)).expect("readable");
        (bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count()) as u64
    }

    /// Damages a copy and starts a server on it.
    fn effect(&self, what: &str, damage: impl FnOnce(&Path)) -> DamageEffect {
        let root = tempfile::tempdir().expect("a temporary directory");
        let files = ServerFiles::new(root.path());
        copy(ServerFiles::new(self.root.path()).data_dir(), files.data_dir());
        damage(files.data_dir());
        match files.try_start(&[]) {
            Start::Ended { status, stderr } => {
                assert!(!status.success(), "{what}: ended with {status}: {stderr}");
                assert_eq!(stderr.lines().count(), 1, "{what}: not one line: {stderr}");
                assert!(
                    stderr.starts_with("bolide: ") && !stderr.contains("panicked"),
                    "{what}: {stderr}"
                );
                self.check_again(what, &files);
                DamageEffect::Refused(stderr)
            }
            Start::Ready(server) => {
                let effect = self.read_all(what, &server);
                server.assert_no_panic();
                effect
            }
        }
    }

    /// A second start must not lose data silently either, whatever the first one did.
    fn check_again(&self, what: &str, files: &ServerFiles) {
        if let Start::Ready(server) = files.try_start(&[]) {
            let effect = self.read_all(&format!("{what}, started twice"), &server);
            println!("{what}: refused once, then {effect:?}");
        }
    }

    /// Reads what was acknowledged. An item that gives neither a result nor an error is lost silently.
    fn read_all(&self, what: &str, server: &Server) -> DamageEffect {
        let mut client = server.client();
        let mut errors = 0;
        for item in &self.items {
            let id = text(item, "id");
            let response = client.send(&read(item));
            match response.status {
                200 => assert_eq!(
                    &user_members(&response.json()),
                    item,
                    "{what}: other bytes than were written"
                ),
                404 => panic!("{what}: {id} is lost in silence: {}", response.text()),
                _ => {
                    response.expect_error(500);
                    errors += 1;
                }
            }
        }
        let report = expect(
            &mut client,
            &Request::post(&format!("/_bolide{CONTAINER}/verify"), ""),
            &[200, 500],
        );
        if errors > 0 {
            return DamageEffect::Errors(errors);
        }
        match report.status {
            200 if report.json()["ok"] == true => DamageEffect::Harmless,
            200 => panic!("{what}: items are there, and their entries are not: {}", report.text()),
            // The damage is in a queue or an index that reads do not use.
            _ => DamageEffect::Errors(1),
        }
    }

    /// Damages copies in many ways, a few at a time.
    fn effects_of<D: Sync>(
        &self,
        damages: &[D],
        tell: impl Fn(&Closed, &D) -> DamageEffect + Sync,
    ) -> Vec<DamageEffect> {
        let share = damages.len().div_ceil(AT_ONCE).max(1);
        std::thread::scope(|scope| {
            let threads = damages
                .chunks(share)
                .map(|some| scope.spawn(|| some.iter().map(|damage| tell(self, damage)).collect()));
            let threads: Vec<std::thread::ScopedJoinHandle<'_, Vec<DamageEffect>>> = threads.collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("the message is above"))
                .collect()
        })
    }
}

#[test]
fn journal_that_was_cut_off_is_refused() {
    let closed = Closed::small();
    let journal = closed.journal();
    let used = closed.used_bytes(&journal);
    let lengths = [0, 1, 40, used / 3, used / 2, used - 100, used - 1];
    let effect = closed.effects_of(&lengths, |closed, length| {
        closed.effect(&format!("the journal cut to {length} of {used} bytes"), |data| {
            cut(&data.join(&journal), *length);
        })
    });
    for (effect, length) in effect.iter().zip(lengths) {
        assert!(
            matches!(effect, DamageEffect::Refused(_)),
            "{length} of {used} bytes: {effect:?}"
        );
    }
}

#[test]
fn accepted_loss_is_reported_and_the_rest_is_served() {
    let closed = Closed::small();
    let journal = closed.journal();
    let half = closed.used_bytes(&journal) / 2;
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    copy(ServerFiles::new(closed.root.path()).data_dir(), files.data_dir());
    cut(&files.data_dir().join(&journal), half);
    let Start::Ready(server) = files.try_start(&["--accept-data-loss"]) else {
        panic!("the loss was accepted: {}", files.stderr())
    };
    assert!(
        files.stderr().contains("WARN"),
        "the loss is not reported: {}",
        files.stderr()
    );
    let mut client = server.client();
    let left = closed.items.iter().filter(|item| {
        let response = expect(&mut client, &read(item), &[200, 404]);
        response.status == 200 && user_members(&response.json()) == **item
    });
    assert!(
        (1..closed.items.len()).contains(&left.count()),
        "about half of the items are left"
    );
    verify(&mut client, CONTAINER);
    create(&mut client, 1_000, "more");
    server.stop();
    // The loss is accepted once; the next start needs no option.
    files.start().stop();
}

#[test]
fn flipped_byte_in_the_journal_is_refused_or_carried_nothing() {
    let closed = Closed::small();
    let journal = closed.journal();
    let used = closed.used_bytes(&journal);
    let places: Vec<u64> = (0..12).map(|n| (used - 1) * n / 11).collect();
    let effect = closed.effects_of(&places, |closed, at| {
        closed.effect(&format!("byte {at} of {used} of the journal flipped"), |data| {
            flip(&data.join(&journal), *at);
        })
    });
    let refused = effect
        .iter()
        .filter(|effect| matches!(effect, DamageEffect::Refused(_)))
        .count();
    assert!(refused * 2 > effect.len(), "most bytes of a journal matter: {effect:?}");
}

#[test]
fn flipped_byte_in_any_file_is_never_silent() {
    let closed = Closed::large();
    let files = closed.files();
    assert!(
        files.iter().any(|file| file.to_string_lossy().contains("tables")),
        "closing wrote tables: {files:?}"
    );
    let mut damages: Vec<(PathBuf, u64)> = Vec::new();
    for file in files {
        let used = closed.used_bytes(&file).max(1);
        let places: &[u64] = if used > 10_000 {
            &[0, used / 2, used - 200]
        } else {
            &[used / 2]
        };
        damages.extend(places.iter().map(|at| (file.clone(), *at)));
    }
    let effect = closed.effects_of(&damages, |closed, (file, at)| {
        closed.effect(&format!("byte {at} of {} flipped", file.display()), |data| {
            flip(&data.join(file), *at);
        })
    });
    assert!(
        effect.iter().any(|effect| *effect != DamageEffect::Harmless),
        "some byte matters: {effect:?}"
    );
}

#[test]
fn flipped_byte_in_a_table_is_named_with_its_file() {
    let closed = Closed::large();
    let tables = closed
        .files()
        .into_iter()
        .filter(|file| file.to_string_lossy().contains("tables"));
    let table = tables
        .max_by_key(|file| closed.used_bytes(file))
        .expect("closing wrote tables");
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    copy(ServerFiles::new(closed.root.path()).data_dir(), files.data_dir());
    flip(&files.data_dir().join(&table), closed.used_bytes(&table) / 2);
    let name = table.to_str().expect("a path of ours");

    // With the option, the damage is found at the start.
    match files.try_start(&["--verify-on-start"]) {
        Start::Ended { stderr, .. } => {
            assert!(stderr.contains(name) && stderr.contains("restore a backup"), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        }
        Start::Ready(_) => panic!("a damaged table was verified"),
    }

    // Without it, the damage is found by a read, and logged.
    let server = files.start();
    let mut client = server.client();
    let mut is_named = false;
    while !is_named {
        let responses = closed
            .items
            .iter()
            .map(|item| expect(&mut client, &read(item), &[200, 500]));
        let errors: Vec<_> = responses.filter(|response| response.status == 500).collect();
        assert!(!errors.is_empty(), "the damage is not met");
        assert!(
            errors.iter().all(|error| error.text().contains("space=item")),
            "the key space is effect"
        );
        // The search for the file runs in parallel with requests.
        is_named = errors.iter().any(|error| error.text().contains(name));
    }
    assert!(files.stderr().contains(name), "{}", files.stderr());
    server.kill();
}

#[test]
fn missing_file_is_never_silent() {
    for closed in [Closed::small(), Closed::large()] {
        let files = closed.files();
        closed.effects_of(&files, |closed, file| {
            closed.effect(&format!("{} deleted", file.display()), |data| {
                fs::remove_file(data.join(file)).expect("it is there");
            })
        });
    }
}

fn create(client: &mut Client, n: usize, padding: &str) -> Value {
    let item = json!({"id": format!("i{n}"), "pk": format!("p{}", n % 5), "padding": padding});
    let request = keyed("POST", &format!("{CONTAINER}/docs"), text(&item, "pk"));
    client.send(&request.body(item.to_string())).expect(201);
    item
}

fn read(item: &Value) -> Request {
    keyed(
        "GET",
        &format!("{CONTAINER}/docs/{}", text(item, "id")),
        text(item, "pk"),
    )
}

/// Text that does not compress.
fn random_text(random: &mut Random, bytes: u64) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
    (0..bytes).map(|_| char::from(random.choice(LETTERS))).collect()
}

fn cut(file: &Path, length: u64) {
    fs::File::options()
        .write(true)
        .open(file)
        .and_then(|file| file.set_len(length))
        .expect("writable");
}

fn flip(file: &Path, at: u64) {
    let mut bytes = fs::read(file).expect("readable");
    bytes[usize::try_from(at).expect("small")] ^= 0x55;
    fs::write(file, bytes).expect("writable");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("readable").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("writable");
        }
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .expect("readable")
        .map(|entry| entry.expect("readable").path());
    entries
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect()
}
