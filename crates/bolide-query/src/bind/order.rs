//! ORDER BY (cosmos-sql §13).

use super::{Binder, Path};
use crate::error::{QueryError, Result, Span};
use crate::functions;
use crate::limits::ORDER_BY_KEYS;
use crate::path::PathStep;
use crate::program::{Ordering, Projection, Scalar, Select, SortKey};
use crate::schema::{Coverage, DistanceFunction, Indexing};
use crate::text::ast::{Direction, ExprKind, Order, OrderItem, Query};
use crate::value::Value;

const NO_COMPOSITE_INDEX: &str =
    "The order by query does not have a corresponding composite index that it can be served from.";
const NO_RANGE_INDEX: &str = "The order-by item requires a range index to be defined on the corresponding index path.";

/// The column in which a rewritten query shows its sort values (cosmos-sql §22.2).
const SORT_VALUES: &str = "orderByItems";

/// Under a composite index an array or object counts as undefined. A client merges ranges by the sort values in the rows, so these must say
/// the same: with the array itself the merge would contradict the order of every range, and some clients take no array there.
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
                if !query.group_by.is_empty() {
                    return Err(QueryError::refused(
                        "'ORDER BY' is not supported together with 'GROUP BY'.",
                    ));
                }
                let keys = self.sort_keys(items)?;
                // Over an aggregate there is one row, and nothing to sort.
                Ok(if select.grouping.is_some() {
                    Ordering::None
                } else {
                    Ordering::Keys(keys)
                })
            }
        }
    }

    fn sort_keys(&mut self, items: &[OrderItem]) -> Result<Vec<SortKey>> {
        if let [item] = items
            && let Some(key) = self.computed_key(item)?
        {
            return Ok(vec![key]);
        }
        if let Some(beyond) = items.get(ORDER_BY_KEYS) {
            return Err(too_many_keys(items.len(), beyond.value.span));
        }
        let mut keys = Vec::new();
        for item in items {
            let value = self.expression(&item.value)?;
            let descending = item.direction == Some(Direction::Descending);
            keys.push(SortKey {
                value,
                descending,
                skip_undefined: false,
                primitives_only: items.len() > 1,
            });
        }
        let paths = keys
            .iter()
            .map(|key| self.sort_path(&key.value))
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

    /// The document path an item sorts by; `None` for a path below a subquery's result.
    ///
    /// # Errors
    /// 2206 if it is no path at all.
    fn sort_path(&self, scalar: &Scalar) -> Result<Option<Path>> {
        match scalar {
            Scalar::Slot(_) | Scalar::Path { .. } => self.path_of(scalar),
            Scalar::Computed(_) => {
                let name = self.computed_name(scalar).ok_or_else(unsupported)?;
                Ok(Some([PathStep::name(name)].into()))
            }
            _ => Err(unsupported()),
        }
    }

    /// `VectorDistance(…)`, and `_FullTextScore(…)` of rewritten hybrid queries.
    fn computed_key(&mut self, item: &OrderItem) -> Result<Option<SortKey>> {
        let ExprKind::Call(call) = &item.value.kind else {
            return Ok(None);
        };
        let descending = if call.name.eq_ignore_ascii_case("VectorDistance") {
            if item.direction.is_some() {
                return Err(vector_direction(item.value.span));
            }
            !self.is_euclidean(item)?
        } else if call.name.eq_ignore_ascii_case("_FullTextScore") {
            item.direction == Some(Direction::Descending)
        } else {
            return Ok(None);
        };
        let value = self.expression(&item.value)?;
        if let Scalar::Call(function, args) = &value
            && function.name == "_FullTextScore"
            && let Some(text) = args.first()
        {
            self.check_full_text_index(text)?;
        }
        // An item without the vector is not in the vector index; every text has a score.
        let skip_undefined = call.name.eq_ignore_ascii_case("VectorDistance");
        Ok(Some(SortKey {
            value,
            descending,
            skip_undefined,
            primitives_only: false,
        }))
    }

    /// Whether a smaller `VectorDistance` is the better one.
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

/// `id` and `_ts` are indexed whatever the policy says.
fn coverage(indexing: &Indexing, path: &[PathStep]) -> Coverage {
    let always = [PathStep::name("id")] == path || [PathStep::name("_ts")] == path;
    if always && !indexing.none {
        Coverage::Explicit
    } else {
        indexing.coverage(path)
    }
}

/// Whether an index has exactly these paths, in these directions or in all the opposite ones.
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
