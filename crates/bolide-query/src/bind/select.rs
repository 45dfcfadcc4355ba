//! Binds the clauses of a query.

use std::collections::HashMap;
use std::sync::Arc;

use super::scope::{Binding, Scope, unresolved};
use super::{Binder, Path};
use crate::error::{QueryError, Result};
use crate::limits;
use crate::memory::ALLOCATION_BYTES;
use crate::number::Number;
use crate::parameters::Parameters;
use crate::path::PathStep;
use crate::program::{Grouping, ITEM_SLOT, Input, Ordering, Projection, Scalar, Select, Source};
use crate::text::ast::{self, Count, CountValue, ExprKind, FromItem, Query, Selection};
use crate::value::Value;

impl Binder<'_> {
    /// Binds the outermost query.
    pub(super) fn root(&mut self, query: &Query) -> Result<Select> {
        let mut select = self.select(query, true)?;
        (select.skip, select.take) = self.window(query)?;
        select.ordering = self.ordering_of(query, &select)?;
        super::order::show_as_sorted(&mut select);
        self.scopes.pop();
        Ok(select)
    }

    /// Binds a subquery and leaves its scope.
    pub(super) fn subquery(&mut self, query: &Query) -> Result<Select> {
        super::rules::check_star(query)?;
        let select = self.select(query, false)?;
        self.scopes.pop();
        Ok(select)
    }

    /// Binds everything except ORDER BY and the counts; the scope stays open for them.
    fn select(&mut self, query: &Query, over_container: bool) -> Result<Select> {
        let outer_aggregates = self.aggregates.take();
        self.scopes.push(Scope::default());
        let mut inputs = Vec::new();
        for (n, item) in query.from.iter().enumerate() {
            self.input_item(item, over_container && n == 0, &mut inputs)?;
        }
        self.innermost().star = inputs.last().map(|input| input.slot);
        let filter = query
            .filter
            .as_ref()
            .map(|filter| self.expression(filter))
            .transpose()?;
        let (grouping, projection) = self.selection(query)?;
        self.aggregates = outer_aggregates;
        Ok(Select {
            inputs,
            filter,
            grouping,
            ordering: Ordering::None,
            projection,
            distinct: query.distinct,
            skip: 0,
            take: None,
        })
    }

    fn input_item(&mut self, item: &FromItem, may_be_container: bool, inputs: &mut Vec<Input>) -> Result<()> {
        let (source, path) = match &item.source {
            ast::Source::Path { name, name_span, steps } => {
                let binding = match self.find(name) {
                    Some(found) => found.binding,
                    None if may_be_container => {
                        inputs.push(Input {
                            slot: ITEM_SLOT,
                            source: Source::Item,
                        });
                        Binding {
                            slot: ITEM_SLOT,
                            path: Some(Path::default()),
                        }
                    }
                    None => return Err(unresolved(name, *name_span)),
                };
                let is_container = inputs.last().is_some_and(|input| matches!(input.source, Source::Item));
                if steps.is_empty() && !item.iterate && is_container && inputs.len() == 1 && may_be_container {
                    let alias = item.alias.as_deref().unwrap_or(name);
                    return self.introduce(alias, binding, item.span);
                }
                let steps: Vec<PathStep> = steps.iter().map(path_step).collect();
                let path = binding.path.map(|path| self.joined(&path, &steps)).transpose()?;
                (path_scalar(binding.slot, steps), path)
            }
            ast::Source::Expression(expr) => (self.expression(expr)?, None),
            ast::Source::Subquery(query) => return self.subquery_item(item, query, may_be_container, inputs),
        };
        let path = match (path, item.iterate) {
            (Some(path), true) => Some(self.joined(&path, &[PathStep::Each])?),
            (path, _) => path,
        };
        let slot = self.new_slot(path.clone());
        let source = if item.iterate {
            Source::Each(source)
        } else {
            Source::Value(source)
        };
        inputs.push(Input { slot, source });
        match alias_of(item) {
            Some(alias) => self.introduce(alias, Binding { slot, path }, item.span),
            None => Ok(()),
        }
    }

    fn subquery_item(
        &mut self,
        item: &FromItem,
        query: &Query,
        over_container: bool,
        inputs: &mut Vec<Input>,
    ) -> Result<()> {
        super::rules::check_star(query)?;
        let select = Arc::new(self.select(query, over_container)?);
        self.scopes.pop();
        let slot = self.new_slot(None);
        let source = if item.iterate {
            Source::EachOfSubquery(select)
        } else {
            Source::Subquery(select)
        };
        inputs.push(Input { slot, source });
        match &item.alias {
            Some(alias) => self.introduce(alias, Binding { slot, path: None }, item.span),
            None => Ok(()),
        }
    }

    fn selection(&mut self, query: &Query) -> Result<(Option<Grouping>, Projection)> {
        let explicit = !query.group_by.is_empty();
        if !explicit && !has_aggregate(&query.selection) {
            return Ok((None, self.projection(query)?));
        }
        let mut keys = Vec::new();
        let mut named = Vec::new();
        for key in &query.group_by {
            let scalar = self.expression(key)?;
            let path = self.path_of(&scalar)?;
            let slot = self.new_slot(path);
            keys.push((scalar, slot));
            named.push((super::group::canonical(key), slot));
        }
        self.aggregates = Some(Vec::new());
        self.innermost().grouped = Some(named);
        let projection = self.projection(query)?;
        self.innermost().grouped = None;
        let aggregates = self.aggregates.take().unwrap_or_default();
        Ok((
            Some(Grouping {
                keys,
                aggregates,
                explicit,
            }),
            projection,
        ))
    }

    fn innermost(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("a scope is open while its query is bound")
    }

    fn projection(&mut self, query: &Query) -> Result<Projection> {
        match &query.selection {
            Selection::Star(_) => Ok(Projection::Value(self.star())),
            Selection::Value(value) => Ok(Projection::Value(self.expression(value)?)),
            Selection::List(items) => {
                self.session
                    .memory
                    .take(columns_bytes(&query.selection, self.parameters))?;
                let names = columns(&query.selection, self.parameters);
                // If two columns have the same name, the last one wins.
                let last: HashMap<&str, usize> = names.iter().enumerate().map(|(n, name)| (name.as_str(), n)).collect();
                let mut list: Vec<(Arc<str>, Scalar)> = Vec::with_capacity(last.len());
                for (n, (name, item)) in names.iter().zip(items).enumerate() {
                    let scalar = self.expression(&item.value)?;
                    if last.get(name.as_str()) == Some(&n) {
                        list.push((name.as_str().into(), scalar));
                    }
                }
                Ok(Projection::List(list))
            }
        }
    }

    /// The value of `*`: the only input.
    fn star(&self) -> Scalar {
        Scalar::Slot(self.scopes.last().and_then(|scope| scope.star).unwrap_or(ITEM_SLOT))
    }

    /// The rows to skip and to take, from TOP or OFFSET LIMIT.
    fn window(&self, query: &Query) -> Result<(u64, Option<u64>)> {
        let max = if sorts_by_score(query) {
            limits::CANDIDATES
        } else {
            limits::COUNT
        };
        let value = |count: &Count, clause| count_up_to(max, count, clause, self.parameters);
        match (&query.top, &query.window) {
            (Some(top), Some(_)) => Err(QueryError::uncoded(
                "'TOP' and 'OFFSET LIMIT' cannot be used in the same query.",
                top.span,
            )),
            (Some(top), None) => Ok((0, Some(value(top, Clause::Top)?))),
            (None, Some(window)) => Ok((
                value(&window.offset, Clause::Offset)?,
                Some(value(&window.limit, Clause::Limit)?),
            )),
            (None, None) => Ok((0, None)),
        }
    }
}

