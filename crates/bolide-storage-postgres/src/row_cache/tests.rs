use std::collections::BTreeMap;
use std::iter::repeat_with;

use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{CommitToken, Edition, Head, Put, Space};
use fastrand::Rng;

use super::*;

const PARTITION: PartitionId = PartitionId(7);
const KEYS: u8 = 6;

fn key(name: u8) -> Key {
    Key::new(Space::Item, vec![name])
}

fn first() -> CommitRecord {
    CommitRecord::first(Head::first(UnixMillis(0)))
}

fn answer<'a>(record: CommitRecord, keys: &'a [Key], values: &'a [Option<Bytes>]) -> Answer<'a> {
    Answer { record, keys, values }
}

/// The partition as the server has it, with the newest record.
#[derive(Clone)]
struct Server {
    record: CommitRecord,
    rows: BTreeMap<u8, Bytes>,
}

impl Server {
    fn new() -> Server {
        Server {
            record: first(),
            rows: BTreeMap::new(),
        }
    }

    fn values(&self, keys: &[u8]) -> Vec<Option<Bytes>> {
        keys.iter().map(|name| self.rows.get(name).cloned()).collect()
    }

    /// Writes some rows and deletes others.
    fn apply(&mut self, batch: &Batch) {
        for put in &batch.puts {
            self.rows.insert(put.key.bytes[0], put.value.clone());
        }
        for key in &batch.deletes {
            self.rows.remove(&key.bytes[0]);
        }
        self.record = CommitRecord::of(batch);
    }

    fn commit(&mut self, random: &mut Rng) -> Batch {
        let batch = self.batch(random);
        self.apply(&batch);
        batch
    }

    /// A batch for the newest record.
    fn batch(&self, random: &mut Rng) -> Batch {
        let base = self.record.head.lsn;
        let mut batch = Batch {
            base,
            next: Lsn(base.0 + random.u64(1..3)),
            stamp: UnixMillis(0),
            edition: Edition(0),
            token: CommitToken(random.u128(..)),
            puts: vec![],
            deletes: vec![],
            new_keys: vec![],
            may_block: false,
        };
        for name in 0..KEYS {
            match random.u8(..6) {
                0 => {
                    let value = Bytes::from(vec![random.u8(..); random.usize(..40)]);
                    batch.puts.push(Put { key: key(name), value });
                }
                1 => batch.deletes.push(key(name)),
                _ => {}
            }
        }
        batch
    }
}

/// A read that is under way.
struct Reading {
    names: Vec<u8>,
    cached: Option<Cached>,
    /// The server as it was when it answered.
    answered: Option<Server>,
}

impl Reading {
    fn begin(cache: &RowCache, names: Vec<u8>) -> Reading {
        Reading {
            cached: cache.find(PARTITION, &keys(&names)),
            answered: None,
            names,
        }
    }

    /// Ends it; returns whether the cache was of use.
    fn end(self, cache: &RowCache, server: &Server) -> bool {
        let then = self.answered.as_ref().unwrap_or(server);
        let keys = keys(&self.names);
        let is_cached = self.cached.is_some();
        if let Some(cached) = self.cached {
            let missing = cached.missing(&keys);
            let names: Vec<u8> = missing.iter().map(|key| key.bytes[0]).collect();
            let values = then.values(&names);
            if let Some(values) = cache.complete(PARTITION, &keys, cached, &answer(then.record, &missing, &values)) {
                assert_eq!(values, then.values(&self.names));
                return true;
            }
        }
        // The second question, or the only one.
        let asked = if is_cached { server } else { then };
        cache.note(PARTITION, &answer(asked.record, &keys, &asked.values(&self.names)));
        false
    }
}

fn keys(names: &[u8]) -> Vec<Key> {
    names.iter().copied().map(key).collect()
}

