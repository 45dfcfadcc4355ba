//! Positions in the order of all changes, and their bytes, which clients keep to go on later.
//!
//! ```text
//!   time(8) ‖ 01 ‖ container(8) ‖ lsn(8) ‖ seq(4)     after one change
//!   time(8) ‖ FF                                      after everything up to a time
//! ```
//!
//! The byte order is the order of the positions.

use bolide_model::Lsn;
use bolide_model::time::CommitTime;

use crate::format::keys::LogPosition;

const CHANGE: u8 = 0x01;
const EVERYTHING: u8 = 0xFF;

/// A position between changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPosition {
    time: CommitTime,
    place: Place,
}

/// A place among the changes of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// After a change: that of a container, or of the catalog, whose number is 0.
    Change { container: u64, version: LogPosition },
    /// After all of them.
    End,
}

impl StreamPosition {
    /// The position after everything up to a time.
    pub fn after(time: CommitTime) -> StreamPosition {
        StreamPosition {
            time,
            place: Place::End,
        }
    }

    /// The position before everything at a time.
    pub fn before(time: CommitTime) -> StreamPosition {
        StreamPosition::after(time.before())
    }

    pub(super) fn of_change(time: CommitTime, container: u64, version: LogPosition) -> StreamPosition {
        let place = Place::Change { container, version };
        StreamPosition { time, place }
    }

    /// Returns the time of the change before the position.
    pub fn time(self) -> CommitTime {
        self.time
    }

    /// Returns the bytes that clients keep.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.time.0.to_be_bytes().to_vec();
        match self.place {
            Place::End => bytes.push(EVERYTHING),
            Place::Change { container, version } => {
                bytes.push(CHANGE);
                bytes.extend(container.to_be_bytes());
                bytes.extend(version.lsn.0.to_be_bytes());
                bytes.extend(version.seq.to_be_bytes());
            }
        }
        bytes
    }

    /// Reads what [`StreamPosition::to_bytes`] has written; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<StreamPosition> {
        let (time, rest) = bytes.split_first_chunk()?;
        let (kind, rest) = rest.split_first()?;
        let place = match *kind {
            EVERYTHING if rest.is_empty() => Place::End,
            CHANGE => {
                let (container, rest) = rest.split_first_chunk()?;
                let (lsn, seq) = rest.split_first_chunk()?;
                Place::Change {
                    container: u64::from_be_bytes(*container),
                    version: LogPosition {
                        lsn: Lsn(u64::from_be_bytes(*lsn)),
                        seq: u32::from_be_bytes(seq.try_into().ok()?),
                    },
                }
            }
            _ => return None,
        };
        Some(StreamPosition {
            time: CommitTime(u64::from_be_bytes(*time)),
            place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions() -> Vec<StreamPosition> {
        let change = |time, container, lsn, seq| {
            let version = LogPosition { lsn: Lsn(lsn), seq };
            StreamPosition::of_change(CommitTime(time), container, version)
        };
        vec![
            StreamPosition::before(CommitTime(5)),
            change(5, 0, 9, 1),
            change(5, 1, 2, 3),
            change(5, 1, 2, 4),
            change(5, 1, 3, 0),
            StreamPosition::after(CommitTime(5)),
            change(6, 0, 0, 0),
        ]
    }

    #[test]
    fn bytes_are_in_the_order_of_positions() {
        let positions = positions();
        assert!(positions.is_sorted());
        let bytes: Vec<_> = positions.iter().map(|position| position.to_bytes()).collect();
        assert!(bytes.is_sorted(), "{bytes:?}");
    }

    #[test]
    fn only_whole_positions_are_read() {
        for position in positions() {
            let bytes = position.to_bytes();
            assert_eq!(StreamPosition::from_bytes(&bytes), Some(position));
            for length in 0..bytes.len() {
                assert_eq!(StreamPosition::from_bytes(&bytes[..length]), None, "{length}");
            }
            assert_eq!(StreamPosition::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }
    }
}
