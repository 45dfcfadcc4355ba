//! Joint commits: what every engine checks about batches that are committed together.

use std::collections::HashSet;

use crate::{Batch, EngineError, Head, PartitionId, Ticket};

/// How a joint commit ended: as [`Outcome`](crate::Outcome), for all of its batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JointOutcome {
    /// All are done. The new heads, in the order of the batches.
    Done(Vec<Head>),
    /// The head of at least one partition was not at its batch's `base`; nothing changed.
    Stale,
    /// The engine cannot tell. One ticket per batch, in their order; resolving any of them resolves all.
    Unknown(Vec<Ticket>),
    /// Nothing changed and a retry will not help. The text is for the user.
    Refused(String),
}

impl JointOutcome {
    /// The outcome of batches that were carried out.
    pub fn done(batches: &[(PartitionId, Batch)]) -> JointOutcome {
        JointOutcome::Done(batches.iter().map(|(_, batch)| batch.head()).collect())
    }

    /// The outcome of batches for which it is not known whether they were carried out.
    pub fn unknown(batches: &[(PartitionId, Batch)]) -> JointOutcome {
        JointOutcome::Unknown(batches.iter().map(|(_, batch)| batch.ticket()).collect())
    }
}

/// Why the batches cannot be committed together on the heads that `head` returns; `None` if they can.
///
/// Checked in this order: refused if they lie in different homes, name a partition twice or have [`Batch::new_keys`]; [`EngineError::NoPartition`] for the first missing
/// partition; stale if one of them is; refused if one is invalid ([`Batch::validate`]).
pub fn rejection(
    batches: &[(PartitionId, Batch)],
    head: impl Fn(PartitionId) -> Option<Head>,
) -> Option<Result<JointOutcome, EngineError>> {
    if let Some(reason) = validate_partitions(batches) {
        return Some(Ok(JointOutcome::Refused(reason)));
    }
    let mut heads = Vec::with_capacity(batches.len());
    for (partition, _) in batches {
        match head(*partition) {
            Some(head) => heads.push(head),
            None => return Some(Err(EngineError::NoPartition(*partition))),
        }
    }
    let mut pairs = batches.iter().zip(&heads);
    if pairs.clone().any(|((_, batch), head)| batch.base != head.lsn) {
        return Some(Ok(JointOutcome::Stale));
    }
    let reason = pairs.find_map(|((_, batch), head)| batch.validate(*head));
    reason.map(|reason| Ok(JointOutcome::Refused(reason)))
}

fn validate_partitions(batches: &[(PartitionId, Batch)]) -> Option<String> {
    let (first, _) = batches.first()?;
    let mut named = HashSet::with_capacity(batches.len());
    for (partition, batch) in batches {
        if partition.home() != first.home() {
            return Some(format!(
                "a joint commit keeps to one home. partition={first} other={partition}"
            ));
        }
        if !batch.new_keys.is_empty() {
            return Some(format!("a joint commit has no new keys. partition={partition}"));
        }
        if !named.insert(*partition) {
            return Some(format!("a joint commit names a partition once. partition={partition}"));
        }
    }
    None
}
