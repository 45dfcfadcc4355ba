//! The claims of all fuzz targets on the stable toolchain: on their seeds, and on small random mutations of them.
//!
//! Fuzzing finds more, but not everybody runs it; see `fuzz/README.md`. `BOLIDE_SECONDS` sets the time per target, and `BOLIDE_SEED` selects other mutations.
#![expect(clippy::disallowed_methods, reason = "tests run for a time by the machine's clock")]
#![expect(clippy::print_stdout, reason = "a failed test tells its input")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use random::Random;

#[path = "../durability/random.rs"]
#[expect(dead_code, reason = "the durability tests make more kinds of choices")]
mod random;
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

/// Mutations per target, unless the time is over before. The cost of one run differs much between targets.
const CHANGES: usize = 3_000;
const SECONDS: u64 = 2;
const SEED: u64 = 7;

/// A claim that must hold for any bytes.
type Target = fn(&[u8]);

macro_rules! keep_their_claims {
    ($($target:ident)*) => {
        const TARGETS: &[&str] = &[$(stringify!($target)),*];

        mod any_bytes_keep_the_claims_of {
            $(#[test]
            fn $target() {
                super::try_changes(stringify!($target), super::targets::$target::run);
            })*
        }
    };
}

keep_their_claims!(change_feed container continuation copy_page document epk frame hybrid_row mongo_bson mongo_filter mongo_message mongo_pipeline mongo_update partition_key patch query request resume_filter stored_bytes);

#[test]
fn every_fuzz_target_is_among_these() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for entry in fs::read_dir(dir).expect("there are targets") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().expect("a file has a name").to_string_lossy();
        assert!(TARGETS.contains(&&*name), "{name}");
    }
}

fn try_changes(name: &str, target: Target) {
    let (seconds, seed) = (setting("BOLIDE_SECONDS"), setting("BOLIDE_SEED").unwrap_or(SEED));
    let changes = if seconds.is_some() { usize::MAX } else { CHANGES };
    let seeds = seeds_of(name);
    count_panics();
    for seed in &seeds {
        check(name, target, seed);
    }
    let mut random = Random::new(seed, 0);
    let deadline = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS));
    let mut n = 0;
    while n < changes && Instant::now() < deadline {
        check(name, target, &changed(&seeds[n % seeds.len()], &seeds, &mut random));
        n += 1;
    }
    println!("{name}: {} seeds, {n} changes", seeds.len());
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number: {value}")),
    )
}

fn seeds_of(name: &str) -> Vec<Vec<u8>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has seeds");
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

/// Number of panics on any thread. A panic in a task of the runtime would not be visible otherwise.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            hook(info);
        }));
    });
}

fn check(name: &str, target: Target, data: &[u8]) {
    let ended = catch_unwind(AssertUnwindSafe(|| target(data)));
    let is_calm = ended.is_ok() && PANICS.load(Ordering::Relaxed) == 0;
    assert!(is_calm, "target {name}, input {:?}", data.escape_ascii().to_string());
}

/// A seed with a few bytes flipped, removed, repeated, or taken from another seed.
fn changed(seed: &[u8], seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = seed.to_vec();
    let mut below = |n: usize| random.within(0..n.max(1) as u64) as usize;
    for _ in 0..1 + below(4) {
        let (from, other) = (below(data.len() + 1), &seeds[below(seeds.len())]);
        let to = (from + 1 + below(8)).min(data.len()).max(from);
        match below(5) {
            0 if from < data.len() => data[from] ^= 1 << below(8),
            1 => drop(data.drain(from..to)),
            2 => drop(data.splice(from..from, data[from..to].to_vec())),
            3 => drop(data.splice(from..to, *b"\"")),
            _ => {
                let start = below(other.len());
                let end = (start + below(24)).min(other.len());
                drop(data.splice(from..to, other[start..end].to_vec()));
            }
        }
    }
    data
}
