//! Documents as lines of JSON, which can be read again without loss.
//!
//! ```text
//!   {"_ts":1700000000,"document":{"_id":{"$oid":"…"},…}}     canonical extended JSON
//!   {"_ts":1700000000,"bson":"…"}                            Base64 of the BSON, where extended JSON would not give the same bytes again
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::{RawBson, RawDocument, RawDocumentBuf};

use super::parse::{Json, value};
use super::{Form, write, write_document, write_string};

/// Larger documents are written as Base64, which takes the least memory.
const READABLE_BYTES: usize = 1024 * 1024;

/// Writes a document and the time of its last change in seconds as a line, without the line's end.
pub fn write_line(document: &RawDocument, last_modified: i64) -> Vec<u8> {
    if document.as_bytes().len() <= READABLE_BYTES {
        let mut line = Vec::with_capacity(document.as_bytes().len() * 2);
        write(&mut line, format_args!("{{\"_ts\":{last_modified},\"document\":"));
        write_document(&mut line, Form::Canonical, document, 0);
        line.push(b'}');
        // Fields that begin with `$`, deep documents and some values would be something else, or nothing, when they are read.
        let again = read_line(&line);
        if again.is_ok_and(|(time, again)| time == last_modified && again.as_bytes() == document.as_bytes()) {
            return line;
        }
    }
    let mut line = Vec::with_capacity(document.as_bytes().len() / 3 * 4 + 64);
    write(&mut line, format_args!("{{\"_ts\":{last_modified},\"bson\":"));
    write_string(&mut line, &BASE64.encode(document.as_bytes()));
    line.push(b'}');
    line
}

/// Reads a line. The bytes of a `bson` are not checked.
///
/// # Errors
/// A text that says what is wrong.
pub fn read_line(line: &[u8]) -> Result<(i64, RawDocumentBuf), String> {
    let json: Json = serde_json::from_slice(line).map_err(|error| format!("it is not JSON: {error}"))?;
    let Json::Object(members) = &json else {
        return Err("it is not an object".to_owned());
    };
    let time = match json.get("_ts") {
        Some(Json::Number(Some(time))) => i64::try_from(*time).ok(),
        _ => None,
    };
    let time = time.ok_or("every document needs an integer _ts")?;
    let document = match (json.get("document"), json.get("bson")) {
        _ if members.len() != 2 => None,
        (Some(document), None) => match value(document) {
            Some(RawBson::Document(document)) => Some(document),
            _ => return Err("its document is not canonical extended JSON, or must be given as bson".to_owned()),
        },
        (None, Some(bson)) => {
            let bytes = bson.as_str().and_then(|text| BASE64.decode(text).ok());
            let document = bytes.and_then(|bytes| RawDocumentBuf::from_bytes(bytes).ok());
            Some(document.ok_or("its bson is not a document in Base64")?)
        }
        _ => None,
    };
    let document = document.ok_or("it must have the members _ts, and document or bson")?;
    Ok((time, document))
}
