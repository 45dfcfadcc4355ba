//! The seal of a partition: its writes are refused while the store is copied elsewhere, and after it has moved (`crate::admin::copies`).
//!
//! ```text
//!   Meta 'W'  →  copy(8) ‖ end of the lease in milliseconds(8), the largest number for a seal without end
//! ```
//!
//! The edition of the head says whether there is a seal ([`edition`](super::edition)), so each server that shares the store meets it with its next commit.
//! A seal with a lease ends by itself: the first commit at its end or later takes it away. Until a commit has done so nothing was written since the seal,
//! also if the lease is over; so whether a seal still stands does not depend on anybody's clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Reason, Result, UnixMillis};
use bolide_storage::Head;
use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::oneshot;

use super::Partition;
use super::pending::send;
use super::worker::{ChangeSeal, Queued};

/// How long the seal of a copy holds after it was set or renewed.
pub(crate) const LEASE: Duration = Duration::from_secs(20);

/// The number of a copy: random, so that no two copies have the same. Shown as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyId(u64);

impl CopyId {
    pub(crate) fn random() -> CopyId {
        CopyId(fastrand::u64(..))
    }
}

impl fmt::Display for CopyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for CopyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<CopyId> {
        let id = u64::from_str_radix(text, 16).map_err(|_| Error::bad_request("a copy has a hexadecimal id"))?;
        Ok(CopyId(id))
    }
}

/// A seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteSeal {
    /// The copy that has set it.
    pub copy: CopyId,
    /// The end of its lease; `None`: it has no end, because the store has moved.
    pub until: Option<UnixMillis>,
}

impl WriteSeal {
    /// Returns the row to store.
    pub fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(16);
        bytes.put_u64(self.copy.0);
        bytes.put_i64(self.until.map_or(i64::MAX, |until| until.0));
        bytes.freeze()
    }

    /// Decodes a stored row.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a valid row.
    pub fn decode(row: &[u8]) -> Result<WriteSeal> {
        let damaged = || Error::new(ErrorKind::Corrupt, "the seal of a partition is damaged");
        let (copy, until) = row.split_first_chunk::<8>().ok_or_else(damaged)?;
        let until = i64::from_be_bytes(until.try_into().map_err(|_| damaged())?);
        Ok(WriteSeal {
            copy: CopyId(u64::from_be_bytes(*copy)),
            until: (until != i64::MAX).then_some(UnixMillis(until)),
        })
    }

    /// Tells whether its lease is over.
    pub fn is_over(self, now: UnixMillis) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Returns the error of a write that it refuses.
    pub fn refusal(self) -> Error {
        match self.until {
            Some(_) => Reason::WritesSealed.into(),
            None => Reason::StoreMoved.into(),
        }
    }
}

/// A change of a seal. Each may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealChange {
    /// Only returns the seal.
    Look,
    /// Sets it.
    Set(CopyId),
    /// Lengthens the lease, if the seal of this copy still stands.
    Renew(CopyId),
    /// Lets the seal of this copy, if it still stands, have no end.
    Keep(CopyId),
    /// Takes away the seal of this copy, if it still stands and has an end.
    Lift(CopyId),
    /// As `Lift`, also if it has no end: it could not be given to all partitions.
    Undo(CopyId),
    /// Takes away any seal.
    LiftAny,
}

/// A partition after a change of its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// Its head, as it is without the seal.
    pub head: Head,
    /// Number of its stored items.
    pub items: u64,
    /// The seal that stands now.
    pub seal: Option<WriteSeal>,
}

impl Partition {
    /// Changes the seal, after all writes that were queued before.
    ///
    /// # Errors
    /// `Conflict` if the seal is that of another copy, does not stand any more, or is to be taken away and has no end; from the engine.
    pub async fn change_seal(&self, change: SealChange) -> Result<Sealing> {
        let (reply, answer) = oneshot::channel();
        send(&self.writes, Queued::Seal(ChangeSeal { change, reply }), answer).await
    }
}

#[cfg(test)]
mod tests;
