//! Kills a process during commits, and checks what it left on the disk.
//!
//! The child is this test binary, running only [`child_commits_until_it_is_killed`]. It commits on several partitions at once and prints a line per
//! acknowledged commit; one of its writers commits the partitions of a home together. Every printed commit must be stored, and of every commit all
//! rows or none; of a joint commit in all partitions or in none.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bolide_storage::{Batch, Edition, Engine, HomeId, JointOutcome, Outcome, PartitionId, Space};
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};

use crate::support::{batch, create, key, open, put, read_all, try_open};

const DIR: &str = "BOLIDE_CRASH_DIR";
const MODE: &str = "BOLIDE_CRASH_MODE";
const PARTITIONS: u64 = 4;
/// Partitions that are committed together.
const JOINT: [u32; 3] = [50, 51, 52];
/// Delays before the kill, in ms after the first acknowledgement: fixed, and irregular so that kills fall in different phases.
const ROUNDS: [u64; 5] = [3, 47, 111, 7, 83];

#[tokio::test]
async fn answered_commits_survive_kills_in_mode_sync() {
    survive(Durability::Sync).await;
}

#[tokio::test]
async fn answered_commits_survive_kills_in_mode_interval() {
    survive(Durability::INTERVAL).await;
}

#[tokio::test]
async fn answered_commits_survive_kills_in_mode_buffered() {
    survive(Durability::Buffered).await;
}

async fn survive(durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let mut answered = HashMap::new();
    for delay_ms in ROUNDS {
        for (partition, lsn) in run_and_kill(dir.path(), durability, delay_ms) {
            answered.insert(partition, lsn);
        }
        let engine = open(dir.path());
        for (partition, lsn) in &answered {
            check(&engine, PartitionId(*partition), *lsn).await;
        }
        check_joint(&engine).await;
    }
    assert_eq!(
        answered.len(),
        PARTITIONS as usize + JOINT.len(),
        "every partition got an answer at some time"
    );
}

/// Starts a child and kills it. Returns the acknowledged commits (partition and number) in order.
fn run_and_kill(dir: &Path, durability: Durability, delay_ms: u64) -> Vec<(u64, u64)> {
    let mut child = spawn(dir, durability);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("done ") {
        assert!(
            lines.read_line(&mut said).unwrap() > 0,
            "the child ended by itself:\n{said}"
        );
    }
    // The time of the kill is the test's input; there is no clock to move in another process.
    std::thread::sleep(Duration::from_millis(delay_ms));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.read_to_string(&mut said).unwrap();
    // The last line may be cut off.
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(answer).collect()
}

fn answer(line: &str) -> Option<(u64, u64)> {
    let (_, answer) = line.split_once("done ")?;
    let (partition, lsn) = answer.split_once(' ')?;
    Some((partition.parse().ok()?, lsn.parse().ok()?))
}

fn spawn(dir: &Path, durability: Durability) -> Child {
    let mode = match durability {
        Durability::Sync => "sync",
        Durability::Interval(_) => "interval",
        Durability::Buffered => "buffered",
    };
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::child_commits_until_it_is_killed",
            "--nocapture",
            "--ignored",
        ])
        .env(DIR, dir)
        .env(MODE, mode)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Commit n of a partition puts row n into every space, overwrites "latest" with n, and deletes row n - 1 from the expiry queue.
async fn check(engine: &LsmEngine, partition: PartitionId, answered: u64) {
    let response = read_all(engine, partition).await.unwrap();
    let head = response.head.lsn.0;
    assert!(
        head >= answered,
        "commit {answered} of {partition:?} was answered and is lost; head={head}"
    );
    assert_eq!(response.head.edition, Edition(head), "{partition:?}");
    for (space, page) in Space::ALL.into_iter().zip(response.pages) {
        let mut rows: HashMap<_, _> = page.rows.into_iter().collect();
        let latest = rows.remove(&b"latest"[..]).map(|value| value.to_vec());
        assert_eq!(
            latest,
            (head > 0).then(|| head.to_be_bytes().to_vec()),
            "{space:?} of {partition:?}"
        );
        let expected = if space == Space::Expiry { head.min(1) } else { head };
        assert_eq!(rows.len() as u64, expected, "{space:?} of {partition:?}");
        let newest = rows.contains_key(&head.to_be_bytes()[..]);
        assert_eq!(newest, head > 0, "{space:?} of {partition:?}");
    }
}

/// All partitions have the last commit, or none has it, whether or not it was acknowledged.
async fn check_joint(engine: &LsmEngine) {
    let mut heads = Vec::new();
    for partition in joint_partitions() {
        heads.push(read_all(engine, partition).await.map(|response| response.head).ok());
    }
    assert!(heads.iter().all(|head| head == &heads[0]), "{heads:?}");
}

fn joint_partitions() -> [PartitionId; 3] {
    JOINT.map(|number| PartitionId::in_home(HomeId(40), number).unwrap())
}

#[test]
#[ignore = "the child of the tests above"]
fn child_commits_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let durability = match std::env::var(MODE).as_deref() {
        Ok("interval") => Durability::INTERVAL,
        Ok("buffered") => Durability::Buffered,
        _ => Durability::Sync,
    };
    let options = LsmOptions {
        durability,
        ..LsmOptions::default()
    };
    let engine = Arc::new(try_open(Path::new(&dir), options).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        for partition in joint_partitions() {
            create(&engine, partition).await;
        }
        let mut writers: Vec<_> = (1..=PARTITIONS)
            .map(|n| tokio::spawn(commit_forever(engine.clone(), PartitionId(n))))
            .collect();
        writers.push(tokio::spawn(commit_together_forever(engine.clone())));
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

#[expect(clippy::print_stdout, reason = "the parent process reads the acknowledgements")]
async fn commit_forever(engine: Arc<LsmEngine>, partition: PartitionId) {
    create(&engine, partition).await;
    let mut head = read_all(&engine, partition).await.unwrap().head.lsn.0;
    loop {
        let outcome = engine.commit(partition, commit_after(head)).await;
        assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
        head += 1;
        println!("done {} {head}", partition.0);
    }
}

#[expect(clippy::print_stdout, reason = "the parent process reads the acknowledgements")]
async fn commit_together_forever(engine: Arc<LsmEngine>) {
    let partitions = joint_partitions();
    let mut head = read_all(&engine, partitions[0]).await.unwrap().head.lsn.0;
    loop {
        let batches = partitions.map(|partition| (partition, commit_after(head)));
        let outcome = engine.commit_together(batches.to_vec()).await;
        assert!(matches!(outcome, Ok(JointOutcome::Done(_))), "{outcome:?}");
        head += 1;
        for partition in partitions {
            println!("done {} {head}", partition.0);
        }
    }
}

/// The commit that [`check`] expects.
fn commit_after(head: u64) -> Batch {
    let n = (head + 1).to_be_bytes();
    let rows = Space::ALL
        .into_iter()
        .flat_map(|space| [put(space, &n, &[1; 300]), put(space, b"latest", &n)]);
    batch(head, rows.collect(), vec![key(Space::Expiry, &head.to_be_bytes())])
}