/// The clause that contains a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clause {
    Top,
    Offset,
    Limit,
}

/// The number of a TOP, OFFSET or LIMIT.
///
/// # Errors
/// SC2060 to SC2062 for anything but an integer from 0 to 2147483647.
pub fn count_value(count: &Count, clause: Clause, parameters: &Parameters) -> Result<u64> {
    count_up_to(limits::COUNT, count, clause, parameters)
}

/// Whether this may be a component of a ranking, rewritten by a query plan: its counts are twice those of the query.
fn sorts_by_score(query: &Query) -> bool {
    matches!(&query.order, Some(ast::Order::By(items)) if matches!(items.as_slice(), [item] if matches!(item.value.kind, ExprKind::Call(_))))
}

fn count_up_to(max: u64, count: &Count, clause: Clause, parameters: &Parameters) -> Result<u64> {
    let number = match &count.value {
        CountValue::Literal(number) => Some(*number),
        CountValue::Parameter(name) => parameters.get(name).and_then(Value::as_number),
    };
    let value = number
        .and_then(Number::as_i64)
        .and_then(|n| u64::try_from(n).ok())
        .filter(|n| *n <= max);
    value.ok_or_else(|| {
        let (code, message) = match clause {
            Clause::Top => (
                "SC2060",
                "The count value provided for a TOP clause must be an integer.",
            ),
            Clause::Limit => ("SC2061", "The LIMIT count value exceeds the maximum allowed value."),
            Clause::Offset => ("SC2062", "The OFFSET count value exceeds the maximum allowed value."),
        };
        QueryError::at(code, message, count.span)
    })
}

