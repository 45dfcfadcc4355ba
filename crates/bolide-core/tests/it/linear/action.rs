//! The clients' operations, their possible outcomes, and the model that decides which outcomes are allowed.

use std::collections::BTreeMap;

use bolide_model::ErrorKind;

/// The ids of the partition's items.
pub const IDS: [&str; 3] = ["a", "b", "c"];

/// One operation on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Create(Body),
    Upsert(Body),
    Replace(Body, Option<String>),
    /// Adds one to `n`.
    Increment(&'static str, Option<String>),
    Delete(&'static str, Option<String>),
    Read(&'static str),
}

/// An item as a client sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    pub id: &'static str,
    pub n: i64,
    /// The value of the unique key.
    pub u: i64,
    pub ttl: Option<i64>,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    One(Action),
    Batch(Vec<Action>),
    /// A stored procedure that handles the errors of its operations.
    Script(Vec<Action>),
    /// Deletes all items of the partition key.
    DropAll,
    List(Listing),
    /// Reads the latest versions in the change feed, from its beginning to its end.
    Changes,
    /// What [`Call::Changes`] has seen of one item.
    Change(String),
    /// A query for the item with a value of the unique key.
    Find(i64),
    /// A query for the number of items.
    Count,
    /// The figure of quotas for the number of items.
    Usage,
    /// Sets the default ttl of the container, in seconds; -1: items without their own do not end; `None`: no item ends.
    DefaultTtl(Option<i64>),
}

/// A way to read all items of the partition key in one page. All must show the same (P1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    ReadFeed,
    Query,
}

impl Call {
    /// Returns whether the call may change anything.
    pub fn is_write(&self) -> bool {
        match self {
            Call::One(action) => !matches!(action, Action::Read(_)),
            Call::List(_) | Call::Changes | Call::Change(_) | Call::Find(_) | Call::Count | Call::Usage => false,
            Call::Batch(_) | Call::Script(_) | Call::DropAll | Call::DefaultTtl(_) => true,
        }
    }
}

/// The result of an operation that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Written { created: bool, n: i64, etag: String },
    Found { n: i64, u: i64, etag: String },
    Deleted,
}

/// Why an operation was refused, as far as the model distinguishes reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    NotFound,
    Conflict,
    Precondition,
    /// The partition key was deleted too often for the purge to remove its items in time.
    TooManyDeletions,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Seen(Seen),
    Refused(Refused),
    Committed(Vec<Seen>),
    /// The outcome of each operation of a stored procedure.
    Ran(Vec<Result<Seen, Refused>>),
    Dropped,
    /// The default ttl was set.
    Defined,
    /// It was not, because others changed it at the same time.
    NotDefined,
    RolledBack(usize, Refused),
    /// Ids and etags.
    Listed(Vec<(String, String)>),
    Counted(u64),
    /// No answer came: the call was carried out or not.
    Unknown,
}

impl Outcome {
    /// Returns the kind of the call, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Seen(Seen::Written { .. }) => "written",
            Outcome::Seen(Seen::Found { .. }) => "found",
            Outcome::Seen(Seen::Deleted) => "deleted",
            Outcome::Refused(Refused::NotFound) => "NotFound",
            Outcome::Refused(Refused::Conflict) => "Conflict",
            Outcome::Refused(Refused::Precondition) => "Precondition",
            Outcome::Refused(Refused::TooManyDeletions) => "TooManyDeletions",
            Outcome::Committed(_) => "committed",
            Outcome::Ran(_) => "ran",
            Outcome::Dropped => "dropped",
            Outcome::Defined => "defined",
            Outcome::NotDefined => "not defined",
            Outcome::RolledBack(..) => "rolled back",
            Outcome::Listed(_) => "listed",
            Outcome::Counted(_) => "counted",
            Outcome::Unknown => "unknown",
        }
    }
}

impl Refused {
    pub fn of(kind: &ErrorKind) -> Refused {
        match kind {
            ErrorKind::NotFound => Refused::NotFound,
            ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => Refused::Conflict,
            ErrorKind::PreconditionFailed => Refused::Precondition,
            ErrorKind::Forbidden => Refused::TooManyDeletions,
            other => panic!("no call is refused so: {other:?}"),
        }
    }
}

/// An item in the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Item {
    n: i64,
    u: i64,
    ttl: Option<i64>,
    /// `None`: nobody has seen it yet, because no answer to the write came.
    etag: Option<String>,
    written: i64,
}

impl Item {
    /// Returns whether the item may be seen with this etag. If nobody has seen it before, it has this one from now on.
    fn shows(&mut self, etag: &str) -> bool {
        self.etag.get_or_insert_with(|| etag.to_owned()) == etag
    }

