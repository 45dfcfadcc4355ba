//! Stored procedures that every container has, as in the service. Source: .NET's suite executes both.
//!
//! They run as those of users do, with their limits and rights. A container's own procedure of the same name goes before, and no list shows them.

use bolide_model::rid::{ChildKind, ChildRid, ContainerRid};
use bolide_model::{Lsn, UnixSeconds};

use crate::container::{Script, ScriptKind, ScriptQuarantine};
use crate::format::etag::Etag;

const SOURCES: [(&str, &str); 2] = [
    ("__.sys.echo", include_str!("system/echo.js")),
    ("__.sys.commonBulkInsert", include_str!("system/common_bulk_insert.js")),
];

/// The procedure of this name. It is new for each call, so that nobody's violations block it for others.
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
