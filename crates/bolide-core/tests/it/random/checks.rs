//! Comparing with the model: items, statistics, and the purge.

use std::collections::HashSet;
use std::fmt::Debug;

use bolide_core::{ContainerFigures, PurgeMode, ReadFeed, StoredItem, TtlRule, TtlState};
use bolide_model::ttl::Policy;
use serde_json::Value;

use super::faults::is_fault;
use super::partition_key_deletes::Removed;
use super::program::KEYS;
use super::runner::{Purging, Runner, Stepped, Stop, trouble_or_wrong, what};
use crate::model::{Doc, Ttl, Version, Write};
use crate::test_container::{key, shown};

const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Returns an error if the two differ.
pub fn differ<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Result<(), String> {
    if got == want {
        Ok(())
    } else {
        Err(format!("{what}: got {got:?}, want {want:?}"))
    }
}

/// Returns an error if two sums of request units differ by more than a different order of addition can explain.
fn differ_in_units(what: &str, got: Option<f64>, want: Option<f64>) -> Result<(), String> {
    match (got, want) {
        (Some(got), Some(want)) if (got - want).abs() < 1e-6 => Ok(()),
        _ => differ(what, got, want),
    }
}

/// Returns the server's labels of a version and its item.
pub fn labels(item: &StoredItem) -> (String, String) {
    (item.etag().to_string(), item.rid().to_string())
}

/// Checks that a returned item is the model's version.
pub fn check_item(item: &StoredItem, version: &Version) -> Result<(), String> {
    check_shown(shown(item), version)
}

/// See [`check_item`].
pub fn check_shown(mut shown: Value, version: &Version) -> Result<(), String> {
    let members = shown.as_object_mut().ok_or("an item is no object")?;
    differ("_etag", &members["_etag"], &Value::from(version.etag.as_str()))?;
    differ("_rid", &members["_rid"], &Value::from(version.rid.as_str()))?;
    differ("_ts", &members["_ts"], &Value::from(version.written))?;
    for name in SYSTEM_PROPERTIES {
        members.shift_remove(name).ok_or_else(|| format!("{name} is missing"))?;
    }
    differ("the item", &*members, &version.body)
}

impl Runner {
    pub(super) fn same_items(&self, got: &[StoredItem], want: &[&Version]) -> Result<(), String> {
        let names = |versions: &[&Version]| -> Vec<String> {
            let name = |version: &&Version| format!("{}/{}@{}", version.pk, version.id, version.written);
            versions.iter().map(name).collect()
        };
        let got_names: Vec<&str> = got.iter().map(StoredItem::id).collect();
        if got.len() != want.len() {
            return Err(format!("items: got {got_names:?}, want {:?}", names(want)));
        }
        for (item, version) in got.iter().zip(want) {
            self.shown(item)?;
            check_item(item, version)
                .map_err(|error| format!("items: got {got_names:?}, want {:?}; {error}", names(want)))?;
        }
        Ok(())
    }

    /// Checks P1: every live item is listed and counted, and no ghost can be read.
    pub(super) async fn audit(&mut self) -> Result<(), String> {
        let ctx = self.begin().await.map_err(what)?;
        let (mut read, mut items) = (ReadFeed::default(), Vec::new());
        loop {
            let page = self.account().read_feed(&ctx, self.container(), &read).await;
            let page = page.map_err(|refusal| format!("{refusal:?}"))?;
            self.charged(&page.cost);
            items.extend(page.value.items);
            read.continuation = page.value.continuation;
            if read.continuation.is_none() {
                break;
            }
        }
        self.same_items(&items, &self.model.listed(crate::model::Part::All, &Vec::new()))?;
        let listed: HashSet<String> = items.iter().map(|item| item.etag().to_string()).collect();
        self.missed(|etag| !listed.contains(etag));
        self.usage().await.map_err(what)?;
        let ghosts: Vec<Version> = self.model.ghosts().cloned().collect();
        for ghost in ghosts {
            let why = self.account().ttl_why(self.container(), ghost.id, &key(ghost.pk)).await;
            let why = why.map_err(|error| error.to_string())?;
            differ("a ghost is live", why.is_live, false)?;
        }
        Ok(())
    }

