//! The syntax trees of recent texts.
//!
//! An application sends the same few texts again and again, with other parameters, and every page of a query has its text: parsing was a tenth of the
//! work of a query that finds one item by an index. A tree depends on its text alone, so each thread keeps those of its last texts, without locks.

use std::cell::RefCell;
use std::sync::Arc;

use super::ast::Query;
use super::parser::parse;
use crate::error::Result;
use crate::memory::Memory;

/// Number of trees that a thread keeps, and the largest size of one in bytes, its text included: 128 KiB for each thread that compiles queries,
/// beside the memory that queries count. Threads for long queries end when they are idle.
const TREES: usize = 16;
const TREE_BYTES: usize = 8 * 1024;

struct Recent {
    text: Box<str>,
    tree: Arc<Query>,
    bytes: usize,
}

thread_local! {
    /// The last one is the most recent.
    static RECENT: RefCell<Vec<Recent>> = const { RefCell::new(Vec::new()) };
}

/// As [`parse`], unless this thread has parsed the text a short time ago. Either way the tree counts as the query's memory; also returns its size in bytes.
///
/// # Errors
/// As [`parse`].
pub fn parse_or_recall(text: &str, memory: &Memory) -> Result<(Arc<Query>, usize)> {
    if let Some((tree, bytes)) = recall(text) {
        memory.take(bytes)?;
        return Ok((tree, bytes));
    }
    let before = memory.used();
    let tree = Arc::new(parse(text, memory)?);
    let bytes = memory.used() - before;
    if bytes + text.len() <= TREE_BYTES {
        keep(text, &tree, bytes);
    }
    Ok((tree, bytes))
}

fn recall(text: &str) -> Option<(Arc<Query>, usize)> {
    RECENT.with_borrow_mut(|recent| {
        let at = recent.iter().rposition(|recent| *recent.text == *text)?;
        recent[at..].rotate_left(1);
        recent.last().map(|recent| (recent.tree.clone(), recent.bytes))
    })
}

fn keep(text: &str, tree: &Arc<Query>, bytes: usize) {
    RECENT.with_borrow_mut(|recent| {
        if recent.len() == TREES {
            recent.remove(0);
        }
        recent.push(Recent {
            text: text.into(),
            tree: tree.clone(),
            bytes,
        });
    });
}

#[cfg(test)]
mod tests;
