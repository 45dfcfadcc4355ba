//! The all-versions feed: the events, and the orders in which a feed may show them (TTL-250, TTL-274, P7).

use super::Version;

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Created,
    Replaced,
    Deleted,
    Purged,
}

/// An event of an item.
#[derive(Debug, Clone)]
pub struct Event {
    pub happened: Happened,
    /// The second of the commit.
    pub at: i64,
    /// The new version, or the version that was removed.
    pub version: Version,
    /// The previous version.
    pub before: Option<Version>,
    /// Events with the same number may appear in any order: those of one purge.
    pub turn: u64,
}

impl Event {
    /// Returns what identifies the event: no version is created or removed twice.
    pub fn name(&self) -> (Happened, String) {
        (self.happened, self.version.etag.clone())
    }
}

/// All events so far, in the order of commit within a range.
#[derive(Debug, Clone, Default)]
pub struct Events {
    all: Vec<Event>,
    turn: u64,
}

impl Events {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn from(&self, start: usize) -> impl Iterator<Item = (usize, &Event)> {
        self.all.iter().enumerate().skip(start)
    }

    /// Begins a group of events that may be shown in any order.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Records that ghosts were removed.
    pub fn purged(&mut self, at: i64, ghosts: &[Version]) {
        for ghost in ghosts {
            self.push(Happened::Purged, at, ghost.clone(), Some(ghost.clone()));
        }
    }

    /// Records that items deleted with their partition key were removed.
    pub fn removed(&mut self, at: i64, dropped: &[Version]) {
        for version in dropped {
            self.push(Happened::Deleted, at, version.clone(), Some(version.clone()));
        }
    }

    /// Records that a version replaced another.
    pub fn written(&mut self, at: i64, version: Option<Version>, before: Option<Version>) {
        self.turn += 1;
        let happened = match (&version, &before) {
            (Some(_), None) => Happened::Created,
            (Some(_), Some(_)) => Happened::Replaced,
            (None, _) => Happened::Deleted,
        };
        let version = version.or_else(|| before.clone()).expect("something happened");
        self.push(happened, at, version, before);
    }

    fn push(&mut self, happened: Happened, at: i64, version: Version, before: Option<Version>) {
        let turn = self.turn;
        self.all.push(Event {
            happened,
            at,
            version,
            before,
            turn,
        });
    }
}
