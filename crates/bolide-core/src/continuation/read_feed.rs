//! Where a page of the read feed ends.
//!
//! ```text
//!   length(4) ‖ from ‖ ( rid(8) ‖ length(4) ‖ to )*      everything before `from`, and from there to `to` what was created up to `rid`
//! ```
//!
//! These are positions among keys, so that they hold when a range was split meanwhile; then each part goes on by itself, and there are
//! several pairs. An empty `to` is the end of all keys.

use bytes::{Buf as _, BufMut as _, Bytes};

/// Where a page ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadFeedPosition {
    /// Everything before this key was listed.
    pub from: Bytes,
    /// Behind it, one after the other.
    pub begun: Vec<Begun>,
}

/// Items of which those that were created first were listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The key behind them; `None` is the end of all keys.
    pub to: Option<Bytes>,
    /// What was created up to here was listed.
    pub rid: u64,
}

impl Begun {
    fn ends_behind(&self, key: &Bytes) -> bool {
        self.to.as_ref().is_none_or(|to| key < to)
    }
}

impl ReadFeedPosition {
    /// The position at a later key. `begun`: what was listed of the items from there on.
    pub fn later(&self, from: Bytes, begun: Option<Begun>) -> ReadFeedPosition {
        let end = begun.as_ref().map_or(Some(&from), |begun| begun.to.as_ref());
        let rest = self
            .begun
            .iter()
            .filter(|own| end.is_some_and(|end| own.ends_behind(end)));
        ReadFeedPosition {
            begun: begun.iter().chain(rest).cloned().collect(),
            from,
        }
    }

    /// What was begun of the items around a key.
    pub fn begun_at(&self, key: &Bytes) -> Option<&Begun> {
        self.begun.iter().find(|begun| begun.ends_behind(key))
    }

    /// Whether the item with this key and number has been listed.
    pub fn has_listed(&self, key: &Bytes, number: u64) -> bool {
        self.begun_at(key).is_some_and(|begun| number <= begun.rid)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let put = |bytes: &mut Vec<u8>, key: &[u8]| {
            bytes.put_u32(u32::try_from(key.len()).expect("keys are short"));
            bytes.put_slice(key);
        };
        put(&mut bytes, &self.from);
        for begun in &self.begun {
            bytes.put_u64(begun.rid);
            put(&mut bytes, begun.to.as_deref().unwrap_or_default());
        }
        bytes
    }

    pub fn decode(mut bytes: &[u8]) -> Option<ReadFeedPosition> {
        fn key(bytes: &mut &[u8]) -> Option<Bytes> {
            let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
            let (key, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Some(Bytes::copy_from_slice(key))
        }
        let from = key(&mut bytes)?;
        let mut begun = Vec::new();
        while !bytes.is_empty() {
            let rid = bytes.try_get_u64().ok()?;
            let to = Some(key(&mut bytes)?).filter(|to| !to.is_empty());
            begun.push(Begun { to, rid });
        }
        Some(ReadFeedPosition { from, begun })
    }
}

#[cfg(test)]
mod tests;
