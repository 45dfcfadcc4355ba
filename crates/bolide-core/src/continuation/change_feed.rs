//! Positions of change feeds: how far each range of a scope was read, and the continuation that says so.

use bolide_model::{Error, Lsn, Result};

/// The next LSN to be read of one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeFeedPosition {
    pub range: u32,
    pub next: Lsn,
}

/// `57` for one range, `0:57,2:9` for several: what has been consumed, as the service shows it.
pub(crate) fn encode(positions: &[ChangeFeedPosition]) -> String {
    let consumed = |position: &ChangeFeedPosition| position.next.0.saturating_sub(1);
    match positions {
        [] => "0".to_owned(),
        [only] => consumed(only).to_string(),
        several => {
            let parts: Vec<String> = several
                .iter()
                .map(|position| format!("{}:{}", position.range, consumed(position)))
                .collect();
            parts.join(",")
        }
    }
}

pub(crate) fn decode(text: &str) -> Result<Vec<ChangeFeedPosition>> {
    let refused = || {
        Error::bad_request(format!(
            "Invalid Continuation Token: '{text}' is none of a change feed."
        ))
    };
    let text = text.trim().trim_matches('"');
    let position = |range: u32, consumed: &str| {
        let consumed: u64 = consumed.parse().map_err(|_| refused())?;
        Ok(ChangeFeedPosition {
            range,
            next: Lsn(consumed.checked_add(1).ok_or_else(refused)?),
        })
    };
    if !text.contains(':') {
        return Ok(vec![position(0, text)?]);
    }
    let parts = text.split(',').map(|part| {
        let (range, consumed) = part.split_once(':').ok_or_else(refused)?;
        position(range.parse().map_err(|_| refused())?, consumed)
    });
    parts.collect()
}

/// Where a range goes on: its own position, or that of the youngest ancestor the continuation knows. A token of one position is for whatever
/// range it is sent to, as the service's are.
pub(crate) fn resume(range: u32, parents: &[u32], known: &[ChangeFeedPosition]) -> Lsn {
    if let [only] = known {
        return only.next;
    }
    let place_of = |range: u32| {
        known
            .iter()
            .find(|position| position.range == range)
            .map(|position| position.next)
    };
    let own_then_ancestors = std::iter::once(range).chain(parents.iter().rev().copied());
    own_then_ancestors.into_iter().find_map(place_of).unwrap_or_default()
}

#[cfg(test)]
mod tests;