/// Whatever others commit, and in whatever order answers arrive, rows that the server's newest record stands for are the server's.
#[test]
fn what_is_used_of_the_cache_is_what_the_server_has() {
    let mut used = 0;
    for seed in 0..4_000 {
        let mut random = Rng::with_seed(seed);
        // In some of them there is room for a few rows only.
        let cache = RowCache::new(if seed % 4 == 0 { 4 * (OVERHEAD + 40) } else { 100_000 });
        let mut server = Server::new();
        let backup = server.clone();
        let mut reading: Vec<Reading> = Vec::new();
        // Commits of this process that nobody has seen end yet.
        let mut unseen: Vec<(CommitRecord, Batch)> = Vec::new();
        for _ in 0..80 {
            match random.u8(..16) {
                0..=3 => {
                    let count = random.usize(1..4);
                    let names = repeat_with(|| random.u8(..KEYS)).take(count).collect();
                    reading.push(Reading::begin(&cache, names));
                }
                4 | 5 if !reading.is_empty() => {
                    let at = random.usize(..reading.len());
                    reading[at].answered.get_or_insert_with(|| server.clone());
                }
                6..=9 if !reading.is_empty() => {
                    let ended = reading.swap_remove(random.usize(..reading.len()));
                    used += usize::from(ended.end(&cache, &server));
                }
                10 | 11 => {
                    let base = server.record;
                    let batch = server.batch(&mut random);
                    if random.bool() {
                        cache.set_expected(PARTITION, Some(CommitRecord::of(&batch)));
                    }
                    server.apply(&batch);
                    unseen.push((base, batch));
                }
                12 | 13 if !unseen.is_empty() => {
                    let (base, batch) = unseen.swap_remove(random.usize(..unseen.len()));
                    if random.u8(..4) > 0 {
                        cache.committed(PARTITION, base, &batch);
                    }
                    cache.set_expected(PARTITION, None);
                }
                14 => match random.u8(..12) {
                    0 => server.record = server.record.fenced(),
                    1 => cache.forget(PARTITION),
                    // A standby that had fallen behind is the primary now.
                    2 => server = backup.clone(),
                    _ => drop(server.commit(&mut random)),
                },
                _ => {}
            }
        }
    }
    assert!(used > 5_000, "{used}");
}

/// Reads rely on the cache while this process commits, whatever is seen first of a commit: its end, or what it has written.
#[test]
fn commits_of_this_process_do_not_disturb_reads() {
    let cache = RowCache::new(100_000);
    let (mut server, mut random) = (Server::new(), Rng::with_seed(1));
    let names: Vec<u8> = (0..KEYS).collect();
    Reading::begin(&cache, names.clone()).end(&cache, &server);
    for round in 0..100 {
        let base = server.record;
        let batch = server.batch(&mut random);
        let batches = [(PARTITION, batch)];
        let expected = cache.expect(&batches);
        let before = Reading::begin(&cache, names.clone());
        server.apply(&batches[0].1);
        if round % 2 == 0 {
            // It is asked a second time, and nothing is lost.
            assert!(!before.end(&cache, &server));
            cache.committed(PARTITION, base, &batches[0].1);
        } else {
            cache.committed(PARTITION, base, &batches[0].1);
            assert!(before.end(&cache, &server));
        }
        drop(expected);
        assert!(
            Reading::begin(&cache, names.clone()).end(&cache, &server),
            "round {round}"
        );
    }
}

/// One commit of another process is one failure, however many reads notice it.
#[test]
fn reads_that_fail_together_are_one_failure() {
    let cache = RowCache::new(100_000);
    let (mut server, mut random) = (Server::new(), Rng::with_seed(1));
    Reading::begin(&cache, vec![0]).end(&cache, &server);
    let mut round = || {
        let reading: Vec<Reading> = (0..4).map(|_| Reading::begin(&cache, vec![0])).collect();
        server.commit(&mut random);
        let used = reading.into_iter().map(|reading| reading.end(&cache, &server));
        let used: Vec<bool> = used.collect();
        let next = || Reading::begin(&cache, vec![0]).end(&cache, &server);
        (used, [next(), next()])
    };
    // Those after the first find what it has read.
    assert_eq!(round(), (vec![false, true, true, true], [true, true]));
    cache.content.lock().partitions.get_mut(&PARTITION).unwrap().caution = 1;
    // After the second failure in a row one more read does without the cache.
    assert_eq!(round(), (vec![false; 4], [false, true]));
}

