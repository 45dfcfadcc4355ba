//! The fence of the simulated store. Runs by seeds meet it rarely: a commit has to be asked for while it is on its way.

use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Batch, CommitToken, Edition, Engine as _, Head, Outcome, PartitionId, ReadRequest, Resolved};

use super::network::{Link, Network};
use crate::test_container::START;

const PARTITION: PartitionId = PartitionId(7);
const SEEDS: u64 = 40;

fn commit() -> Batch {
    Batch {
        base: Lsn(0),
        next: Lsn(1),
        stamp: UnixMillis(START * 1_000),
        edition: Edition(0),
        token: CommitToken(1),
        puts: Vec::new(),
        deletes: Vec::new(),
        new_keys: Vec::new(),
        may_block: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_the_store_has_said_not_to_have_happened_does_not_happen_later() {
    let mut overtaken = 0;
    for seed in 1..=SEEDS {
        let network = Network::new(seed);
        let [writer, other] = ["writer", "other"].map(|name| Link::new(&network, name.to_owned(), seed));
        let head = Head::first(UnixMillis(START * 1_000));
        writer.create(PARTITION, head).await.expect("a partition");
        let ticket = commit().ticket();
        let (outcome, resolved) = tokio::join!(writer.commit(PARTITION, commit()), other.resolve(PARTITION, ticket));
        let read = other.read(PARTITION, ReadRequest::default()).await.expect("a head");
        match resolved.expect("an answer") {
            Resolved::NotDone => {
                assert_eq!((outcome, read.head.lsn), (Ok(Outcome::Stale), Lsn(0)), "seed {seed}");
                overtaken += 1;
            }
            Resolved::Done(done) => assert_eq!((outcome, read.head), (Ok(Outcome::Done(done)), done), "seed {seed}"),
        }
    }
    assert!((1..SEEDS).contains(&overtaken), "both orders are seen: {overtaken}");
}
