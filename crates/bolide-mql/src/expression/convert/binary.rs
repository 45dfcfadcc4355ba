//! Binary data from strings and to strings, of MongoDB 8.0.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use bson::spec::BinarySubtype;
use bson::{Binary, RawBinaryRef, RawBson, RawBsonRef};

use super::{Target, failure, unsupported};
use crate::error::{Code, Error, Result};

/// The subtype of UUIDs.
pub(super) const UUID: u8 = 4;

fn missing_format(from: &str, to: &str) -> Error {
    Error::new(
        Code::FAILED_TO_PARSE,
        format!("Format must be specified when converting from '{from}' to '{to}'"),
    )
}

fn unknown_format(format: &str) -> Error {
    failure(format!("Invalid 'format' argument for $convert: {format}"))
}

pub(super) fn to_binary(value: RawBsonRef<'_>, subtype: u8, format: Option<&str>) -> Result<RawBson> {
    let text = match value {
        RawBsonRef::Binary(binary) if u8::from(binary.subtype) == subtype => {
            return Ok(RawBsonRef::Binary(binary).into());
        }
        RawBsonRef::String(text) => text,
        other => return Err(unsupported(other, Target::Binary(subtype))),
    };
    let invalid = || {
        let format = format.unwrap_or_default();
        failure(format!(
            "Failed to parse BinData '{text}' in $convert with no onError value: Input is not a valid {format} string."
        ))
    };
    let bytes = match format.ok_or_else(|| missing_format("string", "binData"))? {
        "base64" | "base64url" | "hex" | "utf8" if subtype == UUID => {
            return Err(failure("Only the UUID subtype (4) is allowed with the 'uuid' format"));
        }
        "base64" => STANDARD.decode(text).map_err(|_| invalid())?,
        "base64url" => {
            let engine = if text.ends_with('=') { URL_SAFE } else { URL_SAFE_NO_PAD };
            engine.decode(text).map_err(|_| invalid())?
        }
        "hex" => hex::decode(text).map_err(|_| invalid())?,
        "utf8" => text.as_bytes().to_vec(),
        "uuid" if subtype == UUID && text.len() == 36 => {
            bson::Uuid::parse_str(text).map_err(|_| invalid())?.bytes().to_vec()
        }
        "uuid" => return Err(invalid()),
        other => return Err(unknown_format(other)),
    };
    Ok(RawBson::Binary(Binary {
        subtype: BinarySubtype::from(subtype),
        bytes,
    }))
}

pub(super) fn to_string(binary: RawBinaryRef<'_>, format: Option<&str>) -> Result<String> {
    let uuid = <[u8; 16]>::try_from(binary.bytes)
        .ok()
        .filter(|_| u8::from(binary.subtype) == UUID);
    let uuid = uuid.map(|bytes| bson::Uuid::from_bytes(bytes).to_string());
    let not_uuid = || failure("Unsupported subtype for BinData conversion to a UUID string");
    Ok(match format.ok_or_else(|| missing_format("binData", "string"))? {
        "auto" => uuid.unwrap_or_else(|| STANDARD.encode(binary.bytes)),
        "base64" => STANDARD.encode(binary.bytes),
        "base64url" => URL_SAFE_NO_PAD.encode(binary.bytes),
        "hex" => hex::encode_upper(binary.bytes),
        "utf8" => {
            let text = std::str::from_utf8(binary.bytes);
            text.map(str::to_owned)
                .map_err(|_| failure("BinData conversion to string: invalid UTF-8"))?
        }
        "uuid" => uuid.ok_or_else(not_uuid)?,
        other => return Err(unknown_format(other)),
    })
}
