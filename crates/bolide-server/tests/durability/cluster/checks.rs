//! What must hold in the end, when everything runs and nobody writes: of the servers, and of all that clients were told.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::clients::{Item, Place, Session, Shown};
use super::feeds::{self, Row};
use super::history::{Call, End, Ends, Made, Outcome, Rule, Time, Version, by_item, explain};
use super::roles::{CLEARING, Change};
use crate::client::Request;
use crate::wire::text;

/// The clock of the test and that of the database are the same one, and are read at different moments.
const SLACK: Time = 250_000;
const SECOND: Time = 1_000_000;
/// The purge takes less.
const PURGE_LIMIT: Time = 30 * SECOND;
/// The containers that have items.
const WITH_ITEMS: [Place; 3] = [Place::Items, Place::Created, Place::Cleared];

/// Waits until every server says that nothing is left to purge.
pub fn wait_for_purge(session: &mut Session<'_>) {
    let began = session.run.now();
    for place in Place::ALL {
        for server in 0..session.run.nodes.len() {
            let figures = Request::get(&format!("/_bolide{}/ttl", place.path()));
            loop {
                let figures = session.insist_of(server, &figures).json();
                if figures["backlogItems"] == 0 {
                    break;
                }
                if session.run.now() > began + PURGE_LIMIT {
                    session.run.fail(format!(
                        "server {server} still has something to purge in {place:?}: {figures}"
                    ));
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Each server checks each container.
pub fn verify(session: &mut Session<'_>) {
    for place in Place::ALL {
        for server in 0..session.run.nodes.len() {
            let report = Request::post(&format!("/_bolide{}/verify", place.path()), "");
            let report = session.insist_of(server, &report).json();
            if report["ok"] != true {
                session
                    .run
                    .fail(format!("server {server} finds problems in {place:?}: {report}"));
            }
        }
    }
}

/// Reads all items through each server, as calls of the history. Returns those that are there.
pub fn read_all(session: &mut Session<'_>, known: &[Item]) -> BTreeMap<Item, u64> {
    let mut live = BTreeMap::new();
    for server in 0..session.run.nodes.len() {
        for place in WITH_ITEMS {
            let began = session.run.now();
            let mut there: BTreeMap<String, Version> = BTreeMap::new();
            for item in list(session, server, place) {
                let id = text(&item, "id").to_owned();
                let version = session.see(place, &item);
                if there.insert(id, version).is_some() {
                    session
                        .run
                        .fail(format!("server {server} lists an item of {place:?} twice: {item}"));
                }
            }
            let ended = session.run.now();
            for item in known.iter().filter(|(of, _)| *of == place) {
                let version = there.remove(&item.1);
                let outcome = version.map_or(Outcome::Missing, Outcome::Found);
                session.note(server, item, Call::Read, began, ended, outcome);
                if let Some(version) = version {
                    live.insert(item.clone(), version.value);
                }
            }
            if let Some(id) = there.keys().next() {
                session.run.fail(format!(
                    "server {server} lists {id} of {place:?}, which nobody wrote or which was refused"
                ));
            }
        }
    }
    live
}

fn list(session: &mut Session<'_>, server: usize, place: Place) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut continuation: Option<String> = None;
    loop {
        let mut request = Request::get(&format!("{}/docs", place.path())).header("x-ms-max-item-count", "500");
        if let Some(continuation) = &continuation {
            request = request.header("x-ms-continuation", continuation);
        }
        let response = session.insist_of(server, &request);
        items.extend(response.json()["Documents"].as_array().expect("a list").iter().cloned());
        continuation = response.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return items;
        }
    }
}

/// All that was seen.
pub struct Evidence {
    pub calls: Vec<(Item, Made)>,
    pub shown: Vec<Shown>,
    pub changes: Vec<Change>,
    /// What is there in the end.
    pub live: BTreeMap<Item, u64>,
    /// The latest-version feed of [`Place::Created`], by range.
    pub created: Vec<Vec<Row>>,
    /// The all-versions feed of [`Place::Items`], by range.
    pub versions: Vec<Vec<Row>>,
}

impl Evidence {
    /// Whether one order of all calls explains it, and the feeds show each change once.
    pub fn check(&self) -> Vec<String> {
        let ends = self.ends();
        let items = by_item(self.calls.iter().cloned());
        let (mut failures, mut late) = (Vec::new(), Vec::new());
        for (item, calls) in &items {
            let Err(why) = explain(calls, &ends, Rule::Strict) else {
                continue;
            };
            match explain(calls, &ends, Rule::LateWrites) {
                Ok(()) => late.push(why),
                Err(why) => failures.push(format!("{item:?}: {why}")),
            }
        }
        if let Some(first) = late.first() {
            let count = late.len();
            println!(
                "{count} items were written after somebody had called them gone, by writes from before their end: {first}"
            );
        }
        let of = |place: Place| -> BTreeMap<String, Vec<Made>> {
            let of = items.iter().filter(|((of, _), _)| *of == place);
            of.map(|((_, id), calls)| (id.clone(), calls.clone())).collect()
        };
        let (items, created) = (of(Place::Items), of(Place::Created));
        let live = self.live.iter().filter(|((place, _), _)| *place == Place::Items);
        let live = live.map(|((_, id), value)| (id.clone(), *value)).collect();
        let feeds = [
            ("latest versions", feeds::check(&self.created, &created)),
            ("all versions", feeds::check(&self.versions, &items)),
            ("all versions", feeds::check_lives(&self.versions, &items, &live)),
        ];
        failures.extend(
            feeds
                .into_iter()
                .filter_map(|(feed, checked)| Some(format!("{feed}: {}", checked.err()?))),
        );
        failures
    }

    fn ends(&self) -> Ends {
        let settings = self.calls.iter().filter(|((place, _), _)| *place == Place::Settings);
        let mut ends: Ends = settings
            .filter_map(|(_, made)| Some((made.call.value()?, End::NEVER)))
            .collect();
        for shown in &self.shown {
            let after = |seconds: i64| (shown.written + seconds) * SECOND;
            let end = match (shown.place, shown.ttl) {
                (Place::Items, Some(ttl)) => End {
                    from: after(ttl) - SLACK,
                    until: after(ttl) + SLACK,
                },
                (Place::Cleared, _) => end_by_changes(after(CLEARING), &self.changes),
                _ => End::NEVER,
            };
            ends.insert(shown.value, end);
        }
        ends
    }
}

/// When a version of [`Place::Cleared`] ends that is due from a time on, whenever the settings let it end.
fn end_by_changes(due: Time, changes: &[Change]) -> End {
    let mut end = End::NEVER;
    for (at, change) in changes.iter().enumerate().filter(|(_, change)| change.clears) {
        let mut undoing = changes[at + 1..].iter().filter(|later| !later.clears);
        let undone_from = undoing.clone().next().map_or(Time::MAX, |later| later.began);
        let undone_until = undoing
            .find(|later| later.is_acknowledged)
            .map_or(Time::MAX, |later| later.ended);
        let may_end = change.began.max(due - SLACK);
        if may_end <= undone_until {
            end.from = end.from.min(may_end);
        }
        let has_ended = change.ended.max(due + SLACK);
        if change.is_acknowledged && has_ended < undone_from {
            end.until = end.until.min(has_ended);
        }
    }
    end
}

mod tests {
    use super::*;

    fn change(began: Time, clears: bool, is_acknowledged: bool) -> Change {
        Change {
            began,
            ended: began + SECOND,
            is_acknowledged,
            clears,
        }
    }

    #[test]
    fn items_end_by_the_settings_that_are_in_force_when_they_are_due() {
        let second = |seconds: i64| seconds * SECOND;
        let changes = [change(second(10), true, true), change(second(20), false, true)];
        let early = end_by_changes(second(5), &changes);
        assert_eq!((early.from, early.until), (second(10), second(11)));
        let between = end_by_changes(second(15), &changes);
        assert_eq!((between.from, between.until), (second(15) - SLACK, second(15) + SLACK));
        assert_eq!(
            end_by_changes(second(25), &changes),
            End::NEVER,
            "the settings of before are back"
        );
        let doubtful = [change(second(10), true, false), change(second(20), false, true)];
        let end = end_by_changes(second(5), &doubtful);
        assert_eq!((end.from, end.until), (second(10), Time::MAX));
        let undone_perhaps = [change(second(10), true, true), change(second(20), false, false)];
        let end = end_by_changes(second(25), &undone_perhaps);
        assert_eq!((end.from, end.until), (second(25) - SLACK, Time::MAX));
    }
}