    /// Returns the container's statistics for metrics, which are read from memory if they are exact there.
    async fn figures(&self) -> Result<ContainerFigures, Stop> {
        let figures = self.account().container_figures().await.map_err(trouble_or_wrong)?;
        let of_container = |figures: &ContainerFigures| figures.rid == self.container().rid();
        let found = figures.into_iter().find(of_container);
        found.ok_or_else(|| Stop::Wrong("metrics leave the container out".into()))
    }

    pub(super) async fn usage(&mut self) -> Stepped {
        // Metrics are read first, because a request for the storage used counts the ghosts.
        let figures = self.figures().await?.usage;
        differ("live in metrics", (figures.items, figures.bytes), self.model.usage())?;
        let usage = self.account().usage(self.container()).await.map_err(trouble_or_wrong)?;
        differ("usage", (usage.items, usage.bytes), self.model.usage())?;
        Ok(format!("{usage:?}"))
    }

    pub(super) async fn report(&mut self) -> Stepped {
        let figures = self.figures().await?;
        let ghosts = (figures.ghosts.items, figures.ghosts.bytes);
        differ("backlog in metrics", ghosts, self.model.backlog())?;
        let lag_seconds = self.model.oldest_pending_seconds();
        differ("oldest pending in metrics", figures.lag_seconds, lag_seconds)?;
        let report = self
            .account()
            .ttl_report(self.container())
            .await
            .map_err(trouble_or_wrong)?;
        let model = &mut self.model;
        differ("default", report.policy.to_number(), model.history.default_ttl())?;
        differ("backlog", (report.backlog_items, report.backlog_bytes), model.backlog())?;
        differ(
            "oldest pending",
            report.oldest_pending_seconds,
            model.oldest_pending_seconds(),
        )?;
        differ("purged", report.purged_total, model.purged_total)?;
        differ_in_units("spent", Some(report.ru_spent_total.0), Some(model.spent_total))?;
        differ_in_units("billed", Some(report.ru_billed_total.0), Some(model.billed_total))?;
        let credit = model.credit();
        differ_in_units("credit", report.credit, credit)?;
        let state = match (model.backlog().0, credit) {
            (0, _) if report.policy == Policy::Off => TtlState::Disabled,
            (0, _) => TtlState::Idle,
            (_, Some(credit)) if credit <= 0.0 => TtlState::Waiting,
            _ => TtlState::Active,
        };
        differ("state", (report.state, figures.state), (state, state))?;
        let in_metrics = (figures.purged_total, figures.credit, figures.purge_rate);
        let in_report = (report.purged_total, report.credit, report.purge_rate);
        differ("purge in metrics", in_metrics, in_report)?;
        let in_metrics = (figures.ru_spent_total, figures.ru_billed_total);
        let in_report = (report.ru_spent_total.0, report.ru_billed_total.0);
        differ("units in metrics", in_metrics, in_report)?;
        differ("next end", report.next_expiry_seconds, model.next_end())?;
        for slice in &report.forecast {
            let want = model.ending_in(slice.from_seconds, slice.to_seconds);
            differ(
                "forecast",
                (slice.from_seconds, slice.items),
                (slice.from_seconds, want),
            )?;
        }
        Ok(format!("{:?} {:?}", report.next_expiry_seconds, report.forecast))
    }

    pub(super) async fn preview(&mut self, default_ttl: Option<i64>) -> Stepped {
        let policy =
            Policy::from_number(default_ttl.map(|seconds| seconds as f64)).expect("programs set what may be set");
        let preview = self
            .account()
            .ttl_preview(self.container(), policy)
            .await
            .map_err(trouble_or_wrong)?;
        let got = [
            preview.expire_now,
            preview.expire_within_hour,
            preview.expire_within_day,
            preview.never_expire,
        ];
        differ("preview", got, self.model.preview(default_ttl))?;
        Ok(format!("{got:?}"))
    }

