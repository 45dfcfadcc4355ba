//! Positions in the expiry queues of date rules.

use bolide_model::ttl::RuleId;
use bytes::{BufMut, BytesMut};

use crate::format::keys::DeadlinePosition;

/// A position in the queue of each date rule. A queue without a position here is at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DateCursors(Vec<DeadlinePosition>);

impl DateCursors {
    /// Returns whether all queues are at their start.
    pub fn are_at_start(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules whose queues are not at their start.
    pub fn rules(&self) -> impl Iterator<Item = RuleId> {
        self.0.iter().map(|position| position.deadline.rule)
    }

    /// Returns the position in the queue of a rule.
    pub fn of(&self, rule: RuleId) -> DeadlinePosition {
        match self.find(rule) {
            Ok(at) => self.0[at],
            Err(_) => DeadlinePosition::first(rule),
        }
    }

    /// Returns whether an entry is before the position in its queue.
    pub fn have_passed(&self, entry: &DeadlinePosition) -> bool {
        self.find(entry.deadline.rule).is_ok_and(|at| *entry < self.0[at])
    }

    /// Moves the position in a queue forward; does nothing if it is further already.
    pub fn raise(&mut self, to: DeadlinePosition) {
        match self.find(to.deadline.rule) {
            Ok(at) => self.0[at] = self.0[at].max(to),
            Err(at) if to > DeadlinePosition::first(to.deadline.rule) => self.0.insert(at, to),
            Err(_) => {}
        }
    }

    /// Moves every position forward to the one of `others`.
    pub fn raise_all(&mut self, others: &DateCursors) {
        for position in &others.0 {
            self.raise(*position);
        }
    }

    /// Moves the position in a queue back; does nothing if it is there or before already.
    pub fn lower(&mut self, to: DeadlinePosition) {
        if let Ok(at) = self.find(to.deadline.rule) {
            self.0[at] = self.0[at].min(to);
        }
    }

    /// Adds the positions to a row: their number(2), then each of them.
    pub fn put(&self, bytes: &mut BytesMut) {
        // A collection has at most 64 indexes, and ended rules are forgotten when no document has a deadline under them.
        let count = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        bytes.put_u16(count);
        for position in self.0.iter().take(usize::from(count)) {
            bytes.put_slice(&position.to_bytes());
        }
    }

    /// Reads what [`DateCursors::put`] has added; returns it with what follows.
    pub fn decode(bytes: &[u8]) -> Option<(DateCursors, &[u8])> {
        let (count, mut rest) = bytes.split_first_chunk()?;
        let mut positions = Vec::new();
        for _ in 0..u16::from_be_bytes(*count) {
            let (position, later) = rest.split_at_checked(DeadlinePosition::BYTES)?;
            positions.push(DeadlinePosition::decode(position)?);
            rest = later;
        }
        positions
            .is_sorted_by_key(|position| position.deadline.rule)
            .then_some((DateCursors(positions), rest))
    }

    fn find(&self, rule: RuleId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&rule, |position| position.deadline.rule)
    }
}

#[cfg(test)]
mod tests;
