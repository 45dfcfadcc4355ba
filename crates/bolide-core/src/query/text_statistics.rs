//! Counts of items, words and texts with a term, from the counters and the lists of full-text indexes.
//!
//! SDKs begin a ranking over several ranges with a query for these (cosmos-rest §6.11).

use bolide_query::index::{TextAggregate, TextIndex};

use super::counting::Counting;
use super::page::PageRun;
use super::text_lists::{Halt, TextLists, Wanted};
use crate::scan::ItemScan;

/// Returns the text that an aggregate is of.
pub(super) fn text_of(aggregate: &TextAggregate) -> Option<&TextIndex> {
    match aggregate {
        TextAggregate::Documents => None,
        TextAggregate::Words(text) | TextAggregate::Hits(text, _) => Some(text),
    }
}

impl PageRun<'_> {
    /// Sets the results of a query's aggregates.
    pub(super) async fn set_aggregates(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        aggregates: &[TextAggregate],
    ) -> Result<(), Halt> {
        let mut texts: Vec<&TextIndex> = aggregates.iter().filter_map(text_of).collect();
        texts.sort_unstable();
        texts.dedup();
        let mut values = vec![0; aggregates.len()];
        for text in texts {
            let of_text = aggregates.iter().enumerate();
            let of_text = of_text.filter(|(_, own)| text_of(own).is_none_or(|own| own == text));
            let (places, of_text): (Vec<usize>, Vec<&TextAggregate>) = of_text.unzip();
            let term = |aggregate: &&TextAggregate| match aggregate {
                TextAggregate::Hits(_, term) => term.clone(),
                TextAggregate::Documents | TextAggregate::Words(_) => None,
            };
            let terms: Vec<Option<String>> = of_text.iter().map(term).collect();
            let lists = TextLists {
                run: self,
                index: self.state.indexes.usable_text(text).ok_or(Halt::Scan)?.id,
                text,
                terms: &terms,
                wanted: Wanted::Statistics,
            };
            let texts = lists.read(walk).await?;
            texts.charge(execution);
            let statistics = texts.statistics;
            for ((place, aggregate), hits) in places.into_iter().zip(of_text).zip(statistics.hits) {
                values[place] = match aggregate {
                    TextAggregate::Documents => statistics.documents,
                    TextAggregate::Words(_) => statistics.words,
                    TextAggregate::Hits(..) => hits,
                };
            }
        }
        execution.set_aggregates(&values);
        Ok(())
    }
}
