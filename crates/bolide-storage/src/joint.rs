//! Joint commits: what every engine checks about batches that are committed together.

use std::collections::HashSet;

use crate::{Batch, EngineError, Head, PartitionId, Ticket};

/// How a joint commit ended: what [`Outcome`](crate::Outcome) says, of all its batches at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JointOutcome {
    /// All are done. The heads they made, in the order of the batches.
    Done(Vec<Head>),
    /// The head of one partition at least was not at its batch's `base`: nothing happened.
    Stale,
    /// The engine cannot tell. One ticket for each batch, in their order; resolving any of them resolves all.
    Unknown(Vec<Ticket>),
    /// Nothing happened and a retry will not help. The text is for the user.
    Refused(String),
}

impl JointOutcome {
    /// The outcome of batches that were carried out.
    pub fn done(batches: &[(PartitionId, Batch)]) -> JointOutcome {
        JointOutcome::Done(batches.iter().map(|(_, batch)| batch.head()).collect())
    }

    /// The outcome of batches of which nobody knows whether they were carried out.
    pub fn unknown(batches: &[(PartitionId, Batch)]) -> JointOutcome {
        JointOutcome::Unknown(batches.iter().map(|(_, batch)| batch.ticket()).collect())
    }
}

/// The answer to batches that cannot be committed together on the heads that `head` tells; `None` if they can be.
///
/// In this order: refused if they lie in different homes or name a partition twice; [`EngineError::NoPartition`] for the first that is not there;
/// stale if one of them is; refused if one has a flaw ([`Batch::validate`]).
pub fn rejection(
    batches: &[(PartitionId, Batch)],
    head: impl Fn(PartitionId) -> Option<Head>,
) -> Option<Result<JointOutcome, EngineError>> {
    if let Some(flaw) = validate_partitions(batches) {
        return Some(Ok(JointOutcome::Refused(flaw)));
    }
    let mut heads = Vec::with_capacity(batches.len());
    for (partition, _) in batches {
        match head(*partition) {
            Some(head) => heads.push(head),
            None => return Some(Err(EngineError::NoPartition(*partition))),
        }
    }
    let mut judged = batches.iter().zip(&heads);
    if judged.clone().any(|((_, batch), head)| batch.base != head.lsn) {
        return Some(Ok(JointOutcome::Stale));
    }
    let flaw = judged.find_map(|((_, batch), head)| batch.validate(*head));
    flaw.map(|flaw| Ok(JointOutcome::Refused(flaw)))
}

fn validate_partitions(batches: &[(PartitionId, Batch)]) -> Option<String> {
    let (first, _) = batches.first()?;
    let mut named = HashSet::with_capacity(batches.len());
    for (partition, _) in batches {
        if partition.home() != first.home() {
            return Some(format!(
                "a joint commit keeps to one home. partition={first} other={partition}"
            ));
        }
        if !named.insert(*partition) {
            return Some(format!("a joint commit names a partition once. partition={partition}"));
        }
    }
    None
}
