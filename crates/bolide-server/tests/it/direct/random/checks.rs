//! What is compared with the model after each step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::model::{Event, Name, Version};
use super::program::{IDS, KEYS, Match, sent};
use super::runner::Runner;
use crate::direct::call::Operation;
use crate::direct::frames::Answer;
use crate::direct::sdk::{changes, item, items, query};

impl Runner {
    /// P1, P2, P3 and P7.
    pub(super) fn check(&mut self) {
        // Who asked learns what is missing from now on.
        let missing: Vec<(String, Name)> = self
            .etags
            .iter()
            .filter(|(etag, _)| !self.model.live_items().any(|live| live.etag.as_ref() == Some(*etag)))
            .map(|(etag, name)| (etag.clone(), *name))
            .collect();
        self.check_time();
        self.check_points();
        for range in self.followers.keys().copied().collect::<Vec<_>>() {
            self.check_range(range);
        }
        self.gone.extend(missing);
        self.watch();
        let want: BTreeMap<_, _> = self
            .model
            .events
            .iter()
            .filter(|(_, events)| !events.is_empty())
            .collect();
        assert_eq!(self.events.iter().collect::<BTreeMap<_, _>>(), want, "P7: events");
    }

    /// P3: server time is the model's, which never falls.
    fn check_time(&mut self) {
        assert_eq!(self.server_time(), self.model.now_ms, "P3: server time");
    }

    /// Reads some names, with and without a condition: a ghost is missing, and not unchanged (TTL-236).
    fn check_points(&mut self) {
        for _ in 0..3 {
            let name = (
                KEYS[self.choices.usize(..KEYS.len())],
                IDS[self.choices.usize(..IDS.len())],
            );
            let read = item(Operation::Read, sent(name.0), name.1);
            let etag = self.etag(name, Match::Newest).filter(|_| self.choices.bool());
            let answer = self.sdk.read(match &etag {
                Some(etag) => read.matching(etag),
                None => read,
            });
            match self.model.live(name).cloned() {
                Some(live) if etag.is_some() && live.etag == etag => drop(answer.expect(304)),
                Some(_) => self.same_item(&answer.expect(200).json()),
                None => drop(answer.expect(404)),
            }
        }
    }

    fn check_range(&mut self, range: u32) {
        let is_here = |runner: &Runner, name: Name| runner.sdk.range_of(sent(name.0)) == range;
        let live: Vec<Version> = self
            .model
            .live_items()
            .filter(|version| is_here(self, version.name))
            .cloned()
            .collect();
        let names: BTreeSet<Name> = live.iter().map(|version| version.name).collect();
        assert_eq!(names.len(), live.len());
        let size = self.choices.u32(1..=4);

        let counted = self.sdk.read(query("SELECT VALUE COUNT(1) FROM c", range)).expect(200);
        assert_eq!(counted.json()["Documents"], serde_json::json!([live.len()]), "count");
        let queried = self.pages(size, || query("SELECT * FROM c", range));
        self.same_items("query", &queried, &names);
        let listed = self.pages(size, || items(Operation::ReadFeed).range(range));
        self.same_items("feed", &listed, &names);

        // All latest versions, in the order of their writes; then those since the last time.
        let mut by_write = live;
        by_write.sort_by_key(|version| version.order);
        let (all, _) = self.followed(range, None, size);
        self.same_order("changes", &all, &by_write);
        let follower = self.followers[&range].clone();
        let (new, etag) = self.followed(range, follower.etag, size);
        by_write.retain(|version| version.order > follower.done);
        self.same_order("new changes", &new, &by_write);
        let mut written = follower.written;
        for item in &new {
            let at = item["_ts"].as_i64().expect("seconds");
            assert!(at >= written, "P3: {at} follows {written}");
            written = at;
        }
        let follower = super::runner::Follower {
            etag: Some(etag),
            done: self.model.writes,
            written,
        };
        self.followers.insert(range, follower);
    }

    /// All items of a feed or query, page by page.
    fn pages(&mut self, size: u32, call: impl Fn() -> crate::direct::call::Call) -> Vec<Value> {
        let mut found = Vec::new();
        let mut continuation: Option<String> = None;
        loop {
            let call = match &continuation {
                Some(continuation) => call().page(size).continuing(continuation),
                None => call().page(size),
            };
            let answer = self.sdk.read(call).expect(200);
            let page = documents(&answer);
            assert!(
                page.len() <= usize::try_from(size).expect("short"),
                "{} items",
                page.len()
            );
            found.extend(page);
            continuation = answer.find(0x03).filter(|text| !text.is_empty()).map(str::to_owned);
            if continuation.is_none() {
                return found;
            }
        }
    }

