use super::*;
use crate::error::QueryError;

/// Runs on a thread of its own, whose trees no other test changes.
fn on_new_thread(test: impl FnOnce() + Send + 'static) {
    std::thread::spawn(test).join().unwrap();
}

fn parsed(text: &str) -> (Arc<Query>, usize) {
    parse_or_recall(text, &Memory::new(usize::MAX, None)).unwrap()
}

fn number(n: usize) -> String {
    format!("SELECT VALUE c.a{n} FROM c")
}

#[test]
fn a_recent_text_has_the_same_tree() {
    on_new_thread(|| {
        let (first, bytes) = parsed("SELECT * FROM c WHERE c.a = @a");
        let (again, bytes_again) = parsed("SELECT * FROM c WHERE c.a = @a");
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(bytes, bytes_again);
        let (other, _) = parsed("SELECT * FROM c WHERE c.a = @A");
        assert_ne!(*first, *other, "texts are compared by every character");
    });
}

#[test]
fn the_tree_that_was_not_used_for_longest_goes_first() {
    on_new_thread(|| {
        let trees: Vec<_> = (0..TREES).map(|n| parsed(&number(n)).0).collect();
        assert!(Arc::ptr_eq(&parsed(&number(0)).0, &trees[0]), "the first is used again");
        parsed("SELECT 1");
        assert!(Arc::ptr_eq(&parsed(&number(0)).0, &trees[0]));
        assert!(!Arc::ptr_eq(&parsed(&number(1)).0, &trees[1]));
    });
}

#[test]
fn a_recalled_tree_counts_as_memory_of_the_query() {
    on_new_thread(|| {
        let text = "SELECT * FROM c WHERE c.a = @a";
        let fresh = Memory::new(usize::MAX, None);
        let (_, bytes) = parse_or_recall(text, &fresh).unwrap();
        let recalling = Memory::new(usize::MAX, None);
        parse_or_recall(text, &recalling).unwrap();
        assert_eq!(fresh.used(), recalling.used());
        let refused = parse_or_recall(text, &Memory::new(bytes - 1, None));
        assert!(matches!(refused, Err(QueryError::TooLarge { .. })), "{refused:?}");
    });
}

#[test]
fn large_trees_and_errors_are_not_kept() {
    on_new_thread(|| {
        let large = format!("SELECT VALUE [{}1]", "1, ".repeat(TREE_BYTES / 3));
        let (first, _) = parsed(&large);
        assert!(!Arc::ptr_eq(&first, &parsed(&large).0));
        for _ in 0..2 {
            let refused = parse_or_recall("SELECT FROM", &Memory::new(usize::MAX, None));
            assert!(matches!(refused, Err(QueryError::Compile(_))), "{refused:?}");
        }
        RECENT.with_borrow(|recent| assert!(recent.is_empty()));
    });
}
