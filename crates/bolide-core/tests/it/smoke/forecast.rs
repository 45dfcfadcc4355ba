//! The forecast of a container with many items, counted in several steps, against a recount of the live items (TTL-272).

use bolide_core::PurgeMode;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use crate::random::program::RandomChoices;
use crate::test_container::{TestContainer, key, shown};

/// When the items have been written and programs begin, in seconds.
const NOW: i64 = 20_000_000;
const KEYS: [&str; 4] = ["p", "q", "r", "s"];
/// Time spans in seconds, just below and above every boundary of the forecast.
const SPANS: [i64; 10] = [
    1,
    59,
    61,
    3_599,
    3_601,
    86_401,
    604_799,
    2_592_001,
    8_000_000,
    2_147_483_647,
];

/// A container, and its default ttl.
struct Program {
    test: TestContainer,
    choices: RandomChoices,
    default_ttl: Option<i64>,
    now: i64,
}

impl Program {
    /// Creates a container with `items` items of every age.
    async fn begin(seed: u64, items: u64) -> Program {
        let mut choices = RandomChoices::new(seed);
        let default_ttl = default_ttl(&mut choices);
        let test = TestContainer::with(json!({ "defaultTtl": default_ttl })).await;
        test.at(NOW);
        let lines = (0..items).map(|n| {
            let age = pick(&mut choices, &SPANS).min(NOW) + choices.roll(50) as i64;
            let mut item = item(&mut choices, n);
            item["_ts"] = (NOW - age).into();
            Ok(Bytes::from(format!("{item}\n")))
        });
        let lines: Vec<_> = lines.collect();
        let imported = test.account.import(&test.container, stream::iter(lines)).await;
        assert_eq!(imported, Ok(items));
        Program {
            test,
            choices,
            default_ttl,
            now: NOW,
        }
    }

    async fn step(&mut self) {
        match self.choices.roll(20) {
            0..7 => self.write().await,
            7..11 => {
                self.now += pick(&mut self.choices, &SPANS[..8]);
                self.test.at(self.now);
            }
            11..13 => {
                self.default_ttl = default_ttl(&mut self.choices);
                let defined = self.test.define(json!({ "defaultTtl": self.default_ttl })).await;
                assert_eq!(defined, Ok(()));
            }
            13..15 => {
                let most = 1 + self.choices.roll(60);
                let purged = self
                    .test
                    .account
                    .purge(&self.test.container, PurgeMode::Force, Some(most));
                assert!(purged.await.expect("a purge") <= most);
            }
            15 => {
                let split = self.test.account.split(&self.test.container, None).await;
                split.expect("there are keys on both sides of it");
            }
            16 if self.choices.percent(40) => {
                let key = key(pick(&mut self.choices, &KEYS));
                let ctx = self.test.begin().await;
                let deleted = self.test.account.delete_all_of_key(&ctx, &self.test.container, &key);
                deleted.await.expect("a key");
            }
            _ => {
                // Counted in several steps, between which other tasks write.
                let account = self.test.account.clone();
                let container = self.test.container.clone();
                let (report, ()) = tokio::join!(account.ttl_report(&container), self.write());
                report.expect("a report");
            }
        }
    }

    /// Makes some writes and deletes.
    async fn write(&mut self) {
        for _ in 0..=self.choices.roll(40) {
            let mut item = item(&mut self.choices, 1_000_000);
            item["id"] = self.choices.roll(200).to_string().into();
            item["pk"] = "p".into();
            if self.choices.percent(25) {
                let _ = self.test.delete(item["id"].as_str().expect("a string"), None).await;
            } else {
                self.test.upsert(item, None).await.expect("an item");
            }
        }
    }

    async fn check(&self, when: &str) {
        let report = self
            .test
            .account
            .ttl_report(&self.test.container)
            .await
            .expect("a report");
        let ends = self.ends().await;
        let counted: Vec<u64> = report.forecast.iter().map(|slice| slice.items).collect();
        let recounted = report.forecast.iter().map(|slice| {
            let is_in = |end: &&i64| (slice.from_seconds..slice.to_seconds).contains(*end);
            ends.iter().filter(is_in).count() as u64
        });
        assert_eq!(
            counted,
            recounted.collect::<Vec<_>>(),
            "{when}, by {:?}",
            self.default_ttl
        );
        assert_eq!(report.next_expiry_seconds, ends.into_iter().min(), "{when}");
    }

    /// Returns when the live items expire, for those that do.
    async fn ends(&self) -> Vec<i64> {
        let (mut ends, mut continuation) = (Vec::new(), None);
        loop {
            let (items, next) = self.test.list(1_000, continuation).await;
            ends.extend(items.iter().filter_map(|item| {
                let own = shown(item).get("ttl").and_then(Value::as_i64);
                let ttl = self.default_ttl.map(|default| own.unwrap_or(default))?;
                (ttl != -1).then(|| item.last_modified().0 + ttl)
            }));
            continuation = next;
            if continuation.is_none() {
                return ends;
            }
        }
    }
}

fn pick<T: Copy>(choices: &mut RandomChoices, from: &[T]) -> T {
    from[choices.roll(from.len() as u64) as usize]
}

fn default_ttl(choices: &mut RandomChoices) -> Option<i64> {
    match choices.roll(8) {
        0 => None,
        1 => Some(-1),
        _ => Some(pick(choices, &SPANS)),
    }
}

fn item(choices: &mut RandomChoices, n: u64) -> Value {
    let mut item = json!({"id": format!("i{n}"), "pk": pick(choices, &KEYS)});
    match choices.roll(6) {
        0..3 => {}
        3 => item["ttl"] = (-1).into(),
        _ => item["ttl"] = pick(choices, &SPANS).into(),
    }
    item
}

#[tokio::test]
async fn a_forecast_is_what_a_recount_finds_after_any_program() {
    for (seed, items, steps) in [(1, 5_000, 12), (2, 400, 60), (3, 400, 60), (4, 60, 90), (5, 0, 90)] {
        let mut program = Program::begin(seed, items).await;
        for step in 0..steps {
            program.step().await;
            if step % 3 == 0 {
                program.check(&format!("seed {seed}, step {step}")).await;
            }
            if step % 30 == 29 {
                let Program {
                    test,
                    choices,
                    default_ttl,
                    now,
                } = program;
                let test = test.reopen().await;
                program = Program {
                    test,
                    choices,
                    default_ttl,
                    now,
                };
            }
        }
        program.check(&format!("seed {seed}, at its end")).await;
    }
}
