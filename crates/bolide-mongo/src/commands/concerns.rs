//! Read and write concerns. There is one member, and what it acknowledges is durable, so they rarely change anything.
//!
//! Source: mongo.md §7.

use bolide_mql::value::number;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf, Timestamp, rawdoc};

use super::arguments::Arguments;

/// Maximum of a numeric `w`.
const MAX_MEMBERS: i64 = 50;

/// `readConcern`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadConcern {
    /// `level`.
    pub level: ReadConcernLevel,
    /// Whether the client asked for another level than `majority`.
    pub is_not_majority: bool,
    /// `afterClusterTime`: the read sees everything up to this time.
    pub after: Option<Timestamp>,
    /// `atClusterTime`: the read sees the data of exactly this time.
    pub at: Option<Timestamp>,
    /// Whether the command has one.
    pub is_given: bool,
}

/// `readConcern.level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadConcernLevel {
    /// Everything that is committed; the same as `available` and `majority`, as there is one member.
    #[default]
    Local,
    /// The same again, but not for what also writes.
    Linearizable,
    /// A snapshot for all reads of a transaction, or for those that name its time.
    Snapshot,
}

impl ReadConcern {
    /// Reads a read concern; the default if there is none.
    ///
    /// # Errors
    /// `BadValue` for an unknown level; errors of its fields.
    pub fn parse(document: Option<&RawDocument>) -> Result<ReadConcern> {
        let Some(document) = document else {
            return Ok(ReadConcern::default());
        };
        let mut fields = Arguments::of_document("readConcern", document)?;
        let given = fields.string("level")?;
        let level = match given {
            None | Some("local" | "available" | "majority") => ReadConcernLevel::Local,
            Some("linearizable") => ReadConcernLevel::Linearizable,
            Some("snapshot") => ReadConcernLevel::Snapshot,
            Some(other) => {
                let text = format!("Enumeration value '{other}' for field 'readConcern.level' is not a valid value.");
                return Err(Error::bad_value(text));
            }
        };
        let concern = ReadConcern {
            level,
            is_not_majority: given.is_some_and(|given| given != "majority"),
            after: fields.timestamp("afterClusterTime")?,
            at: fields.timestamp("atClusterTime")?,
            is_given: true,
        };
        check_provenance("readConcern", &mut fields)?;
        fields.ignore(&[
            "afterOpTime",
            "$_allowTransactionTableSnapshot",
            "$_waitLastStableRecoveryTimestamp",
        ]);
        fields.finish()?;
        if concern.at.is_some() && concern.level != ReadConcernLevel::Snapshot {
            let text = "atClusterTime can only be used with the 'snapshot' read concern level";
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        if concern.at.is_some() && concern.after.is_some() {
            let text =
                "Specifying a timestamp for readConcern in both afterClusterTime and atClusterTime is not allowed";
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        Ok(concern)
    }
}

/// `writeConcern`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WriteConcern {
    w: Acknowledgement,
    document: Option<RawDocumentBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Acknowledgement {
    /// By the member, which is the majority.
    #[default]
    Majority,
    /// Of nothing: errors are not reported.
    None,
    /// By more members than there are.
    TooMany,
    /// By members with a tag, of which there are none.
    Tag(String),
}

impl WriteConcern {
    /// Reads a write concern; the default if there is none.
    ///
    /// # Errors
    /// `FailedToParse`; errors of its fields.
    pub fn parse(document: Option<&RawDocument>) -> Result<WriteConcern> {
        let Some(document) = document else {
            return Ok(WriteConcern::default());
        };
        let mut fields = Arguments::of_document("writeConcern", document)?;
        let w = fields.value("w").map(acknowledgement).transpose()?.unwrap_or_default();
        fields.boolean("j")?;
        fields.boolean("fsync")?;
        // Anything else than a number counts as no limit, as in MongoDB.
        let timeout = fields
            .value("wtimeout")
            .and_then(number::Number::of)
            .map(number::Number::clamped);
        if timeout.is_some_and(|timeout| timeout > i64::from(i32::MAX)) {
            let text = "wtimeout must be less than or equal to 2147483647";
            return Err(Error::new(Code::FAILED_TO_PARSE, text));
        }
        check_provenance("writeConcern", &mut fields)?;
        fields.ignore(&["getLastError", "wOpTime", "wElectionId"]);
        fields.finish()?;
        Ok(WriteConcern {
            w,
            document: Some(document.to_owned()),
        })
    }

    /// Whether the command has one.
    pub fn is_given(&self) -> bool {
        self.document.is_some()
    }

    /// Whether the client asked for no acknowledgement.
    pub fn is_unacknowledged(&self) -> bool {
        self.w == Acknowledgement::None
    }

    /// `writeConcernError` of a write that succeeded but cannot be acknowledged as asked.
    pub fn error(&self) -> Option<RawDocumentBuf> {
        let (code, name, text) = match &self.w {
            Acknowledgement::Majority | Acknowledgement::None => return None,
            Acknowledgement::TooMany => (
                Code::UNSATISFIABLE_WRITE_CONCERN,
                "UnsatisfiableWriteConcern",
                "Not enough data-bearing nodes".to_owned(),
            ),
            Acknowledgement::Tag(tag) => (
                Code::UNKNOWN_REPL_WRITE_CONCERN,
                "UnknownReplWriteConcern",
                format!("No write concern mode named '{tag}' found in replica set configuration"),
            ),
        };
        let document = self.document.clone().unwrap_or_default();
        Some(rawdoc! {
            "code": code.0,
            "codeName": name,
            "errmsg": text,
            "errInfo": { "writeConcern": document },
        })
    }
}

/// Checks `provenance`, which members of a cluster tell each other.
fn check_provenance(concern: &str, fields: &mut Arguments<'_>) -> Result<()> {
    match fields.string("provenance")? {
        None
        | Some(
            "clientSupplied" | "customDefault" | "implicitDefault" | "getLastErrorDefaults" | "internalWriteDefault",
        ) => Ok(()),
        Some(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '{concern}.provenance' is not a valid value."
        ))),
    }
}

fn acknowledgement(value: RawBsonRef<'_>) -> Result<Acknowledgement> {
    let failed = |text: String| Error::new(Code::FAILED_TO_PARSE, text);
    match value {
        RawBsonRef::String("majority") => Ok(Acknowledgement::Majority),
        RawBsonRef::String(tag) => Ok(Acknowledgement::Tag(tag.to_owned())),
        RawBsonRef::Document(_) => Err(failed("w as a document of tags is not supported".to_owned())),
        other => {
            let members = number::Number::of(other).and_then(number::Number::truncated);
            match members {
                Some(0) => Ok(Acknowledgement::None),
                Some(1) => Ok(Acknowledgement::Majority),
                Some(2..=MAX_MEMBERS) => Ok(Acknowledgement::TooMany),
                Some(_) => Err(failed(
                    "w has to be a non-negative number and not greater than 50".to_owned(),
                )),
                None => Err(failed("w has to be a number, string, or object".to_owned())),
            }
        }
    }
}

#[cfg(test)]
mod tests;
