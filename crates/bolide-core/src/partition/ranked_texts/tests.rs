use super::*;

const INDEX: u32 = 7;
const LIMIT: usize = 1024 * 1024;

fn id(words: &[&str]) -> ListId {
    ListId {
        index: INDEX,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        ties_descend: false,
    }
}

fn item(number: u64) -> bytes::Bytes {
    keys::item_key(b"epk", number)
}

fn added(number: u64, terms: &[(&str, u64)]) -> TextChange {
    TextChange::of(INDEX, true, &item(number), terms)
}

fn removed(number: u64, terms: &[(&str, u64)]) -> TextChange {
    TextChange::of(INDEX, false, &item(number), terms)
}

/// Numbers of the texts of a list, by how often each word occurs.
fn numbers(list: &RankedList) -> Vec<(Vec<u64>, Vec<u64>)> {
    let of_group = |group: &Group| group.best().iter().map(|text| text.number(false)).collect();
    list.groups()
        .map(|(times, group)| (times.to_vec(), of_group(group)))
        .collect()
}

fn found(lists: &RankedTexts, id: &ListId, lsn: u64) -> Option<Vec<(Vec<u64>, Vec<u64>)>> {
    match lists.look(id, Lsn(lsn)) {
        Some(Ranked::Found(list)) => Some(numbers(&list)),
        _ => None,
    }
}

/// Keeps a list of one text with the word once, as of version 10.
fn with_list(id: &ListId) -> (Arc<RankedTexts>, Arc<ListMemory>) {
    let memory = Arc::<ListMemory>::default();
    let lists = RankedTexts::new(memory.clone());
    let making = lists.begin(id, Lsn(10)).expect("no list yet");
    let mut list = RankedList::new(id.words.len(), false, 4);
    let mut times = vec![0; id.words.len()];
    times[0] = 1;
    assert!(list.add(&times, 1, 1, b"epk"));
    making.finish(list, Lsn(10), LIMIT);
    (lists, memory)
}

#[test]
fn a_list_follows_commits_and_is_found_only_as_of_their_last() {
    let dog = id(&["cat", "dog"]);
    let (lists, _) = with_list(&dog);
    assert_eq!(found(&lists, &dog, 10), Some(vec![(vec![1, 0], vec![1])]));
    let other_index = TextChange::of(INDEX + 1, true, &item(9), &[("dog", 1)]);
    lists.apply(
        Lsn(10),
        Lsn(11),
        vec![added(2, &[("dog", 3), ("cat", 1), ("fox", 1)]), other_index],
    );
    assert_eq!(found(&lists, &dog, 10), None);
    assert_eq!(found(&lists, &dog, 12), None);
    assert_eq!(
        found(&lists, &dog, 11),
        Some(vec![(vec![1, 0], vec![1]), (vec![1, 3], vec![2])])
    );
    // An item is replaced, and another one is added and removed in one commit.
    let commit = vec![
        removed(1, &[("cat", 1)]),
        added(1, &[("dog", 2), ("dogs", 7)]),
        added(3, &[("dog", 1)]),
        removed(3, &[("dog", 1)]),
    ];
    lists.apply(Lsn(11), Lsn(15), commit);
    assert_eq!(
        found(&lists, &dog, 15),
        Some(vec![(vec![0, 2], vec![1]), (vec![1, 3], vec![2])])
    );
}

#[test]
fn a_list_that_has_missed_a_commit_is_dropped() {
    let dog = id(&["dog"]);
    let (lists, memory) = with_list(&dog);
    lists.apply(Lsn(11), Lsn(12), Vec::new());
    assert!(!lists.has(&dog));
    assert!(memory.is_unused());
    let (lists, memory) = with_list(&dog);
    lists.forget_all();
    assert!(!lists.has(&dog));
    assert!(memory.is_unused());
    // A text that the list lacks is removed.
    let (lists, _) = with_list(&dog);
    lists.apply(Lsn(10), Lsn(11), vec![removed(5, &[("dog", 1)])]);
    assert!(!lists.has(&dog));
}

