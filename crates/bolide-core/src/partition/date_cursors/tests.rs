use bolide_model::ttl::Deadline;
use bolide_model::{Lsn, UnixMillis};

use super::*;
use crate::format::keys::LogPosition;

fn at(rule: u32, date: i64) -> DeadlinePosition {
    DeadlinePosition {
        deadline: Deadline {
            rule: RuleId(rule),
            date: UnixMillis(date),
        },
        version: LogPosition { lsn: Lsn(7), seq: 0 },
    }
}

#[test]
fn each_rule_has_a_position_of_its_own() {
    let mut cursors = DateCursors::default();
    assert!(!cursors.have_passed(&at(1, i64::MIN)));
    cursors.raise(at(2, 50));
    cursors.raise(at(1, -50));
    cursors.raise(at(2, 40));
    assert_eq!((cursors.of(RuleId(1)), cursors.of(RuleId(2))), (at(1, -50), at(2, 50)));
    assert_eq!(cursors.of(RuleId(3)), DeadlinePosition::first(RuleId(3)));
    for (entry, is_passed) in [
        (at(2, 49), true),
        (at(2, 50), false),
        (at(1, -51), true),
        (at(1, 49), false),
        (at(3, i64::MIN), false),
    ] {
        assert_eq!(cursors.have_passed(&entry), is_passed, "{entry:?}");
    }
}

#[test]
fn a_new_entry_behind_a_position_lowers_it() {
    let mut cursors = DateCursors::default();
    cursors.lower(at(1, 5));
    assert!(cursors.are_at_start());
    cursors.raise(at(1, 50));
    cursors.lower(at(1, 60));
    assert_eq!(cursors.of(RuleId(1)), at(1, 50));
    cursors.lower(at(1, 20));
    assert_eq!(cursors.of(RuleId(1)), at(1, 20));
}
