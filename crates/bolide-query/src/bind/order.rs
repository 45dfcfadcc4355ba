//! ORDER BY (cosmos-sql §13).

use super::group::canonical;
use super::{Binder, Path};
use crate::error::{QueryError, Result, Span};
use crate::functions;
use crate::limits::ORDER_BY_KEYS;
use crate::path::PathStep;
use crate::program::{Grouping, Input, Ordering, Projection, Scalar, Select, SortKey, Source, VectorSearch};
use crate::schema::{Coverage, DistanceFunction, Indexing};
use crate::text::ast::{Direction, Expr, ExprKind, Order, OrderItem, Query};
use crate::text::printer::expression_text;
use crate::value::Value;

const NO_COMPOSITE_INDEX: &str =
    "The order by query does not have a corresponding composite index that it can be served from.";
const NO_RANGE_INDEX: &str = "The order-by item requires a range index to be defined on the corresponding index path.";

/// The column in which a rewritten query shows its sort values (cosmos-sql §22.2).
const SORT_VALUES: &str = "orderByItems";

/// Under a composite index an array or object counts as undefined. A client merges ranges by the sort values in the rows, so these must agree: with
/// the array itself the merge would contradict the order of every range, and some clients reject arrays there.
pub(super) fn show_as_sorted(select: &mut Select) {
    let Ordering::Keys(keys) = &select.ordering else { return };
    let columns = match &mut select.projection {
        Projection::List(columns) | Projection::Value(Scalar::Object(columns)) => columns,
        Projection::Value(_) => return,
    };
    let Some((_, Scalar::Array(items))) = columns.iter_mut().find(|(name, _)| &**name == SORT_VALUES) else {
        return;
    };
    let Some(is_primitive) = functions::find("IS_PRIMITIVE") else {
        return;
    };
    for (item, key) in items.iter_mut().zip(keys) {
        let Scalar::Object(members) = item else { continue };
        for (_, value) in members.iter_mut().filter(|_| key.primitives_only) {
            let test = Scalar::Call(is_primitive, vec![value.clone()]);
            *value = Scalar::Conditional(Box::new((test, value.clone(), Scalar::Const(Value::Undefined))));
        }
    }
}

