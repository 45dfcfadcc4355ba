//! The pipeline stage that holds rows until they are returned: no holding, groups, sorting or ranking.

use std::sync::Arc;

use super::distinct::Distinct;
use super::emitted_rows::{self, Ordinals};
use super::output::Output;
use super::ranker::Ranker;
use super::resume_filter::ResumeFilter;
use super::sorter::{SortPosition, Sorter};
use super::writing::{emit, write_distinct, write_row};
use super::{is_cut, needs_all_emitted};
use crate::error::Result;
use crate::eval::{Flow, Row, project};
use crate::group::Groups;
use crate::program::{Grouping, Ordering, Ranking, Select, SortKey};
use crate::value::SameKey;

#[derive(Debug)]
pub(super) enum Stage {
    Stream,
    Groups(Groups),
    SortedGroups(Groups, Box<Sorter>),
    Sort(Box<Sorter>),
    Rank(Ranker),
}

impl Stage {
    /// `rows_wanted`: no more rows than these are ever returned. `boundary`: the last row that earlier pages returned, in the order of keys.
    pub(super) fn new(
        select: &Select,
        rows_wanted: Option<usize>,
        boundary: Option<SortPosition>,
        filter: Option<Arc<ResumeFilter>>,
    ) -> Stage {
        let sorter = |keys| {
            let max_rows = if select.distinct { None } else { rows_wanted };
            Box::new(Sorter::new(keys, max_rows, boundary, filter, select.distinct))
        };
        match (&select.grouping, &select.ordering) {
            (Some(grouping), Ordering::Keys(keys)) => Stage::SortedGroups(Groups::new(grouping), sorter(keys)),
            (Some(grouping), _) => Stage::Groups(Groups::new(grouping)),
            (None, Ordering::None) => Stage::Stream,
            (None, Ordering::Keys(keys)) => Stage::Sort(sorter(keys)),
            (None, Ordering::Rank(ranking)) => Stage::Rank(Ranker::new(ranking)),
        }
    }

    /// Processes one row that passed FROM and WHERE.
    pub(super) fn accept<'a>(
        &mut self,
        select: &'a Select,
        distinct: Option<&mut Distinct>,
        output: &mut Output,
        row: &mut Row<'a>,
        ordinals: &mut Ordinals,
        (item_rows, already): (&mut u64, u64),
    ) -> Result<Flow> {
        match self {
            Stage::Groups(groups) | Stage::SortedGroups(groups, _) => match &select.grouping {
                Some(grouping) => groups.add(grouping, row).map(|()| Flow::Continue),
                None => Ok(Flow::Continue),
            },
            Stage::Sort(sorter) => {
                let Ordering::Keys(keys) = &select.ordering else {
                    return Ok(Flow::Continue);
                };
                let ordinal = ordinals.next(row.rid);
                sort(sorter, keys, select, row, ordinal)?;
                Ok(Flow::Continue)
            }
            Stage::Rank(ranker) => {
                let ordinal = ordinals.next(row.rid);
                ranker.add(ranking(select), row, ordinal, |row, out| {
                    write_distinct(select, distinct, row, out, None)
                })?;
                Ok(Flow::Continue)
            }
            Stage::Stream => {
                if *item_rows < already {
                    *item_rows += 1;
                    if let Some(distinct) = distinct {
                        distinct.is_new(&project(&select.projection, row)?, row.session)?;
                    }
                    return Ok(Flow::Continue);
                }
                let name =
                    needs_all_emitted(select).then(|| emitted_rows::hash_of_row(row.rid, ordinals.next(row.rid)));
                let flow = emit(select, distinct, output, row, name)?;
                if flow == Flow::Continue {
                    *item_rows += 1;
                }
                Ok(flow)
            }
        }
    }

    /// Returns its rows. `last_group` is the last group that was returned, if groups are ordered by the identity of their keys.
    pub(super) fn emit<'a>(
        &mut self,
        select: &'a Select,
        distinct: &mut Option<Distinct>,
        output: &mut Output,
        row: &mut Row<'a>,
        last_group: &mut Option<SameKey>,
    ) -> Result<()> {
        match self {
            Stage::Stream => Ok(()),
            Stage::Groups(groups) => {
                let Some(grouping) = &select.grouping else {
                    return Ok(());
                };
                let groups = std::mem::replace(groups, Groups::new(grouping));
                give_groups(groups, (select, grouping), distinct, output, row, last_group)
            }
            Stage::SortedGroups(groups, sorter) => {
                let (Some(grouping), Ordering::Keys(keys)) = (&select.grouping, &select.ordering) else {
                    return Ok(());
                };
                for finished in std::mem::replace(groups, Groups::new(grouping)).finish(grouping) {
                    row.session.begin_item();
                    // The group's identity replaces the resource id among equal keys.
                    row.rid = emitted_rows::hash(finished.key());
                    finished.fill(grouping, row);
                    sort(sorter, keys, select, row, 0)?;
                }
                sorter.emit(output)
            }
            Stage::Sort(sorter) => sorter.emit(output),
            Stage::Rank(ranker) => ranker.emit(ranking(select), output),
        }
    }
}

fn give_groups<'a>(
    mut groups: Groups,
    (select, grouping): (&'a Select, &'a Grouping),
    distinct: &mut Option<Distinct>,
    output: &mut Output,
    row: &mut Row<'a>,
    last: &mut Option<SameKey>,
) -> Result<()> {
    // Groups that fit on one page are returned in the order in which they were found. Over several pages each group needs a position that does not
    // depend on the others, because those may expire meanwhile (TTL-247). If TOP or LIMIT select among the groups, the selection is the same for all
    // page sizes.
    let is_first_of_several = output.is_fresh() && groups.len() > output.page_rows();
    let is_over_pages = last.is_some() || (is_first_of_several && !is_cut(select));
    if is_over_pages {
        groups.sort();
    }
    for finished in groups.finish(grouping) {
        row.session.begin_item();
        let key = finished.key().clone();
        let is_given = last.as_ref().is_some_and(|last| key <= *last);
        finished.fill(grouping, row);
        if is_given {
            if let Some(distinct) = distinct.as_mut() {
                distinct.is_new(&project(&select.projection, row)?, row.session)?;
            }
            continue;
        }
        let name = needs_all_emitted(select).then(|| emitted_rows::hash(&key));
        if emit(select, distinct.as_mut(), output, row, name)? == Flow::Stop {
            break;
        }
        if is_over_pages {
            *last = Some(key);
        }
    }
    Ok(())
}

pub(super) fn ranking(select: &Select) -> &Ranking {
    match &select.ordering {
        Ordering::Rank(ranking) => ranking,
        _ => unreachable!("only ranked queries have a ranker"),
    }
}

fn sort<'a>(
    sorter: &mut Sorter,
    keys: &'a [SortKey],
    select: &'a Select,
    row: &mut Row<'a>,
    ordinal: u64,
) -> Result<()> {
    if select.distinct {
        sorter.add_distinct(keys, row, ordinal, |row| project(&select.projection, row))
    } else {
        sorter.add(keys, row, ordinal, |row, out| write_row(&select.projection, row, out))
    }
}
