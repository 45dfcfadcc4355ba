use bolide_model::ttl::{DateHorizon, Horizon, RuleId};
use bolide_model::{Lsn, UnixSeconds};

use super::*;
use crate::format::keys::DeadlinePosition;
use crate::partition::tombstones::{HiddenItems, PartitionKeyTombstone};

#[test]
fn a_stored_row_gives_back_what_it_was_made_of() {
    let version = LogPosition { lsn: Lsn(4), seq: 5 };
    let purge = Cursors {
        log: version,
        expiry: ExpiryPosition {
            base: UnixSeconds(-3),
            version,
        },
    };
    let mut tombstones = PartitionKeyTombstones::default();
    for epk in ["ab", "c"] {
        tombstones.push(PartitionKeyTombstone {
            epk: epk.into(),
            from: format!("{epk}x").into(),
            upto: Lsn(9),
            horizon: Horizon {
                inherited: -1,
                own: 7,
                dates: DateHorizon::default(),
            },
            hidden: HiddenItems::default(),
        });
    }
    let mut told_dates = DateCursors::default();
    for rule in [3, 7] {
        told_dates.raise(DeadlinePosition::first(RuleId(rule)).next());
    }
    let state = PartitionState {
        stored: Amount { items: 1, bytes: 2 },
        next_number: 3,
        purged_total: 6,
        spent_total: RequestUnits(7.5),
        billed_total: RequestUnits(8.25),
        purge,
        date_purge: DateCursors::default(),
        purge_turn: 0,
        history_from: LogPosition { lsn: Lsn(2), seq: 1 },
        history_after: CommitTime(8),
        history_last: CommitTime(9),
        history_happened: UnixMillis(10),
        told: purge,
        told_dates,
        texts: TextCounters::of_all(&[(7, 12)]),
        marked: CommitTime::default(),
        tombstones,
        ghosts: Ghosts::behind(purge),
        tally: None,
        forecast: None,
        seal: None,
    };
    assert_eq!(PartitionState::decode(&state.encode()), Ok(state.clone()));
    // The counters of one full-text index.
    let (texts, texts_bytes) = (BYTES + 2 * DeadlinePosition::BYTES, 2 + 14);
    let mut third = state.encode().to_vec();
    third.drain(texts..texts + texts_bytes);
    third[0] = FORMAT_3;
    let without_texts = PartitionState {
        texts: TextCounters::default(),
        ..state.clone()
    };
    assert_eq!(PartitionState::decode(&third), Ok(without_texts.clone()));
    let mut second = state.encode()[..BYTES_2].to_vec();
    second.extend_from_slice(&third[texts..]);
    second[0] = FORMAT_2;
    let without_times = PartitionState {
        history_after: CommitTime(0),
        history_last: CommitTime(0),
        history_happened: UnixMillis(0),
        told: Cursors::default(),
        told_dates: DateCursors::default(),
        ..without_texts
    };
    assert_eq!(PartitionState::decode(&second), Ok(without_times.clone()));
    let mut older = state.encode()[..BYTES_1].to_vec();
    older[0] = FORMAT_1;
    let before_histories = PartitionState {
        history_from: LogPosition::default(),
        tombstones: PartitionKeyTombstones::default(),
        ..without_times
    };
    assert_eq!(PartitionState::decode(&older), Ok(before_histories));
}

#[test]
fn damaged_rows_are_errors() {
    let row = PartitionState::default().encode();
    for length in 0..row.len() {
        assert!(PartitionState::decode(&row[..length]).is_err(), "{length}");
    }
    for counter in 0..4 {
        let mut row = row.to_vec();
        row[1 + counter * 8] = 0xFF;
        assert!(
            PartitionState::decode(&row).is_err(),
            "counter {counter} would overflow"
        );
    }
}
