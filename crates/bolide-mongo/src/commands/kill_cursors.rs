//! `killCursors`.

use bolide_mql::value::number;
use bolide_mql::{Error, Result};
use bson::{RawArrayBuf, rawdoc};

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use crate::limits;

/// `{killCursors: collection, cursors: [i64]}` → the ids, by what became of them.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    arguments.collection(context.database)?;
    let ids = arguments.array("cursors")?;
    let ids = arguments.required("cursors", ids)?;
    arguments.finish()?;
    let (mut killed, mut not_found) = (RawArrayBuf::new(), RawArrayBuf::new());
    for (at, id) in ids.into_iter().enumerate() {
        if at >= limits::CURSORS {
            return Err(Error::bad_value(format!("too many cursors. limit={}", limits::CURSORS)));
        }
        let value = id.map_err(|error| Error::bad_value(error.to_string()))?;
        let path = format!("killCursors.cursors.{at}");
        let id = number::whole(value).ok_or_else(|| wrong_type(&path, value, "type 'long'"))?;
        if context.state.cursors.kill(id, context.user.as_deref()) {
            killed.push(id);
        } else {
            not_found.push(id);
        }
    }
    let reply = rawdoc! {
        "cursorsKilled": killed,
        "cursorsNotFound": not_found,
        "cursorsAlive": [],
        "cursorsUnknown": [],
    };
    Ok(reply.into())
}