    pub(super) async fn why(&mut self, pk: &'static str, id: &'static str) -> Stepped {
        let why = self
            .account()
            .ttl_why(self.container(), id, &key(pk))
            .await
            .map_err(trouble_or_wrong)?;
        let stored = self.model.stored(pk, id);
        differ(
            "stored",
            why.item.as_ref().map(|item| item.etag().to_string()),
            stored.map(|version| version.etag.clone()),
        )?;
        let Some(version) = stored else {
            differ("absent", (why.is_live, why.expires_at_seconds), (false, None))?;
            return Ok("not live".into());
        };
        let is_live = self.model.is_live(version);
        let end = self.model.end(version);
        let is_due = end.is_some_and(|end| end <= self.model.now());
        let rule = match version.own {
            _ if !is_live && !is_due => TtlRule::Floor,
            _ if self.model.history.default_ttl().is_none() => TtlRule::Off,
            _ if end.is_none() => TtlRule::Never,
            Some(_) => TtlRule::Own,
            None => TtlRule::Default,
        };
        let expires_at = if is_live {
            end
        } else {
            self.model.moment_of_expiry(version)
        };
        differ(
            "why",
            (why.is_live, why.expires_at_seconds, why.rule),
            (is_live, expires_at, rule),
        )?;
        Ok(if is_live {
            format!("live until {end:?}")
        } else {
            "not live".into()
        })
    }

    /// Runs a full check (P5).
    pub(super) async fn verify(&mut self) -> Stepped {
        let report = self
            .account()
            .verify(self.container())
            .await
            .map_err(trouble_or_wrong)?;
        differ("problems of the storage", &report.problems, &Vec::new())?;
        let stored = self.model.versions.len() + self.model.dropped.len();
        differ("stored", report.stored, stored as u64)?;
        differ("live", report.live, self.model.usage().0)?;
        Ok("verified".into())
    }

    /// Runs a purge of the program (P6, P8).
    pub(super) async fn purge(&mut self, mode: PurgeMode, most: Option<u64>) -> Stepped {
        if self.options.purging != Purging::AsWritten {
            return Ok("not purged".into());
        }
        let affordable = match mode {
            PurgeMode::Paced => self.model.affordable(),
            PurgeMode::Force => Vec::new(),
        };
        let due: usize = match mode {
            PurgeMode::Paced => affordable.iter().map(|range| range.ghosts).sum(),
            PurgeMode::Force => self.model.ghosts().count(),
        };
        // Removing items deleted with their key is paid from the same credit, so less may be left for ghosts.
        let may_be_less = mode == PurgeMode::Paced && !self.model.dropped.is_empty();
        let expected = most.map_or(due as u64, |most| most.min(due as u64));
        let purged = self.account().purge(self.container(), mode, most).await;
        let is_interrupted = purged.as_ref().is_err_and(is_fault);
        if is_interrupted {
            for pk in KEYS {
                self.fence(pk).await?;
            }
        }
        let Removed { ghosts, dropped } = self.note_purged().await?;
        match purged {
            Ok(purged) if may_be_less && purged < expected => differ("purged", purged, ghosts.len() as u64)?,
            Ok(purged) => differ("purged", (purged, ghosts.len() as u64), (expected, expected))?,
            Err(_) if is_interrupted && ghosts.len() as u64 <= expected => {}
            Err(error) => return Err(Stop::Wrong(format!("purge: {error:?}, removed {}", ghosts.len()))),
        }
        for range in &affordable {
            let is_in_range = |ghost: &&Version| self.model.range_id_of(ghost) == range.range;
            let in_range = ghosts.iter().filter(is_in_range).count();
            if in_range > range.ghosts {
                return Err(Stop::Wrong(format!(
                    "P8: {in_range} items purged where credit is {range:?}"
                )));
            }
        }
        let all: usize = affordable.iter().map(|range| range.all).sum();
        if mode == PurgeMode::Paced && ghosts.len() + dropped > all {
            return Err(Stop::Wrong(format!(
                "P8: {} ghosts and {dropped} deleted items removed where credit is {affordable:?}",
                ghosts.len()
            )));
        }
        self.be_calm(true);
        self.verify().await?;
        self.be_calm(false);
        Ok("purged".into())
    }

