//! What readers of the change feed were given, and the check that it is each change exactly once and in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::history::{Call, Made, Outcome, Time};

/// One change of the all-versions feed, or an item of the latest-version feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Created(u64),
    Replaced(u64),
    Deleted {
        /// By its ttl.
        expired: bool,
    },
}

impl Kind {
    fn value(self) -> Option<u64> {
        match self {
            Kind::Created(value) | Kind::Replaced(value) => Some(value),
            Kind::Deleted { .. } => None,
        }
    }
}

/// Checks the rows of one or more ranges, each in its order, against the calls of each item.
///
/// # Errors
/// An acknowledged write that is missing, a change that is there twice or that nobody made, or an order that contradicts that of the calls.
pub fn check(ranges: &[Vec<Row>], items: &BTreeMap<String, Vec<Made>>) -> Result<(), String> {
    let writes: HashMap<u64, (&str, &Made)> = items
        .iter()
        .flat_map(|(id, calls)| calls.iter().map(move |made| (id.as_str(), made)))
        .filter_map(|(id, made)| Some((made.call.value()?, (id, made))))
        .collect();
    let mut shown = BTreeSet::new();
    for (range, rows) in ranges.iter().enumerate() {
        let mut latest = Time::MIN;
        for row in rows {
            let Some(value) = row.kind.value() else { continue };
            if !shown.insert(value) {
                return Err(format!("range {range} shows {row:?} twice"));
            }
            let Some((id, made)) = writes.get(&value).filter(|(id, _)| *id == row.id) else {
                return Err(format!(
                    "range {range} shows {row:?}, which nobody wrote or which was refused"
                ));
            };
            if made.outcome == Outcome::Present || made.outcome == Outcome::Missing {
                return Err(format!("range {range} shows {row:?}, and the answer was {made:?}"));
            }
            if made.outcome != Outcome::Unknown && made.ended < latest {
                return Err(format!(
                    "range {range} shows {id}, {made:?}, after what began later than its end, at {latest}"
                ));
            }
            latest = latest.max(made.began);
        }
    }
    let is_acknowledged = |made: &Made| matches!(made.outcome, Outcome::Stored { .. });
    for (value, (id, made)) in &writes {
        if is_acknowledged(made) && !shown.contains(value) {
            return Err(format!("the feed does not show {id}, {made:?}"));
        }
    }
    Ok(())
}

/// Checks that the versions of each item begin with a create and end with a delete, that each acknowledged delete shows once, and that only items that
/// are gone end with a delete.
///
/// # Errors
/// The item for which that is not so.
pub fn check_lives(
    ranges: &[Vec<Row>],
    items: &BTreeMap<String, Vec<Made>>,
    live: &BTreeMap<String, u64>,
) -> Result<(), String> {
    let mut rows: BTreeMap<&str, Vec<Kind>> = BTreeMap::new();
    for row in ranges.iter().flatten() {
        rows.entry(&row.id).or_default().push(row.kind);
    }
    for (id, kinds) in &rows {
        let mut value = None;
        for kind in kinds {
            let fits = match kind {
                Kind::Created(_) => value.is_none(),
                Kind::Replaced(_) | Kind::Deleted { .. } => value.is_some(),
            };
            if !fits {
                return Err(format!("{id}: {kind:?} does not follow what was before, in {kinds:?}"));
            }
            value = kind.value();
        }
        if value != live.get(*id).copied() {
            return Err(format!(
                "{id} is {:?} and its feed ends differently: {kinds:?}",
                live.get(*id)
            ));
        }
        let deletes = kinds
            .iter()
            .filter(|kind| **kind == Kind::Deleted { expired: false })
            .count();
        let asked = |outcome: Outcome| {
            let calls = items.get(*id).into_iter().flatten();
            calls
                .filter(|made| made.call == Call::Delete && made.outcome == outcome)
                .count()
        };
        let (certain, possible) = (asked(Outcome::Deleted), asked(Outcome::Unknown));
        if !(certain..=certain + possible).contains(&deletes) {
            return Err(format!(
                "{id}: {certain} to {} deletes, and the feed shows {deletes}: {kinds:?}",
                certain + possible
            ));
        }
    }
    match live.keys().find(|id| !rows.contains_key(id.as_str())) {
        Some(id) => Err(format!("{id} is there, and the feed does not show it")),
        None => Ok(()),
    }
}