impl Binder<'_> {
    pub(super) fn ordering_of(&mut self, query: &Query, select: &Select) -> Result<Ordering> {
        match &query.order {
            None => Ok(Ordering::None),
            Some(Order::Rank(items)) => self.ranking(items).map(Ordering::Rank),
            Some(Order::By(items)) => {
                if let Some(grouping) = &select.grouping {
                    return self.group_ordering(query, items, grouping);
                }
                self.sort_keys(query, items, select).map(Ordering::Keys)
            }
        }
    }

    /// The order of groups, which depends only on their keys and needs no index.
    fn group_ordering(&mut self, query: &Query, items: &[OrderItem], grouping: &Grouping) -> Result<Ordering> {
        check_count(items)?;
        let mut keys = Vec::new();
        for item in items {
            if !grouping.explicit && self.computed_key(item)?.is_some() {
                continue;
            }
            let value = self.expression(&item.value)?;
            if !matches!(value, Scalar::Slot(_) | Scalar::Path { .. } | Scalar::Computed(_)) {
                return Err(unsupported());
            }
            if !grouping.explicit {
                // With an aggregate there is one row, and nothing to sort.
                continue;
            }
            let wanted = canonical(&item.value);
            let position = query.group_by.iter().position(|key| canonical(key) == wanted);
            let Some((_, slot)) = position.and_then(|position| grouping.keys.get(position)) else {
                return Err(not_a_group_key(&item.value));
            };
            keys.push(SortKey {
                value: Scalar::Slot(*slot),
                descending: item.direction == Some(Direction::Descending),
                skip_undefined: false,
                primitives_only: false,
                search: None,
            });
        }
        Ok(if keys.is_empty() {
            Ordering::None
        } else {
            Ordering::Keys(keys)
        })
    }

    fn sort_keys(&mut self, query: &Query, items: &[OrderItem], select: &Select) -> Result<Vec<SortKey>> {
        if let [item] = items
            && let Some(key) = self.computed_key(item)?
        {
            return Ok(vec![key]);
        }
        check_count(items)?;
        let mut keys = Vec::new();
        for item in items {
            let value = self.expression(&item.value)?;
            let descending = item.direction == Some(Direction::Descending);
            keys.push(SortKey {
                value,
                descending,
                skip_undefined: false,
                primitives_only: items.len() > 1,
                search: None,
            });
        }
        let paths = keys
            .iter()
            .map(|key| self.sort_path(&key.value, query, select))
            .collect::<Result<Vec<_>>>()?;
        match &self.schema.indexing {
            None => {}
            Some(indexing) if keys.len() == 1 => {
                let coverage = paths[0]
                    .as_ref()
                    .map_or(Coverage::Wildcard, |path| coverage(indexing, path));
                if coverage == Coverage::Excluded {
                    return Err(QueryError::refused(NO_RANGE_INDEX));
                }
                keys[0].skip_undefined = coverage == Coverage::Wildcard;
            }
            Some(indexing) => {
                let wanted: Option<Vec<_>> = paths
                    .into_iter()
                    .zip(&keys)
                    .map(|(path, key)| path.map(|path| (path, key.descending)))
                    .collect();
                if !wanted.is_some_and(|wanted| has_composite(indexing, &wanted)) {
                    return Err(QueryError::refused(NO_COMPOSITE_INDEX));
                }
            }
        }
        Ok(keys)
    }

    /// The document path by which an item sorts; `None` for a path below the result of the first input's subquery.
    ///
    /// # Errors
    /// 2206 if it is not a path, such as the result of a joined subquery; "correlated collections" for the collection that JOIN iterates over.
    fn sort_path(&self, scalar: &Scalar, query: &Query, select: &Select) -> Result<Option<Path>> {
        match scalar {
            Scalar::Slot(slot) | Scalar::Path { slot, .. } => {
                let at = select.inputs.iter().position(|input| input.slot == *slot);
                if let Some(at) = at {
                    // The first item of FROM may be two inputs: the container, and a path below it.
                    let first = select.inputs.len() - query.from.len();
                    check_input(&select.inputs[at], at > first, scalar)?;
                }
                self.path_of(scalar)
            }
            Scalar::Computed(_) => {
                let name = self.computed_name(scalar).ok_or_else(unsupported)?;
                Ok(Some([PathStep::name(name)].into()))
            }
            _ => Err(unsupported()),
        }
    }

    /// `VectorDistance(…)`, and `_VectorScore(…)` and `_FullTextScore(…)` of rewritten hybrid queries.
    fn computed_key(&mut self, item: &OrderItem) -> Result<Option<SortKey>> {
        let ExprKind::Call(call) = &item.value.kind else {
            return Ok(None);
        };
        let descending = if call.name.eq_ignore_ascii_case("VectorDistance") {
            if item.direction.is_some() {
                return Err(vector_direction(item.value.span));
            }
            !self.is_euclidean(item)?
        } else if call.name.eq_ignore_ascii_case("_VectorScore") {
            match item.direction {
                Some(direction) => direction == Direction::Descending,
                None => !self.is_euclidean(item)?,
            }
        } else if call.name.eq_ignore_ascii_case("_FullTextScore") {
            item.direction == Some(Direction::Descending)
        } else {
            return Ok(None);
        };
        let value = self.expression(&item.value)?;
        let search = match call.name.eq_ignore_ascii_case("_FullTextScore") {
            true => None,
            false => Some(self.vector_search(&call.args)?),
        };
        // An item without a distance is ordered too: lowest, so it is last by similarity and first by Euclidean distance.
        Ok(Some(SortKey {
            value,
            descending,
            skip_undefined: false,
            primitives_only: false,
            search,
        }))
    }

    /// What the third and fourth arguments of a `VectorDistance` say (cosmos-sql §18.8).
    fn vector_search(&mut self, args: &[Expr]) -> Result<VectorSearch> {
        let is_exact = match args.get(2) {
            None => false,
            Some(flag) => self.expression(flag)?.as_const().and_then(Value::as_bool) != Some(false),
        };
        let options = args.get(3).map(|options| self.expression(options)).transpose()?;
        let multiplier = |name: &str| {
            let given = options.as_ref().and_then(Scalar::as_const)?.member(name).as_f64()?;
            given
                .is_finite()
                .then(|| given.clamp(1.0, VectorSearch::MAX_MULTIPLIER))
        };
        Ok(VectorSearch {
            is_exact,
            list_multiplier: multiplier("searchListSizeMultiplier").unwrap_or(VectorSearch::LIST_MULTIPLIER),
            candidate_multiplier: multiplier("quantizedVectorListMultiplier")
                .unwrap_or(VectorSearch::CANDIDATE_MULTIPLIER),
        })
    }

    /// Whether a smaller `VectorDistance` is better.
    pub(super) fn is_euclidean(&mut self, item: &OrderItem) -> Result<bool> {
        let ExprKind::Call(call) = &item.value.kind else {
            return Ok(false);
        };
        let args = call
            .args
            .iter()
            .map(|arg| self.expression(arg))
            .collect::<Result<Vec<_>>>()?;
        Ok(self.distance_function(&args, item.value.span)? == DistanceFunction::Euclidean)
    }
}