/// The names of the columns of a select list.
pub type Columns = Vec<String>;

/// Names the columns of a select list (cosmos-sql §4); empty for `*` and VALUE.
pub fn columns(selection: &Selection, parameters: &Parameters) -> Columns {
    let Selection::List(items) = selection else {
        return Vec::new();
    };
    let mut unnamed = 0;
    let mut name_of = |item: &ast::SelectItem| {
        let name = given_name(item, parameters).map(str::to_owned);
        name.unwrap_or_else(|| {
            unnamed += 1;
            format!("${unnamed}")
        })
    };
    items.iter().map(&mut name_of).collect()
}

/// Memory of the column names of a select list, in bytes.
pub fn columns_bytes(selection: &Selection, parameters: &Parameters) -> usize {
    let Selection::List(items) = selection else { return 0 };
    let bytes = |item| given_name(item, parameters).map_or(0, str::len) + size_of::<String>() + ALLOCATION_BYTES;
    2 * items.iter().map(bytes).sum::<usize>()
}

/// The name of a column: its alias, or the last name of a path. If a parameter gives the name, it may be longer than the text.
fn given_name<'e>(item: &'e ast::SelectItem, parameters: &'e Parameters) -> Option<&'e str> {
    match (&item.alias, &item.value.kind) {
        (Some(alias), _) => Some(alias),
        (None, ExprKind::Name(name) | ExprKind::Member { name, .. }) => Some(name),
        (None, ExprKind::Index { index, .. }) => match &index.kind {
            ExprKind::Parameter(name) => parameters.get(name).and_then(Value::as_str),
            _ => None,
        },
        _ => None,
    }
}

fn alias_of(item: &FromItem) -> Option<&str> {
    let inferred = match &item.source {
        ast::Source::Path { name, steps, .. } => match steps.last() {
            None => Some(name.as_str()),
            Some(ast::FromStep::Dot(name) | ast::FromStep::Bracket(name)) => Some(name.as_str()),
            Some(ast::FromStep::Element(_)) => None,
        },
        ast::Source::Subquery(_) | ast::Source::Expression(_) => None,
    };
    item.alias.as_deref().or(inferred)
}

fn path_step(step: &ast::FromStep) -> PathStep {
    match step {
        ast::FromStep::Dot(name) | ast::FromStep::Bracket(name) => PathStep::Name(name.clone()),
        ast::FromStep::Element(index) => element_step(*index),
    }
}

/// An array index; a number that is not whole or is negative selects no element.
pub(super) fn element_step(index: Number) -> PathStep {
    index
        .as_i64()
        .and_then(|i| usize::try_from(i).ok())
        .map_or(PathStep::Nowhere, PathStep::Element)
}

pub(super) fn path_scalar(slot: usize, steps: Vec<PathStep>) -> Scalar {
    if steps.is_empty() {
        Scalar::Slot(slot)
    } else {
        Scalar::Path {
            slot,
            steps: steps.into(),
        }
    }
}

fn has_aggregate(selection: &Selection) -> bool {
    match selection {
        Selection::Star(_) => false,
        Selection::Value(value) => super::group::contains_aggregate(value),
        Selection::List(items) => items.iter().any(|item| super::group::contains_aggregate(&item.value)),
    }
}