    /// All changes after a position, page by page, and the position after them.
    fn followed(&mut self, range: u32, from: Option<String>, size: u32) -> (Vec<Value>, String) {
        let (mut found, mut from) = (Vec::new(), from);
        loop {
            let answer = self.sdk.read(changes(range, from.as_deref()).page(size));
            let etag = answer.find(0x04).expect("a position").to_owned();
            if answer.head.status() == 304 {
                return (found, etag);
            }
            let answer = answer.expect(200);
            found.extend(documents(&answer));
            from = Some(etag);
        }
    }

    fn same_items(&self, what: &str, found: &[Value], names: &BTreeSet<Name>) {
        let got: Vec<Name> = found.iter().map(name_of).collect();
        let once: BTreeSet<Name> = got.iter().copied().collect();
        assert_eq!((got.len(), &once), (names.len(), names), "{what}: {got:?}");
        found.iter().for_each(|item| self.same_item(item));
    }

    fn same_order(&self, what: &str, found: &[Value], want: &[Version]) {
        let got: Vec<Name> = found.iter().map(name_of).collect();
        let want: Vec<Name> = want.iter().map(|version| version.name).collect();
        assert_eq!(got, want, "{what}");
        found.iter().for_each(|item| self.same_item(item));
    }

    /// Checks that an item is the live version of its name.
    pub(super) fn same_item(&self, item: &Value) {
        let name = name_of(item);
        let etag = item["_etag"].as_str().expect("an etag");
        assert!(!self.gone.contains_key(etag), "P2: {item} was missing and is back");
        let live = self.model.live(name).unwrap_or_else(|| panic!("{item} is expired"));
        assert_eq!(live.etag.as_deref(), Some(etag), "{item}");
        assert_eq!(item["_ts"], live.written, "{item}");
        let is_own = |(name, _): &(&String, &Value)| !name.starts_with('_');
        let members = item.as_object().expect("an object").iter().filter(is_own);
        let own: Map<String, Value> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
        assert_eq!(own, live.body, "{item}");
    }

    /// Reads on in the all-versions feeds.
    pub(super) fn watch(&mut self) {
        for (range, mut from) in self.watchers.clone() {
            let mut last = 0;
            loop {
                let page = self.versions_after(range, &from);
                page.header("etag").expect("a position").clone_into(&mut from);
                if page.status == 304 {
                    break;
                }
                for row in page.expect(200).json()["Documents"].as_array().expect("rows") {
                    let lsn = row["metadata"]["lsn"].as_i64().expect("an lsn");
                    assert!(lsn >= last, "{lsn} follows {last}");
                    last = lsn;
                    self.note_event(row);
                }
            }
            self.watchers.insert(range, from);
        }
    }

    fn note_event(&mut self, row: &Value) {
        let metadata = &row["metadata"];
        let is_expired = metadata["timeToLiveExpired"] == true;
        let kind = match metadata["operationType"].as_str().expect("text") {
            "create" => "create",
            "replace" => "replace",
            "delete" if is_expired => "expired",
            "delete" => "delete",
            other => panic!("{other}"),
        };
        let name = match kind {
            "delete" | "expired" => named(&metadata["partitionKey"]["pk"], &metadata["id"]),
            _ => name_of(&row["current"]),
        };
        let events = self.events.entry(name).or_default();
        events.push(Event {
            kind,
            at: metadata["crts"].as_i64().expect("seconds"),
            n: row["current"]["n"].clone(),
        });
    }
}

fn documents(answer: &Answer) -> Vec<Value> {
    answer.json()["Documents"].as_array().expect("a list").clone()
}

fn name_of(item: &Value) -> Name {
    named(&item["pk"], &item["id"])
}

fn named(key: &Value, id: &Value) -> Name {
    let find = |from: &[&'static str], text: &Value| from.iter().copied().find(|name| *text == *name);
    let name = find(&KEYS, key).zip(find(&IDS, id));
    name.unwrap_or_else(|| panic!("nobody has written {key}/{id}"))
}