/// `id` and `_ts` are indexed whatever the policy says. A path in a composite index counts as an included path: the .NET SDK's tests
/// (`CosmosUndefinedQueryTests`) sort by one and also get the items without it.
fn coverage(indexing: &Indexing, path: &[PathStep]) -> Coverage {
    let always = [PathStep::name("id")] == path || [PathStep::name("_ts")] == path;
    let is_in_composite = || indexing.composite.iter().flatten().any(|own| own.path[..] == *path);
    match indexing.coverage(path) {
        _ if always && !indexing.none => Coverage::Explicit,
        Coverage::Wildcard if is_in_composite() => Coverage::Explicit,
        coverage => coverage,
    }
}

/// Whether an index has exactly these paths, in these directions or in all the opposite directions.
fn has_composite(indexing: &Indexing, wanted: &[(Path, bool)]) -> bool {
    indexing.composite.iter().any(|index| {
        let same_paths = index.len() == wanted.len()
            && index
                .iter()
                .zip(wanted)
                .all(|(own, (path, _))| own.path[..] == path[..]);
        let flips = index
            .iter()
            .zip(wanted)
            .map(|(own, (_, descending))| own.descending != *descending);
        same_paths && (flips.clone().all(|flipped| flipped) || !flips.clone().any(|flipped| flipped))
    })
}

/// Refuses sort keys that no index has in order: values computed in a subquery, and collections that JOIN iterates over.
///
/// Source: the baselines of LINQ in the .NET SDK (`TestSkipTake`, `TestSubquery`).
fn check_input(input: &Input, is_joined: bool, scalar: &Scalar) -> Result<()> {
    let is_at_path = match &input.source {
        Source::Item | Source::Value(_) => return Ok(()),
        Source::Each(_) => true,
        Source::EachOfSubquery(select) => is_path(select, &[]),
        Source::Subquery(select) => is_path(select, steps_of(scalar)),
    };
    match (is_at_path, is_joined) {
        (true, true) => Err(correlated()),
        (true, false) => Ok(()),
        (false, _) => Err(unsupported()),
    }
}

fn steps_of(scalar: &Scalar) -> &[PathStep] {
    match scalar {
        Scalar::Path { steps, .. } => steps,
        _ => &[],
    }
}

/// Whether the value at `steps` below a subquery's result is at a path of the item.
fn is_path(select: &Select, steps: &[PathStep]) -> bool {
    if select.grouping.is_some() {
        return false;
    }
    let is_path_of = |scalar: &Scalar, steps: &[PathStep]| {
        let (Scalar::Slot(slot) | Scalar::Path { slot, .. }) = scalar else {
            return false;
        };
        match select
            .inputs
            .iter()
            .find(|input| input.slot == *slot)
            .map(|input| &input.source)
        {
            Some(Source::Subquery(inner)) => is_path(inner, &[steps_of(scalar), steps].concat()),
            Some(Source::EachOfSubquery(inner)) => is_path(inner, &[]),
            _ => true,
        }
    };
    let member = |members: &[(std::sync::Arc<str>, Scalar)]| match steps.split_first() {
        Some((PathStep::Name(name), rest)) => {
            let found = members.iter().find(|(own, _)| **own == **name);
            found.is_some_and(|(_, scalar)| is_path_of(scalar, rest))
        }
        _ => false,
    };
    match &select.projection {
        Projection::Value(Scalar::Object(members)) | Projection::List(members) => member(members),
        Projection::Value(scalar) => is_path_of(scalar, steps),
    }
}

fn correlated() -> QueryError {
    QueryError::refused("Order-by over correlated collections is not supported.")
}

fn not_a_group_key(item: &Expr) -> QueryError {
    QueryError::refused(format!(
        "With 'GROUP BY', 'ORDER BY' sorts by keys of the groups only, and '{}' is none of them.",
        expression_text(item)
    ))
}

fn check_count(items: &[OrderItem]) -> Result<()> {
    match items.get(ORDER_BY_KEYS) {
        Some(beyond) => Err(too_many_keys(items.len(), beyond.value.span)),
        None => Ok(()),
    }
}

fn unsupported() -> QueryError {
    let message = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.";
    QueryError::Compile(vec![crate::error::Diagnostic {
        code: Some("2206"),
        message: message.to_owned(),
        location: None,
    }])
}

fn too_many_keys(count: usize, span: Span) -> QueryError {
    let message = format!(
        "An ORDER BY clause has at most {ORDER_BY_KEYS} items, as a composite index has paths; this one has {count}."
    );
    QueryError::uncoded(message, span)
}

fn vector_direction(span: Span) -> QueryError {
    let message = "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
    QueryError::uncoded(message, span)
}