    /// Finds out which ghosts were removed, and removes them from the model. In each queue the oldest are removed first (TTL-266). Which of the items
    /// deleted with their key were removed is not visible: if only some of them were, everything is purged.
    pub(super) async fn note_purged(&mut self) -> Result<Removed, String> {
        self.be_calm(true);
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        let ghosts: Vec<Version> = self.model.ghosts().cloned().collect();
        for ghost in ghosts {
            let why = self.account().ttl_why(self.container(), ghost.id, &key(ghost.pk)).await;
            let item = why.map_err(|error| error.to_string())?.item;
            let is_left = item.is_some_and(|item| item.etag().to_string() == ghost.etag);
            if is_left { &mut left } else { &mut removed }.push(ghost);
        }
        let line = |ghost: &Version| (self.model.range_of(&ghost.epk), ghost.own.is_some());
        let place = |ghost: &Version| (ghost.written + ghost.own.unwrap_or(0), ghost.order);
        for gone in &removed {
            if let Some(older) = left
                .iter()
                .find(|left| line(left) == line(gone) && place(left) < place(gone))
            {
                return Err(format!(
                    "TTL-266: {}/{} was purged before {}/{}",
                    gone.pk, gone.id, older.pk, older.id
                ));
            }
        }
        let waiting = self.model.dropped.len();
        let dropped = waiting - self.stored_of_dropped(left.len()).await?.min(waiting);
        if dropped > 0 && dropped < waiting {
            let purged = self.account().purge(self.container(), PurgeMode::Force, None).await;
            let purged = purged.map_err(|error| error.to_string())?;
            differ("purged of the rest", purged, left.len() as u64)?;
            let ghosts: HashSet<String> = self.model.ghosts().map(|ghost| ghost.etag.clone()).collect();
            self.model
                .purged_and_removed(|version| ghosts.contains(&version.etag), |_| true);
        } else {
            self.model.purged_and_removed(
                |version| removed.iter().any(|gone| gone.etag == version.etag),
                |_| dropped > 0,
            );
        }
        self.be_calm(false);
        Ok(Removed {
            ghosts: removed,
            dropped,
        })
    }

    /// Purges everything, without comparing the result.
    pub(super) async fn purge_quietly(&mut self) -> Result<(), String> {
        let purged = self.account().purge(self.container(), PurgeMode::Force, None).await;
        let purged = purged.map_err(|error| error.to_string())?;
        let removed = self.model.clone().purged(|version| !self.model.is_live(version));
        differ("purged", purged, removed as u64)?;
        let ghosts: HashSet<String> = self.model.ghosts().map(|ghost| ghost.etag.clone()).collect();
        self.model
            .purged_and_removed(|version| ghosts.contains(&version.etag), |_| true);
        Ok(())
    }

    /// Writes and deletes an item: an earlier commit of unknown outcome can no longer happen in this partition.
    pub(super) async fn fence(&mut self, pk: &'static str) -> Result<(), String> {
        self.be_calm(true);
        let doc = self.fence_doc(pk);
        let id = doc.id;
        self.write(Write::Create(doc)).await.map_err(what)?;
        self.write(Write::Delete(pk, id, None)).await.map_err(what)?;
        self.be_calm(false);
        Ok(())
    }

    pub(super) fn fence_doc(&mut self, pk: &'static str) -> Doc {
        self.fences += 1;
        Doc {
            pk,
            id: "fence",
            ttl: Ttl::Absent,
            n: 0,
            u: Some(1_000 + self.fences),
            pad: 0,
        }
    }
}
