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
    fn commit(&mut self, random: &mut Rng) -> Batch {
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
                    self.rows.insert(name, value.clone());
                    batch.puts.push(Put { key: key(name), value });
                }
                1 => {
                    self.rows.remove(&name);
                    batch.deletes.push(key(name));
                }
                _ => {}
            }
        }
        self.record = CommitRecord::of(&batch);
        batch
    }
}

/// What a read does with the cache, apart from asking the server. `None`: it has to ask for all keys once more.
fn read(cache: &RowCache, server: &Server, names: &[u8], keys: &[Key]) -> Option<Vec<Option<Bytes>>> {
    let cached = cache.find(PARTITION, keys)?;
    let is_right = server.record == cached.record;
    cache.judge(PARTITION, is_right);
    let asked = server.values(names).into_iter();
    let values = cached.values.into_iter().zip(asked);
    is_right.then(|| values.map(|(known, asked)| known.unwrap_or(asked)).collect())
}

/// Whatever others commit, and in whatever order answers arrive, rows that the server's newest record stands for are the server's.
#[test]
fn what_is_used_of_the_cache_is_what_the_server_has() {
    let mut used = 0;
    for seed in 0..2_000 {
        let mut random = Rng::with_seed(seed);
        let cache = RowCache::new(10_000);
        let mut server = Server::new();
        // Answers that arrive later, and commits of this process that nobody has seen end yet.
        let mut late: Vec<(Server, Vec<u8>)> = Vec::new();
        let mut unseen: Vec<(CommitRecord, Batch)> = Vec::new();
        for _ in 0..60 {
            let count = random.usize(1..4);
            let names: Vec<u8> = repeat_with(|| random.u8(..KEYS)).take(count).collect();
            let keys: Vec<Key> = names.iter().copied().map(key).collect();
            match random.u8(..12) {
                0..=4 => {
                    if let Some(values) = read(&cache, &server, &names, &keys) {
                        assert_eq!(values, server.values(&names), "seed {seed}");
                        used += 1;
                    }
                    cache.note(PARTITION, server.record, &keys, &server.values(&names));
                }
                5 => late.push((server.clone(), names)),
                6 if !late.is_empty() => {
                    let (then, names) = late.swap_remove(random.usize(..late.len()));
                    let keys: Vec<Key> = names.iter().copied().map(key).collect();
                    cache.note(PARTITION, then.record, &keys, &then.values(&names));
                }
                7 | 8 => {
                    let base = server.record;
                    let batch = server.commit(&mut random);
                    if random.bool() {
                        cache.committed(PARTITION, base, &batch);
                    } else {
                        unseen.push((base, batch));
                    }
                }
                9 if !unseen.is_empty() => {
                    let (base, batch) = unseen.swap_remove(random.usize(..unseen.len()));
                    cache.committed(PARTITION, base, &batch);
                }
                10 if random.u8(..4) == 0 => server.record = server.record.fenced(),
                11 if random.u8(..8) == 0 => cache.forget(PARTITION),
                _ => {
                    server.commit(&mut random);
                }
            }
        }
    }
    assert!(used > 1_000, "{used}");
}

#[test]
fn commits_of_this_process_take_the_rows_along() {
    let cache = RowCache::new(10_000);
    let mut server = Server::new();
    let mut random = Rng::with_seed(1);
    let names: Vec<u8> = (0..KEYS).collect();
    let keys: Vec<Key> = names.iter().copied().map(key).collect();
    cache.note(PARTITION, server.record, &keys, &server.values(&names));
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
        failures += usize::from(cache.find(PARTITION, &keys).is_some());
        if read(&cache, &server, &[0], &keys).is_none() {
            cache.note(PARTITION, server.record, &keys, &server.values(&[0]));
        }
        server.commit(&mut random);
    }
    assert!((50..400).contains(&failures), "{failures}");
    // And again if they no longer do.
    for _ in 0..=MOST_CAUTION + 1 {
        cache.find(PARTITION, &keys);
    }
    cache.note(PARTITION, server.record, &keys, &server.values(&[0]));
    assert!(read(&cache, &server, &[0], &keys).is_some());
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
        cache.note(PARTITION, first(), &[key], &[Some(value)]);
    }
    let full = used();
    assert!(full <= LIMIT && full > LIMIT - 2_000, "{full}");
    // One that would displace many is not kept.
    cache.note(PARTITION, first(), &[key(0)], &[Some(Bytes::from(vec![0; LIMIT / 2]))]);
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
    none.note(PARTITION, first(), &[key(0)], &[None]);
    assert!(none.find(PARTITION, &[key(0)]).is_none());
}
