use super::*;

fn workload(name: &str) -> &'static Workload {
    let mut all = WORKLOADS.iter();
    all.find(|workload| workload.name == name).expect("a workload")
}

fn planner(name: &str, loaded: u64, number: u64) -> Planner {
    Planner::new(workload(name), Arc::new(Popularity::of(loaded)), loaded, number)
}

#[test]
fn every_mix_is_complete() {
    for workload in &WORKLOADS {
        let sum: u32 = workload.mix.iter().map(|(_, percent)| percent).sum();
        assert_eq!(sum, 100, "{}", workload.name);
    }
}

#[test]
fn the_first_rank_is_as_popular_as_zipf_says() {
    // 1 + 2^-0.99 + 3^-0.99 = 1 + 0.5035 + 0.3370 = 1.8405: the first rank ends at 0.5433, the second at 0.8169.
    let popularity = Popularity::of(3);
    let ranks = [0.0, 0.543, 0.544, 0.816, 0.818, 0.999].map(|point| popularity.rank(point));
    assert_eq!(ranks, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn reads_reach_loaded_items_and_those_that_the_worker_inserted() {
    let mut planner = planner("ycsb-d", 1_000, 2);
    let mut inserted = Vec::new();
    let mut own = 0;
    for _ in 0..10_000 {
        match planner.next() {
            Operation::Insert { key } => inserted.push(key),
            Operation::Read { key } if key < 1_000 => {}
            Operation::Read { key } => {
                assert!(inserted.contains(&key), "{key} was not inserted");
                own += 1;
            }
            other => panic!("{other:?} in ycsb-d"),
        }
    }
    assert_eq!(inserted.first(), Some(&2_001_000));
    assert!((400..600).contains(&inserted.len()), "{} inserts", inserted.len());
    assert!(own > 1_000, "{own} reads of inserted items");
}

#[test]
fn a_range_ends_with_its_partition_and_with_what_was_loaded() {
    for name in ["ycsb-e", "telemetry"] {
        let mut planner = planner(name, 250, 0);
        for _ in 0..2_000 {
            match planner.next() {
                Operation::Scan { from, items } | Operation::Range { from, items } => {
                    let last = from + items - 1;
                    assert!(items > 0 && last < 250 && from / 100 == last / 100, "{from} {items}");
                }
                Operation::Insert { key } => assert!(key >= 300, "{key} is in a partition that is read"),
                other => panic!("{other:?} in {name}"),
            }
        }
    }
}
