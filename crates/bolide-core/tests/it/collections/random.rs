//! Random programs over a collection with date rules, the core rule and a unique index, against the literal [model](super::model).
//!
//! A seed determines a program. Each is run with an eager purge, with none, and with the purges that are in it: all visible answers must be the
//! model's, which knows no purge (P4), and after each step the counters, statistics and the stored entries must agree (P1, P2, P5, P6).
//!
//! `BOLIDE_PROGRAMS=n` runs n programs instead of the usual number, `BOLIDE_SEED=s` begins with seed s instead of 1.

use bolide_core::{CollectionChange, DocumentDraft, PurgeMode};
use bolide_model::epk::Epk;
use bolide_model::partition_key::PartitionKey;
use bolide_model::ttl::Policy;
use bolide_mql::bson::raw::cstr;
use bolide_mql::bson::{DateTime, RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

use super::fixture::{START, TestCollection};
use super::model::{Model, Version};
use crate::random::RandomChoices;

const PROGRAMS: u64 = 25;
const STEPS: usize = 60;
/// Chance of a partial index, in percent.
const PARTIAL_PERCENT: u64 = 30;
/// Ids of documents; the fixture reads these.
const IDS: i32 = 9;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Purging {
    Eager,
    Never,
    AsWritten,
}

struct Runner {
    test: TestCollection,
    model: Model,
    choices: RandomChoices,
    purging: Purging,
    /// Makes names of indexes unique.
    created: u32,
}

/// A document to write, and what the model knows of it.
struct Doc {
    bson: RawDocumentBuf,
    version: Version,
}

impl Runner {
    async fn new(seed: u64, purging: Purging) -> Runner {
        let test = TestCollection::new().await;
        let unique = rawdoc! {"key": {"u": 1}, "name": "u_1", "unique": true, "sparse": true};
        test.create_index(unique).await.unwrap().unwrap();
        Runner {
            test,
            model: Model {
                now: START,
                ..Model::default()
            },
            choices: RandomChoices::new(seed),
            purging,
            created: 0,
        }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.choices.roll(from.len() as u64) as usize]
    }

    fn date(&mut self) -> i64 {
        match self.choices.roll(30) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => self.model.now - 12_000 + self.choices.roll(20_000) as i64,
        }
    }

    /// A value for a date field, and the earliest date in it.
    fn dated(&mut self) -> (RawBson, Option<i64>) {
        let date = |millis| RawBson::DateTime(DateTime::from_millis(millis));
        match self.choices.roll(8) {
            0 => (RawBson::String("soon".into()), None),
            1 => (RawBson::Int64(self.model.now), None),
            2 => {
                let (first, second) = (self.date(), self.date());
                let mut array = RawArrayBuf::new();
                array.push(RawBson::Boolean(true));
                array.push(date(first));
                array.push(date(second));
                (RawBson::Array(array), Some(first.min(second)))
            }
            _ => {
                let millis = self.date();
                (date(millis), Some(millis))
            }
        }
    }

    fn doc(&mut self, id: i32) -> Doc {
        let mut bson = rawdoc! {"_id": id};
        let mut dates = [None; 2];
        for (name, known) in [cstr!("a"), cstr!("b")].into_iter().zip(&mut dates) {
            if self.choices.percent(70) {
                let (value, date) = self.dated();
                bson.append(name, value);
                *known = date;
            }
        }
        let own = match self.choices.roll(6) {
            0 => Some(-1),
            1 | 2 => Some(1 + self.choices.roll(9) as i32),
            _ => None,
        };
        if let Some(own) = own {
            bson.append(cstr!("ttl"), own);
        }
        let is_flagged = self.choices.percent(50);
        if is_flagged {
            bson.append(cstr!("p"), 1);
        }
        let unique = self.choices.percent(40).then(|| self.choices.roll(5) as i32);
        if let Some(unique) = unique {
            bson.append(cstr!("u"), unique);
        }
        let written = self.model.next_order();
        let version = Version {
            id,
            number: written,
            written,
            last_modified: self.model.seconds(),
            own: own.map(i64::from),
            dates,
            is_flagged,
            unique,
            bytes: bson.as_bytes().len() as u64,
        };
        Doc { bson, version }
    }

    fn draft(&self, bson: RawDocumentBuf) -> DocumentDraft {
        let definition = self.test.collection.collection().unwrap();
        DocumentDraft::new(bson, &definition, self.test.account.draft_options()).unwrap()
    }

    /// Whether a live document other than `id` has the unique value; ghosts that have it are removed otherwise (TTL-286).
    fn is_taken(&self, unique: Option<i32>, id: i32) -> bool {
        let holds = |version: &&Version| version.id != id && unique.is_some() && version.unique == unique;
        self.model.live().into_iter().any(|version| holds(&version))
    }

    fn remove_holders(&mut self, unique: Option<i32>) {
        let ghosts = self.model.ghosts().into_iter();
        let holders = ghosts.filter(|ghost| unique.is_some() && ghost.unique == unique);
        for id in holders.map(|ghost| ghost.id).collect::<Vec<_>>() {
            self.model.purge(id);
        }
    }

    async fn insert(&mut self) {
        let id = 1 + self.choices.roll(IDS as u64) as i32;
        let Doc { bson, version } = self.doc(id);
        let answer = self.test.insert(bson).await.map_err(|duplicate| duplicate.index);
        if self.model.find_live(id).is_some() {
            assert_eq!(answer, Err(0), "insert {id}");
        } else if self.is_taken(version.unique, id) {
            assert_eq!(answer, Err(1), "insert {id}");
        } else {
            assert_eq!(answer, Ok(()), "insert {id}");
            if self.model.find(id).is_some() {
                self.model.purge(id);
            }
            self.remove_holders(version.unique);
            self.model.stored.push(version);
        }
    }

    async fn replace(&mut self) {
        let id = 1 + self.choices.roll(IDS as u64) as i32;
        let Doc { bson, version } = self.doc(id);
        let (ctx, draft) = (self.test.account.begin().await.unwrap(), self.draft(bson));
        let write = self
            .test
            .account
            .write_document(&ctx, (&self.test.collection, Epk::start()), move |batch| {
                Ok(match batch.find(draft.id())? {
                    Some(found) => Some(batch.replace(&found, &draft)?),
                    None => None,
                })
            });
        let answer = write
            .await
            .unwrap()
            .value
            .map(|done| done.map_err(|duplicate| duplicate.index));
        let Some(number) = self.model.find_live(id).map(|version| version.number) else {
            assert_eq!(answer, None, "replace {id}");
            return;
        };
        if self.is_taken(version.unique, id) {
            assert_eq!(answer, Some(Err(1)), "replace {id}");
            return;
        }
        assert_eq!(answer, Some(Ok(())), "replace {id}");
        self.model.stored.retain(|stored| stored.id != id);
        self.remove_holders(version.unique);
        self.model.stored.push(Version { number, ..version });
    }

    async fn delete(&mut self) {
        let id = 1 + self.choices.roll(IDS as u64) as i32;
        let was_there = self.model.find_live(id).is_some();
        assert_eq!(self.test.delete(id).await, was_there, "delete {id}");
        if was_there {
            self.model.stored.retain(|stored| stored.id != id);
        }
    }

    async fn create_index(&mut self) {
        if self
            .model
            .indexes
            .iter()
            .filter(|index| index.in_force().is_some())
            .count()
            >= 3
        {
            return;
        }
        let (field, is_partial) = (self.choices.roll(2) as usize, self.choices.percent(PARTIAL_PERCENT));
        let seconds = self.pick(&[0, 1, 3, 7, 20]);
        self.created += 1;
        let name = format!("ttl_{}", self.created);
        let mut key = RawDocumentBuf::new();
        key.append(if field == 0 { cstr!("a") } else { cstr!("b") }, 1);
        let mut specification = rawdoc! {"key": key, "name": name.as_str(), "expireAfterSeconds": seconds};
        if is_partial {
            specification.append(cstr!("partialFilterExpression"), rawdoc! {"p": 1});
        }
        self.test.create_index(specification).await.unwrap().unwrap();
        self.model.create_index(name, field, is_partial, seconds.into());
    }

    async fn change_index(&mut self, is_drop: bool) {
        let in_force = |at: &usize| self.model.indexes[*at].in_force().is_some();
        let there: Vec<usize> = (0..self.model.indexes.len()).filter(in_force).collect();
        if there.is_empty() {
            return;
        }
        let at = self.pick(&there);
        let seconds = self.pick(&[0_u32, 1, 4, 9, 30]);
        let seconds = (!is_drop).then_some(seconds);
        let name: &'static str = Box::leak(self.model.indexes[at].name.clone().into_boxed_str());
        self.test.change_index(name, seconds).await;
        self.model.change_index(at, seconds.map(i64::from));
    }

    async fn set_default(&mut self) {
        let default = self.pick(&[None, Some(-1), Some(2), Some(5), Some(30)]);
        let policy = Policy::from_number(default.map(|seconds| seconds as f64)).unwrap();
        let change = move |change: &mut CollectionChange<'_>| {
            *change.policy = policy;
            Ok(())
        };
        let account = &self.test.account;
        account.change_collection(&self.test.collection, change).await.unwrap();
        self.model.set_default(default);
    }

    /// Purges, and finds out which ghosts were removed.
    async fn purge(&mut self, most: Option<u64>) {
        let ghosts: Vec<i32> = self.model.ghosts().into_iter().map(|ghost| ghost.id).collect();
        let purged = self
            .test
            .account
            .purge(&self.test.collection, PurgeMode::Force, most)
            .await;
        let expected = (ghosts.len() as u64).min(most.unwrap_or(u64::MAX));
        assert_eq!(purged.unwrap(), expected, "purged of {ghosts:?}");
        let mut removed = 0;
        for id in ghosts {
            let (account, key) = (&self.test.account, PartitionKey::default());
            let why = account.ttl_why(&self.test.collection, &id.to_string(), &key).await;
            if why.unwrap().item.is_none() {
                self.model.purge(id);
                removed += 1;
            }
        }
        assert_eq!(removed, expected, "only ghosts are removed");
    }

    async fn step(&mut self) {
        match self.choices.roll(100) {
            0..28 => self.insert().await,
            28..42 => self.replace().await,
            42..46 => self.delete().await,
            46..64 => {
                self.model.now += self.pick(&[0, 1, 250, 999, 1_000, 1_500, 3_000, 8_000]);
                self.test.set_clock(self.model.now);
            }
            64..71 => self.create_index().await,
            71..77 => self.change_index(false).await,
            77..80 => self.change_index(true).await,
            80..84 => self.set_default().await,
            84..89 if self.purging == Purging::AsWritten => self.purge(None).await,
            89..96 if self.purging == Purging::AsWritten => {
                let most = 1 + self.choices.roll(3);
                self.purge(Some(most)).await;
            }
            96..100 => self.test.reopen().await,
            _ => {}
        }
        if self.purging == Purging::Eager {
            self.purge(None).await;
        }
        if self.choices.percent(40) {
            self.audit().await;
        }
    }

    async fn audit(&mut self) {
        let live: Vec<i32> = self.model.live().into_iter().map(|version| version.id).collect();
        assert_eq!(self.test.ids().await, live, "visible documents");
        self.statistics().await;
        self.report().await;
        self.preview().await;
        for id in 1..=IDS {
            self.why(id).await;
        }
        let report = self.test.account.verify(&self.test.collection).await.unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(
            (report.stored, report.live),
            (self.model.stored.len() as u64, live.len() as u64)
        );
    }

    async fn statistics(&self) {
        let (test, model) = (&self.test, &self.model);
        let sum = |versions: &[&Version]| {
            let bytes: u64 = versions.iter().map(|version| version.bytes).sum();
            (versions.len() as u64, bytes)
        };
        let (live, ghosts) = (sum(&model.live()), sum(&model.ghosts()));
        // Metrics are read first, because a request for the storage used counts the ghosts.
        let figures = test.account.container_figures().await.unwrap();
        let figures = figures
            .into_iter()
            .find(|figures| figures.rid == test.collection.rid())
            .unwrap();
        assert_eq!((figures.usage.items, figures.usage.bytes), live, "live in metrics");
        assert_eq!(
            (figures.ghosts.items, figures.ghosts.bytes),
            ghosts,
            "ghosts in metrics"
        );
        assert_eq!(figures.purged_total, model.purged_total);
        let usage = test.account.usage(&test.collection).await.unwrap();
        assert_eq!((usage.items, usage.bytes), live, "usage");
        if let Some(lag) = model.oldest_pending_seconds() {
            assert_eq!(figures.lag_seconds, lag, "oldest pending in metrics: {model:?}");
        }
    }

    async fn report(&self) {
        let (test, model) = (&self.test, &self.model);
        let report = test.account.ttl_report(&test.collection).await.unwrap();
        assert_eq!(report.backlog_items, model.ghosts().len() as u64);
        assert_eq!(report.purged_total, model.purged_total);
        if let Some(lag) = model.oldest_pending_seconds() {
            assert_eq!(report.oldest_pending_seconds, lag);
        }
        let ends = model
            .live()
            .into_iter()
            .filter_map(|version| model.end(version, model.core_default()));
        let ends: Vec<i64> = ends.map(|end| end.div_euclid(1_000)).collect();
        assert_eq!(report.next_expiry_seconds, ends.iter().min().copied());
        for slice in report.forecast {
            let is_open = slice.to_seconds == i64::MAX;
            let within = |end: &&i64| **end >= slice.from_seconds && (is_open || **end < slice.to_seconds);
            assert_eq!(slice.items, ends.iter().filter(within).count() as u64, "{slice:?}");
        }
    }

    async fn preview(&mut self) {
        let default = self.pick(&[None, Some(-1), Some(3), Some(4_000)]);
        let policy = Policy::from_number(default.map(|seconds| seconds as f64)).unwrap();
        let preview = self
            .test
            .account
            .ttl_preview(&self.test.collection, policy)
            .await
            .unwrap();
        let mut after = self.model.clone();
        after.set_default(default);
        let mut expected = [0; 4];
        for version in self.model.live() {
            let within = |end: i64, seconds: i64| end.div_euclid(1_000) <= after.seconds() + seconds;
            match after.end(version, default) {
                _ if !after.is_live(version) => expected[0] += 1,
                None => expected[3] += 1,
                Some(end) => {
                    expected[1] += u64::from(within(end, 3_600));
                    expected[2] += u64::from(within(end, 86_400));
                }
            }
        }
        let got = [
            preview.expire_now,
            preview.expire_within_hour,
            preview.expire_within_day,
            preview.never_expire,
        ];
        assert_eq!(got, expected, "preview of {default:?}");
    }

    async fn why(&self, id: i32) {
        let (test, model) = (&self.test, &self.model);
        let why = test
            .account
            .ttl_why(&test.collection, &id.to_string(), &PartitionKey::default())
            .await
            .unwrap();
        let stored = model.find(id);
        assert_eq!(why.item.is_some(), stored.is_some(), "{id} is stored");
        let is_live = stored.is_some_and(|version| model.is_live(version));
        assert_eq!(why.is_live, is_live, "{id} is live");
        if let Some(version) = stored.filter(|_| is_live) {
            assert_eq!(
                why.expires_at_millis,
                model.end(version, model.core_default()),
                "the end of {id}"
            );
        }
    }
}

async fn run(seed: u64, purging: Purging) {
    let mut runner = Runner::new(seed, purging).await;
    for _ in 0..STEPS {
        runner.step().await;
    }
    runner.audit().await;
    // With everything purged, nothing is left of the ghosts.
    runner.purge(None).await;
    runner.audit().await;
}

fn from_environment(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect("a number"))
}

async fn run_all(purging: Purging) {
    let first = from_environment("BOLIDE_SEED", 1);
    for seed in first..first + from_environment("BOLIDE_PROGRAMS", PROGRAMS) {
        let program = tokio::spawn(run(seed, purging));
        if let Err(failed) = program.await {
            std::panic::resume_unwind(Box::new(format!("seed {seed}, {purging:?}: {failed}")));
        }
    }
}

#[tokio::test]
async fn answers_are_the_models_with_purges_in_between() {
    run_all(Purging::AsWritten).await;
}

#[tokio::test]
async fn answers_are_the_models_with_an_eager_purge() {
    run_all(Purging::Eager).await;
}

#[tokio::test]
async fn answers_are_the_models_without_a_purge() {
    run_all(Purging::Never).await;
}