#[test]
fn commits_while_a_list_is_made_are_in_it_once() {
    // The entries were read before, between and after the commits.
    for (read, has) in [(10, vec![]), (11, vec![2]), (12, vec![2, 3])] {
        let lists = RankedTexts::new(Arc::default());
        let dog = id(&["dog"]);
        let making = lists.begin(&dog, Lsn(10)).expect("no list yet");
        assert!(lists.begin(&dog, Lsn(10)).is_none(), "another request makes it");
        lists.apply(Lsn(10), Lsn(11), vec![added(2, &[("dog", 1)])]);
        assert!(matches!(lists.look(&dog, Lsn(11)), Some(Ranked::Missing)));
        lists.apply(Lsn(11), Lsn(12), vec![added(3, &[("dog", 1)])]);
        let mut list = RankedList::new(1, false, 4);
        for number in has {
            assert!(list.add(&[1], 1, number, b"epk"));
        }
        making.finish(list, Lsn(read), LIMIT);
        assert_eq!(
            found(&lists, &dog, 12),
            Some(vec![(vec![1], vec![2, 3])]),
            "read at {read}"
        );
        // The worker applies the commit that was read already.
        lists.apply(Lsn(12), Lsn(13), vec![added(4, &[("dog", 1)])]);
        assert_eq!(
            found(&lists, &dog, 13),
            Some(vec![(vec![1], vec![2, 3, 4])]),
            "read at {read}"
        );
    }
}

#[test]
fn a_list_may_be_ahead_of_the_worker() {
    let (lists, dog) = (RankedTexts::new(Arc::default()), id(&["dog"]));
    let making = lists.begin(&dog, Lsn(10)).expect("no list yet");
    let mut list = RankedList::new(1, false, 4);
    assert!(list.add(&[1], 1, 2, b"epk"));
    // The commit is visible, and the worker has not heard of it yet.
    making.finish(list, Lsn(11), LIMIT);
    lists.apply(Lsn(10), Lsn(11), vec![added(2, &[("dog", 1)])]);
    assert_eq!(found(&lists, &dog, 11), Some(vec![(vec![1], vec![2])]));
}

#[test]
fn a_list_that_is_given_up_leaves_nothing() {
    let memory = Arc::<ListMemory>::default();
    let (lists, dog) = (RankedTexts::new(memory.clone()), id(&["dog"]));
    drop(lists.begin(&dog, Lsn(10)));
    assert!(lists.slots.lock().is_empty());
    // Nor one during which others wrote.
    let making = lists.begin(&dog, Lsn(10)).expect("no list yet");
    lists.apply(Lsn(12), Lsn(13), Vec::new());
    making.finish(RankedList::new(1, false, 4), Lsn(11), LIMIT);
    assert!(lists.slots.lock().is_empty());
    assert!(memory.is_unused());
}

#[test]
fn their_number_and_their_memory_are_bounded() {
    let memory = Arc::<ListMemory>::default();
    let all: Vec<Arc<RankedTexts>> = (0..2).map(|_| RankedTexts::new(memory.clone())).collect();
    for n in 0..MAX_LISTS + 10 {
        for lists in &all {
            let own = id(&[&format!("w{n}")]);
            let making = lists.begin(&own, Lsn(10)).expect("no list yet");
            let mut list = RankedList::new(1, false, 1_000);
            // The first ones are so small that their number is the limit.
            for number in 0..if n < MAX_LISTS + 5 { 1 } else { 2_000 } {
                assert!(list.add(&[1], 1, number, b"epk"));
            }
            making.finish(list, Lsn(10), LIMIT);
            assert!(lists.has(&own), "the newest is kept");
            assert!(memory.is_within(LIMIT));
            let count = lists.slots.lock().len();
            assert!(count <= MAX_LISTS, "{count}");
        }
    }
    assert!(!all[0].has(&id(&["w0"])), "the oldest is not");
    let large = all[0].begin(&id(&["large"]), Lsn(10)).expect("no list yet");
    large.finish(RankedList::new(1, false, 4), Lsn(10), 100);
    assert!(!all[0].has(&id(&["large"])), "one that does not fit is not kept");
    drop(all);
    assert!(memory.is_unused());
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_for_the_worker_but_not_for_others() {
    let dog = id(&["dog"]);
    let (lists, _) = with_list(&dog);
    let find = |lsn| {
        let (lists, dog) = (lists.clone(), dog.clone());
        tokio::spawn(async move { lists.find(&dog, Lsn(lsn)).await })
    };
    let early = find(11);
    tokio::task::yield_now().await;
    lists.apply(Lsn(10), Lsn(11), vec![added(2, &[("dog", 1)])]);
    assert!(matches!(early.await, Ok(Ranked::Found(_))));
    assert!(matches!(find(10).await, Ok(Ranked::Later)));
    // Version 12 is that of another process.
    assert!(matches!(find(12).await, Ok(Ranked::Missing)));
    assert!(!lists.has(&dog));
}
