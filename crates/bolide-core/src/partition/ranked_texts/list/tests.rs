use super::*;

/// A text of the model: how often each word occurs, its number of words, its number.
type Text = (Vec<u64>, u64, u64);

const KEEP: usize = 3;

/// Asserts that a list is that of all these texts, as far as it must know them.
fn assert_is_of(list: &RankedList, texts: &[Text], ties_descend: bool, what: &str) {
    for word in 0..2 {
        let count = texts.iter().filter(|(times, ..)| times[word] > 0).count();
        assert_eq!(list.counts()[word], count as u64, "{what}");
    }
    let mut kept = 0;
    let mut seen = 0;
    for (times, group) in list.groups() {
        let mut of_group: Vec<&Text> = texts.iter().filter(|text| text.0 == times).collect();
        of_group.sort_by_key(|(_, words, number)| (*words, if ties_descend { u64::MAX - number } else { *number }));
        seen += of_group.len();
        kept += group.best().len();
        assert!(group.best().len() <= of_group.len(), "{what}");
        assert!(group.best().len() <= 2 * KEEP, "{what}");
        for (own, text) in group.best().iter().zip(&of_group) {
            assert_eq!((own.words, own.number(ties_descend)), (text.1, text.2), "{what}");
            assert_eq!(
                &own.item_key(ties_descend)[..],
                [b"epk", &text.2.to_be_bytes()[..]].concat()
            );
        }
        match group.bound() {
            None => assert_eq!(group.best().len(), of_group.len(), "{what}"),
            Some(bound) => {
                let others = &of_group[group.best().len()..];
                assert!(others.iter().all(|(_, words, _)| *words >= bound), "{what}");
            }
        }
    }
    let with_words = texts.iter().filter(|(times, ..)| times.iter().any(|times| *times > 0));
    assert_eq!(seen, with_words.count(), "{what}");
    assert_eq!(list.kept, kept, "{what}");
}

#[test]
fn a_list_knows_the_first_texts_of_each_group() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let ties_descend = random.bool();
        let mut list = RankedList::new(2, ties_descend, KEEP);
        let mut texts: Vec<Text> = Vec::new();
        for step in 0..120 {
            if random.u8(..10) < 6 || texts.is_empty() {
                let number = loop {
                    let number = random.u64(..1_000);
                    if texts.iter().all(|text| text.2 != number) {
                        break number;
                    }
                };
                let text = (vec![random.u64(..3), random.u64(..2)], random.u64(1..5), number);
                assert!(list.add(&text.0, text.1, text.2, b"epk"));
                texts.push(text);
            } else {
                let text = texts.swap_remove(random.usize(..texts.len()));
                assert!(list.remove(&text.0, text.1, text.2, b"epk"));
            }
            assert_is_of(&list, &texts, ties_descend, &format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn a_text_that_was_not_there_is_noticed() {
    let mut list = RankedList::new(1, false, KEEP);
    assert!(!list.remove(&[1], 5, 1, b"epk"));
    assert!(list.add(&[1], 5, 1, b"epk"));
    assert!(!list.remove(&[1], 5, 2, b"epk"));
}

#[test]
fn a_list_is_worn_when_few_of_its_texts_are_left() {
    let mut list = RankedList::new(1, false, 4);
    for number in 0..20 {
        assert!(list.add(&[1], 5, number, b"epk"));
    }
    assert!(!list.is_worn());
    for number in 0..3 {
        assert!(list.remove(&[1], 5, number, b"epk"));
    }
    assert!(list.is_worn());
}

#[test]
fn a_list_of_too_many_groups_is_given_up() {
    let mut list = RankedList::new(1, false, KEEP);
    let fits = |times| list.add(&[times], times, times, b"epk");
    assert_eq!(
        (1..=2 * MAX_GROUPS as u64).map(fits).filter(|fits| *fits).count(),
        MAX_GROUPS
    );
}