mod tests {
    use super::*;

    fn made(began: Time, call: Call, outcome: Outcome) -> Made {
        Made {
            client: 0,
            server: 0,
            began,
            ended: began + 1,
            call,
            outcome,
        }
    }

    const STORED: Outcome = Outcome::Stored {
        created: true,
        patches: 0,
    };

    /// `a` created, `b` created, `c` perhaps; `d` was there already.
    fn items() -> BTreeMap<String, Vec<Made>> {
        BTreeMap::from([
            ("a".to_owned(), vec![made(0, Call::Create(1), STORED)]),
            ("b".to_owned(), vec![made(5, Call::Create(2), STORED)]),
            ("c".to_owned(), vec![made(5, Call::Create(3), Outcome::Unknown)]),
            ("d".to_owned(), vec![made(5, Call::Create(4), Outcome::Present)]),
        ])
    }

    fn row(id: &str, kind: Kind) -> Row {
        Row {
            id: id.to_owned(),
            kind,
        }
    }

    fn created(id: &str, value: u64) -> Row {
        row(id, Kind::Created(value))
    }

    fn fits(rows: &[Row]) -> bool {
        check(&[rows.to_vec()], &items()).is_ok()
    }

    #[test]
    fn a_feed_shows_each_acknowledged_write_once() {
        let (a, b, c) = (created("a", 1), created("b", 2), created("c", 3));
        assert!(fits(&[a.clone(), b.clone()]) && fits(&[a.clone(), c.clone(), b.clone()]));
        assert!(!fits(std::slice::from_ref(&a)), "one is missing");
        assert!(!fits(&[a.clone(), b.clone(), b.clone()]), "one is there twice");
        assert!(!fits(&[a.clone(), b.clone(), c.clone(), c]), "one is there twice");
        assert!(!fits(&[b.clone(), a.clone()]), "the order is wrong");
        assert!(!fits(&[a.clone(), b.clone(), created("d", 4)]), "one was refused");
        assert!(!fits(&[a, b, created("e", 5)]), "nobody wrote one");
    }

    #[test]
    fn lives_begin_with_a_create_and_end_with_a_delete() {
        let items = BTreeMap::from([(
            "a".to_owned(),
            vec![
                made(0, Call::Upsert(1), STORED),
                made(5, Call::Delete, Outcome::Deleted),
            ],
        )]);
        let fits = |kinds: &[Kind], live: &[(&str, u64)]| {
            let rows: Vec<Row> = kinds.iter().map(|kind| row("a", *kind)).collect();
            let live = live.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect();
            check_lives(&[rows], &items, &live).is_ok()
        };
        let deleted = Kind::Deleted { expired: false };
        let expired = Kind::Deleted { expired: true };
        assert!(fits(&[Kind::Created(1), deleted], &[]));
        assert!(fits(&[Kind::Created(1), deleted, Kind::Created(2)], &[("a", 2)]));
        assert!(!fits(&[Kind::Created(1), deleted], &[("a", 1)]));
        assert!(!fits(&[Kind::Created(1), expired], &[]), "the delete is missing");
        assert!(!fits(&[Kind::Created(1), deleted, expired], &[]), "it ends twice");
        assert!(!fits(&[deleted, Kind::Created(1), deleted], &[]));
        assert!(!fits(&[Kind::Created(1), Kind::Created(2), deleted], &[]));
        assert!(!fits(&[Kind::Created(1), deleted], &[("b", 2)]), "an item has no row");
    }
}
