//! Where a page of a query ends, and the continuation that says so.
//!
//! ```text
//!   continuation   base64url of the checked position, see the module above ‖ "." ‖ what the execution says
//!   position          kind(1) ‖ key ‖ from ‖ to       each of the last three: length(4) ‖ bytes
//! ```
//!
//! The key is empty, an item key, or a resource id, as the kind says. `from` and `to` are the interval of item keys that the page was
//! asked for; an empty `to` is no end. A continuation is good for every part of that interval: which range holds it, and how a
//! request names it, may change from page to page, and a split leaves each child its own part.

use bolide_model::rid::ContainerRid;
use bolide_model::{Error, Result};
use bytes::{Buf, Bytes};

use crate::format::key_interval::KeyInterval;

const KIND: &[u8] = b"query";

/// Where a page begins or ends: behind an item of the walk, and what the execution says it has returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QueryPosition {
    pub after: After,
    pub resume: Option<String>,
}

/// What a walk has dealt with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing yet.
    #[default]
    Nothing,
    /// Items up to this key, in the order of keys.
    Key(Bytes),
    /// Items up to this resource id, in the order in which they were created.
    Rid(u64),
}

impl After {
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            After::Key(key) => Some(key),
            After::Nothing | After::Rid(_) => None,
        }
    }
}

/// What a continuation of a query belongs to: the container, the query (`bolide_query::Query::identity`), and of which part it was asked.
pub(crate) struct Owner {
    question: [Vec<u8>; 3],
    asked: KeyInterval,
}

impl Owner {
    pub fn of(container: ContainerRid, identity: &[u8], asked: KeyInterval) -> Owner {
        Owner {
            question: [KIND.to_vec(), container.bytes().to_vec(), identity.to_vec()],
            asked,
        }
    }

    /// The continuation of a position.
    pub fn write(&self, position: &QueryPosition) -> String {
        let resume = position.resume.as_deref().unwrap_or_default();
        let checked = super::encode(&self.with(resume), &self.encode(&position.after));
        format!("{checked}.{resume}")
    }

    /// The position of a continuation.
    ///
    /// # Errors
    /// `BadRequest` if it is damaged, or was given for something else or for a smaller part.
    pub fn read(&self, text: &str) -> Result<QueryPosition> {
        let (checked, resume) = text.split_once('.').unwrap_or((text, ""));
        let bytes = super::decode(&self.with(resume), checked)?;
        let (after, was_asked) =
            decode(&bytes).ok_or_else(|| Error::bad_request("Invalid Continuation Token: it is malformed."))?;
        if !was_asked.covers(&self.asked) {
            return Err(Error::bad_request(
                "Invalid Continuation Token: it was given for another part of the container.",
            ));
        }
        Ok(QueryPosition {
            after,
            resume: Some(resume.to_owned()),
        })
    }

    fn with<'a>(&'a self, resume: &'a str) -> Vec<&'a [u8]> {
        let question = self.question.iter().map(Vec::as_slice);
        question.chain([resume.as_bytes()]).collect()
    }

    fn encode(&self, after: &After) -> Vec<u8> {
        let rid;
        let (kind, key): (u8, &[u8]) = match after {
            After::Nothing => (0, &[]),
            After::Key(key) => (1, key),
            After::Rid(number) => {
                rid = number.to_be_bytes();
                (2, &rid)
            }
        };
        let mut bytes = vec![kind];
        for part in [key, &self.asked.from, self.asked.to.as_deref().unwrap_or_default()] {
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }
}

fn decode(mut bytes: &[u8]) -> Option<(After, KeyInterval)> {
    let kind = bytes.try_get_u8().ok()?;
    let mut part = || {
        let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
        let (part, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(Bytes::copy_from_slice(part))
    };
    let (key, from, to) = (part()?, part()?, part()?);
    let after = match kind {
        0 => After::Nothing,
        1 => After::Key(key),
        2 => After::Rid(u64::from_be_bytes(key[..].try_into().ok()?)),
        _ => return None,
    };
    let to = Some(to).filter(|to| !to.is_empty());
    bytes.is_empty().then_some((after, KeyInterval { from, to }))
}
