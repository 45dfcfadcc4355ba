//! Where a page of a script's query ends.

use bolide_model::{Error, Result};
use bytes::Bytes;

/// Where a page begins or ends: behind an item of the walk, and what the execution says it has returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScriptQueryPosition {
    /// Items up to this key have been dealt with.
    pub after: Option<Bytes>,
    pub resume: Option<String>,
}

impl ScriptQueryPosition {
    /// `flag(1) ‖ length(2) ‖ key ‖ resume`, without key if the flag is 0.
    pub fn encode(&self) -> Vec<u8> {
        let key = self.after.as_deref().unwrap_or_default();
        let mut bytes = vec![u8::from(self.after.is_some())];
        bytes.extend((key.len() as u16).to_be_bytes());
        bytes.extend(key);
        bytes.extend(self.resume.as_deref().unwrap_or_default().as_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<ScriptQueryPosition> {
        let malformed = || Error::bad_request("Invalid Continuation Token: it is malformed.");
        let ([has_key, long, short], rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
        let length = usize::from(u16::from_be_bytes([*long, *short]));
        let (key, resume) = rest.split_at_checked(length).ok_or_else(malformed)?;
        let resume = std::str::from_utf8(resume).map_err(|_| malformed())?;
        Ok(ScriptQueryPosition {
            after: (*has_key == 1).then(|| Bytes::copy_from_slice(key)),
            resume: Some(resume.to_owned()),
        })
    }
}
