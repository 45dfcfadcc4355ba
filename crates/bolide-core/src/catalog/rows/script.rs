//! Rows of scripts.

use bolide_model::UnixSeconds;
use bolide_model::rid::ChildRid;
use serde::{Deserialize, Serialize};

use super::{Unknown, json};
use crate::container::{Script, ScriptDraft, ScriptKind, ScriptQuarantine};
use crate::format::etag::Etag;

/// A script.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScriptRow {
    #[serde(flatten, with = "json::script")]
    pub draft: ScriptDraft,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    #[serde(flatten)]
    pub unknown: Unknown,
}

impl ScriptRow {
    /// Returns the script that the row describes.
    pub fn into_script(self, rid: ChildRid, kind: ScriptKind) -> Script {
        Script {
            kind,
            rid,
            id: self.draft.id,
            body: self.draft.body,
            fires: self.draft.fires,
            etag: self.etag,
            last_modified: self.last_modified,
            quarantine: ScriptQuarantine::default(),
        }
    }
}