    /// Returns whether the item is live (TTL-045). Without a default no item ends.
    fn is_live(&self, now: i64, default: Option<i64>) -> bool {
        match default.map(|default| self.ttl.unwrap_or(default)) {
            None | Some(-1) => true,
            Some(ttl) => now < self.written + ttl,
        }
    }
}

/// The state of the partition and of the container's default ttl in the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    items: BTreeMap<&'static str, Item>,
    default: Option<i64>,
    /// The second of the last call.
    now: i64,
    /// The second of the last write, as its items show it. It may be the one before, because a write takes time.
    stamp: i64,
}

/// When a call takes effect: at which second, and which second its items show.
#[derive(Debug, Clone, Copy)]
pub struct At {
    pub now: i64,
    pub stamp: i64,
}

impl Default for State {
    fn default() -> State {
        State {
            items: BTreeMap::new(),
            default: Some(-1),
            now: i64::MIN,
            stamp: i64::MIN,
        }
    }
}

impl State {
    /// Returns when a call may take effect that began and ended in these seconds: time and stamps do not go back.
    pub fn times(&self, (began, ended): (i64, i64), is_write: bool) -> impl Iterator<Item = At> + use<> {
        let (first, stamped) = (self.now.max(began), self.stamp.max(began));
        (first..=ended).flat_map(move |now| {
            let stamps = if is_write { stamped.max(now - 1) } else { now };
            (stamps..=now).map(move |stamp| At { now, stamp })
        })
    }

    /// Returns the state after a call, or `None` if the call cannot have this outcome in this state.
    pub fn after(&self, at: At, call: &Call, outcome: &Outcome) -> Option<State> {
        let mut after = self.carried_out(at, call, outcome)?;
        after.now = at.now;
        if call.is_write() {
            after.stamp = at.stamp;
        }
        Some(after)
    }

    fn carried_out(&self, at: At, call: &Call, outcome: &Outcome) -> Option<State> {
        let (mut state, now) = (self.clone(), at.now);
        let default = state.default;
        // What has ended by the default of before stays so (TTL-226).
        state.items.retain(|_, item| item.is_live(now, default));
        match (call, outcome) {
            (Call::One(action), Outcome::Seen(seen)) => state.succeeds(at.stamp, action, seen).then_some(state),
            (Call::One(action), Outcome::Refused(why)) => state.refuses(at.stamp, action, *why).then_some(state),
            (Call::Batch(actions), Outcome::Committed(all)) => {
                let mut both = actions.iter().zip(all);
                let fits =
                    actions.len() == all.len() && both.all(|(action, seen)| state.succeeds(at.stamp, action, seen));
                fits.then_some(state)
            }
            (Call::Batch(actions), Outcome::RolledBack(failed, why)) => {
                let before = state.clone();
                let carried_out = actions[..*failed]
                    .iter()
                    .all(|action| state.carry_out(at.stamp, action, None).is_ok());
                (carried_out && state.refuses(at.stamp, &actions[*failed], *why)).then_some(before)
            }
            (Call::Script(actions), Outcome::Ran(all)) => {
                let mut both = actions.iter().zip(all);
                let fits = actions.len() == all.len()
                    && both.all(|(action, ran)| match ran {
                        Ok(seen) => state.succeeds(at.stamp, action, seen),
                        Err(why) => state.refuses(at.stamp, action, *why),
                    });
                fits.then_some(state)
            }
            (Call::DropAll, Outcome::Dropped) => Some(State {
                items: BTreeMap::new(),
                ..state
            }),
            (Call::DefaultTtl(default), Outcome::Defined) => Some(State {
                default: *default,
                ..state
            }),
            (Call::DefaultTtl(_), Outcome::NotDefined) => Some(state),
            (Call::DropAll, Outcome::Refused(Refused::TooManyDeletions)) => Some(state),
            (Call::List(_), Outcome::Listed(listed)) => state.shows(listed, |_, _| true).then_some(state),
            (Call::Change(id), Outcome::Listed(listed)) => state.shows(listed, |other, _| other == id).then_some(state),
            (Call::Find(u), Outcome::Listed(listed)) => state.shows(listed, |_, item| item.u == *u).then_some(state),
            (Call::Count | Call::Usage, Outcome::Counted(count)) => {
                (state.items.len() as u64 == *count).then_some(state)
            }
            (Call::One(action), Outcome::Unknown) => state.carry_out(at.stamp, action, None).is_ok().then_some(state),
            (Call::Batch(actions), Outcome::Unknown) => {
                let mut all = actions.iter();
                all.all(|action| state.carry_out(at.stamp, action, None).is_ok())
                    .then_some(state)
            }
            (Call::DropAll, Outcome::Unknown) => self.carried_out(at, call, &Outcome::Dropped),
            (Call::DefaultTtl(_), Outcome::Unknown) => self.carried_out(at, call, &Outcome::Defined),
            _ => None,
        }
    }

