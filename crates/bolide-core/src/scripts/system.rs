//! Stored procedures that every container has, as in the service. Source: .NET's suite executes both.
//!
//! They run like users' procedures, with the same limits and rights. A container's own procedure of the same name takes precedence. They are not
//! listed.

use bolide_model::rid::{ChildKind, ChildRid, ContainerRid};
use bolide_model::{Lsn, UnixSeconds};

use crate::container::{Script, ScriptKind, ScriptQuarantine};
use crate::format::etag::Etag;

const SOURCES: [(&str, &str); 2] = [
    ("__.sys.echo", include_str!("system/echo.js")),
    ("__.sys.commonBulkInsert", include_str!("system/common_bulk_insert.js")),
];

/// Returns the procedure of this name. Each call gets a new one, so that violations of one caller do not block it for others.
pub(super) fn procedure(container: ContainerRid, id: &str) -> Option<Script> {
    let (_, source) = SOURCES.iter().find(|(known, _)| *known == id)?;
    Some(Script {
        kind: ScriptKind::StoredProcedure,
        rid: ChildRid {
            container,
            kind: ChildKind::StoredProcedure,
            number: 0,
        },
        id: id.to_owned(),
        body: (*source).into(),
        fires: None,
        etag: Etag::of_write(0, Lsn(0), 0),
        last_modified: UnixSeconds(0),
        quarantine: ScriptQuarantine::default(),
    })
}