#[test]
fn commits_of_this_process_take_the_rows_along() {
    let cache = RowCache::new(10_000);
    let mut server = Server::new();
    let mut random = Rng::with_seed(1);
    let names: Vec<u8> = (0..KEYS).collect();
    let keys = keys(&names);
    cache.note(PARTITION, &answer(server.record, &keys, &server.values(&names)));
    for _ in 0..100 {
        let base = server.record;
        let batch = server.commit(&mut random);
        cache.committed(PARTITION, base, &batch);
        let known = cache.find(PARTITION, &keys).unwrap();
        assert_eq!(known.record, server.record);
        let expected: Vec<_> = server.values(&names).into_iter().map(Some).collect();
        assert_eq!(known.values, expected);
    }
}

/// Where others commit between all reads, few of them pay for a question too many.
#[test]
fn a_cache_that_is_never_right_is_rarely_asked() {
    let cache = RowCache::new(10_000);
    let mut server = Server::new();
    let mut random = Rng::with_seed(1);
    let keys = [key(0)];
    let mut failures = 0;
    for _ in 0..10_000 {
        let state = |content: &Content| {
            content
                .partitions
                .get(&PARTITION)
                .is_some_and(|state| state.skipped == 0)
        };
        failures += usize::from(state(&cache.content.lock()));
        Reading::begin(&cache, vec![0]).end(&cache, &server);
        server.commit(&mut random);
    }
    assert!((50..400).contains(&failures), "{failures}");
    // And again if they no longer do.
    for _ in 0..=MOST_CAUTION + 1 {
        cache.find(PARTITION, &keys);
    }
    cache.note(PARTITION, &answer(server.record, &keys, &server.values(&[0])));
    assert!(Reading::begin(&cache, vec![0]).end(&cache, &server));
}

#[test]
fn the_cache_is_bounded() {
    const LIMIT: usize = 32 * 1_024;
    let cache = RowCache::new(LIMIT);
    let used = || {
        let content = cache.content.lock();
        let rows = content.rows.iter();
        let bytes: usize = rows
            .map(|((_, key), row)| OVERHEAD + key.bytes.len() + row.value.as_ref().map_or(0, Bytes::len))
            .sum();
        assert_eq!(bytes, content.bytes);
        bytes
    };
    for number in 0..500_u64 {
        let key = Key::new(Space::Item, number.to_be_bytes().to_vec());
        let value = Bytes::from(vec![0; 1_000]);
        cache.note(PARTITION, &answer(first(), &[key], &[Some(value)]));
    }
    let full = used();
    assert!(full <= LIMIT && full > LIMIT - 2_000, "{full}");
    // One that would displace many is not kept.
    let large = [Some(Bytes::from(vec![0; LIMIT / 2]))];
    cache.note(PARTITION, &answer(first(), &[key(0)], &large));
    assert_eq!(used(), full);
    assert!(cache.find(PARTITION, &[key(0)]).is_none());
    // Rows that grow when they are committed, too.
    let [kept, dropped] = [498_u64, 499].map(|number| Key::new(Space::Item, number.to_be_bytes().to_vec()));
    let mut batch = Server::new().commit(&mut Rng::with_seed(1));
    batch.deletes.clear();
    let value = |bytes| Bytes::from(vec![1; bytes]);
    let puts = [(&kept, 1_800), (&dropped, LIMIT / 2)];
    batch.puts = puts
        .map(|(key, bytes)| Put {
            key: key.clone(),
            value: value(bytes),
        })
        .to_vec();
    cache.committed(PARTITION, first(), &batch);
    assert!(used() <= LIMIT);
    assert_eq!(
        cache.find(PARTITION, &[kept]).unwrap().values,
        [Some(Some(value(1_800)))]
    );
    assert!(cache.find(PARTITION, &[dropped]).is_none());
    let none = RowCache::new(0);
    none.note(PARTITION, &answer(first(), &[key(0)], &[None]));
    assert!(none.find(PARTITION, &[key(0)]).is_none());
}
