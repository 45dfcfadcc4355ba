//! Session tokens: the position up to which a client has read each range.
//!
//! Written as `<range>:-1#<lsn>`, for one range: a response comes from one range, and .NET and old Java accept nothing else (cosmos-rest §9). Parsing
//! accepts more, because clients send several joined by `,`, and tokens made by other SDKs: `version#lsn#region=lsn…` and the old plain `lsn`.

use bolide_core::RangePosition;
use bolide_model::{Error, ErrorKind, Lsn, Result};
use http::HeaderMap;

use crate::wire::headers;

/// The token of responses about definitions, whose reads are always current: it requires nothing of a range.
pub(crate) const DEFINITIONS_TOKEN: &str = "0:-1#0";

/// The range of a response, among the ranges read: the last one, because pages end with the range that gave them rows.
pub(crate) fn range_of_answer(touched: &[RangePosition]) -> Option<&RangePosition> {
    touched.last()
}

/// The position that a client has seen, by range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionToken {
    seen: Vec<(u32, Lsn)>,
}

impl SessionToken {
    /// The position in a request's header; empty without one.
    ///
    /// # Errors
    /// As [`SessionToken::parse`].
    pub(crate) fn of(headers: &HeaderMap) -> Result<SessionToken> {
        headers::non_empty(headers, &headers::SESSION_TOKEN)?
            .map_or_else(|| Ok(SessionToken::default()), SessionToken::parse)
    }

    /// Reads the header.
    ///
    /// # Errors
    /// `BadRequest` when a part is not a range, a colon and a token.
    pub(crate) fn parse(text: &str) -> Result<SessionToken> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let seen = parts
            .map(|part| parse_part(part).ok_or_else(|| malformed(part)))
            .collect::<Result<_>>()?;
        Ok(SessionToken { seen })
    }

    /// The last position in it.
    pub(crate) fn last(&self) -> Option<(u32, Lsn)> {
        self.seen.last().copied()
    }

    /// Whether it has positions, but none of this range.
    pub(crate) fn is_of_other_ranges(&self, range: u32) -> bool {
        !self.seen.is_empty() && self.seen.iter().all(|(seen, _)| *seen != range)
    }

    /// Refuses a response that is older than what the client has seen. Ranges that were not read are not checked, so tokens of ranges that were split
    /// are harmless.
    ///
    /// # Errors
    /// `SessionNotAvailable`.
    pub(crate) fn check(&self, touched: &[RangePosition]) -> Result<()> {
        for (range, lsn) in &self.seen {
            let behind = touched
                .iter()
                .find(|position| position.range == *range && position.lsn < *lsn);
            if let Some(position) = behind {
                return Err(Error::new(
                    ErrorKind::SessionNotAvailable,
                    format!(
                        "the session has seen more than this range holds. range={range} seen={lsn} lsn={}",
                        position.lsn
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// The token for a response from a range.
pub(crate) fn token(position: &RangePosition) -> String {
    let (mut range, mut lsn) = (itoa::Buffer::new(), itoa::Buffer::new());
    [range.format(position.range), ":-1#", lsn.format(position.lsn.0)].concat()
}

fn parse_part(part: &str) -> Option<(u32, Lsn)> {
    let (range, token) = part.split_once(':')?;
    let range = range.parse().ok()?;
    // Some tokens carry a session version before the vector clock: `0:0:-1#57`.
    let token = token.rsplit_once(':').map_or(token, |(_, last)| last);
    let mut segments = token.split('#');
    let first = segments.next()?.parse::<i64>().ok()?;
    let lsn = match segments.next() {
        Some(global) => global.parse::<i64>().ok()?,
        None => first,
    };
    let regions_are_well_formed = segments.all(|region| {
        region
            .split_once('=')
            .is_some_and(|(id, lsn)| id.parse::<i64>().is_ok() && lsn.parse::<i64>().is_ok())
    });
    regions_are_well_formed.then_some((range, Lsn(u64::try_from(lsn).unwrap_or(0))))
}

fn malformed(part: &str) -> Error {
    // The service's sentence, which EF Core's tests compare; then what would be valid.
    Error::bad_request(format!(
        "The session token provided '{part}' is invalid. Expected `<range>:<version>#<lsn>`."
    ))
}

#[cfg(test)]
mod tests;