    /// Returns whether the items that are selected may be seen with these etags.
    fn shows(&mut self, listed: &[(String, String)], is_selected: impl Fn(&str, &Item) -> bool) -> bool {
        let items = self.items.iter_mut().filter(|(id, item)| is_selected(id, item));
        let items: Vec<_> = items.collect();
        items.len() == listed.len()
            && items
                .into_iter()
                .zip(listed)
                .all(|((id, item), (shown, etag))| id == shown && item.shows(etag))
    }

    fn succeeds(&mut self, now: i64, action: &Action, seen: &Seen) -> bool {
        let etag = match seen {
            Seen::Written { etag, .. } => Some(etag.as_str()),
            Seen::Found { etag, .. } => {
                let item = self.items.get_mut(action.id());
                if !item.is_some_and(|item| item.shows(etag)) {
                    return false;
                }
                None
            }
            Seen::Deleted => None,
        };
        self.carry_out(now, action, etag).as_ref() == Ok(seen)
    }

    fn refuses(&self, now: i64, action: &Action, why: Refused) -> bool {
        let refused = self.clone().carry_out(now, action, None);
        refused.is_err_and(|reasons| reasons.contains(&why))
    }

    /// Executes an operation. If there are several reasons to refuse it, any of them may be returned.
    fn carry_out(&mut self, now: i64, action: &Action, etag: Option<&str>) -> Result<Seen, Vec<Refused>> {
        match action {
            Action::Create(body) => {
                if self.items.contains_key(body.id) || self.is_taken(body) {
                    return Err(vec![Refused::Conflict]);
                }
                Ok(self.write(now, body, etag))
            }
            Action::Upsert(body) => {
                if self.is_taken(body) {
                    return Err(vec![Refused::Conflict]);
                }
                Ok(self.write(now, body, etag))
            }
            Action::Replace(body, if_match) => {
                let mut reasons = self.check(body.id, if_match.as_deref())?;
                if self.is_taken(body) {
                    reasons.push(Refused::Conflict);
                }
                if reasons.is_empty() {
                    Ok(self.write(now, body, etag))
                } else {
                    Err(reasons)
                }
            }
            Action::Increment(id, if_match) => {
                self.check_only(id, if_match.as_deref())?;
                let item = &self.items[id];
                let body = Body {
                    id,
                    n: item.n + 1,
                    u: item.u,
                    ttl: item.ttl,
                };
                Ok(self.write(now, &body, etag))
            }
            Action::Delete(id, if_match) => {
                self.check_only(id, if_match.as_deref())?;
                self.items.remove(id);
                Ok(Seen::Deleted)
            }
            Action::Read(id) => {
                let item = self.items.get(id).ok_or_else(|| vec![Refused::NotFound])?;
                Ok(Seen::Found {
                    n: item.n,
                    u: item.u,
                    etag: item.etag.clone().unwrap_or_default(),
                })
            }
        }
    }

    /// Returns the reasons to refuse a change of an existing item; fails at once if there is no item.
    fn check(&self, id: &str, if_match: Option<&str>) -> Result<Vec<Refused>, Vec<Refused>> {
        let item = self.items.get(id).ok_or_else(|| vec![Refused::NotFound])?;
        let is_other = if_match.is_some_and(|etag| Some(etag) != item.etag.as_deref());
        Ok(if is_other { vec![Refused::Precondition] } else { vec![] })
    }

    fn check_only(&self, id: &str, if_match: Option<&str>) -> Result<(), Vec<Refused>> {
        let reasons = self.check(id, if_match)?;
        if reasons.is_empty() { Ok(()) } else { Err(reasons) }
    }

    /// Returns whether another live item holds the value of the unique key.
    fn is_taken(&self, body: &Body) -> bool {
        self.items.iter().any(|(id, item)| *id != body.id && item.u == body.u)
    }

    fn write(&mut self, now: i64, body: &Body, etag: Option<&str>) -> Seen {
        let item = Item {
            n: body.n,
            u: body.u,
            ttl: body.ttl,
            etag: etag.map(str::to_owned),
            written: now,
        };
        let created = self.items.insert(body.id, item).is_none();
        Seen::Written {
            created,
            n: body.n,
            etag: etag.unwrap_or_default().to_owned(),
        }
    }
}
