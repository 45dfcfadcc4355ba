//! Rules about the structure of a query that do not depend on names: clauses in subqueries, counts of calls, lengths.

use crate::error::{QueryError, Result, Span};
use crate::limits::{JOINS, UDF_CALLS};
use crate::text::ast::{Expr, ExprKind, FromItem, Order, Query, Selection, Source};

/// A clause that is not allowed in a subquery, in the order in which the service reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forbidden {
    Rank,
    OrderBy,
    Top,
    OffsetLimit,
}

/// Checks rules that do not depend on names.
///
/// # Errors
/// The violation that the service reports first.
pub(super) fn check_structure(query: &Query) -> Result<()> {
    check_rank(query)?;
    check_star(query)?;
    let mut check = StructureCheck::default();
    check.query(query, true);
    if let Some((clause, span)) = check.forbidden {
        return Err(forbidden(clause, span));
    }
    if check.joins > JOINS {
        let message = format!("The SQL query exceeded the maximum number of joins. The allowed limit is {JOINS}.");
        return Err(QueryError::at("SC3006", message, query.span));
    }
    if check.udf_calls > UDF_CALLS {
        let message = format!(
            "The SQL query exceeded the maximum number of user-defined function calls. The allowed limit is {UDF_CALLS}."
        );
        return Err(QueryError::at("SC3005", message, query.span));
    }
    Ok(())
}

fn forbidden(clause: Forbidden, span: Span) -> QueryError {
    match clause {
        Forbidden::Rank => QueryError::at(
            "SC2228",
            "The ORDER BY RANK clause is not supported in subqueries.",
            span,
        ),
        Forbidden::OrderBy => QueryError::at("SC2202", "'ORDER BY' is not supported in subqueries.", span),
        Forbidden::Top => QueryError::at("SC2203", "'TOP' is not supported in subqueries.", span),
        Forbidden::OffsetLimit => {
            QueryError::at("SC2204", "'OFFSET LIMIT' clause is not supported in subqueries.", span)
        }
    }
}

/// Clauses that cannot be combined with ORDER BY RANK (cosmos-sql §14).
fn check_rank(query: &Query) -> Result<()> {
    if !matches!(query.order, Some(Order::Rank(_))) {
        return Ok(());
    }
    if let Some(join) = query.from.get(1) {
        return Err(QueryError::at(
            "SC2224",
            "The JOIN operator is not allowed with the ORDER BY RANK clause.",
            join.span,
        ));
    }
    match query.from.first() {
        Some(FromItem {
            iterate: true, span, ..
        }) => Err(QueryError::at(
            "SC2223",
            "The IN keyword in the FROM clause is not allowed with the ORDER BY RANK clause.",
            *span,
        )),
        Some(FromItem {
            source: Source::Subquery(_),
            span,
            ..
        }) => Err(QueryError::at(
            "SC2225",
            "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.",
            *span,
        )),
        _ => Ok(()),
    }
}

/// Checks where `SELECT *` is allowed (cosmos-sql §9).
pub(super) fn check_star(query: &Query) -> Result<()> {
    let Selection::Star(span) = query.selection else {
        return Ok(());
    };
    if query.from.is_empty() {
        return Err(QueryError::uncoded(
            "'SELECT *' is not valid if FROM clause is omitted.",
            span,
        ));
    }
    if query.from.len() > 1 {
        return Err(QueryError::uncoded(
            "'SELECT *' is only valid with a single input set.",
            span,
        ));
    }
    if !query.group_by.is_empty() {
        return Err(QueryError::at(
            "SC2041",
            "'SELECT *' is not allowed with GROUP BY.",
            span,
        ));
    }
    Ok(())
}

#[derive(Default)]
struct StructureCheck {
    forbidden: Option<(Forbidden, Span)>,
    joins: usize,
    udf_calls: usize,
}

impl StructureCheck {
    fn query(&mut self, query: &Query, outermost: bool) {
        if !outermost {
            self.clauses(query);
        }
        self.joins += query.from.len().saturating_sub(1);
        for item in &query.from {
            match &item.source {
                Source::Path { .. } => {}
                Source::Subquery(inner) => self.query(inner, false),
                Source::Expression(expr) => self.expression(expr),
            }
        }
        match &query.selection {
            Selection::Star(_) => {}
            Selection::Value(value) => self.expression(value),
            Selection::List(items) => items.iter().for_each(|item| self.expression(&item.value)),
        }
        query
            .filter
            .iter()
            .chain(&query.group_by)
            .for_each(|expr| self.expression(expr));
        if let Some(Order::By(items) | Order::Rank(items)) = &query.order {
            items.iter().for_each(|item| self.expression(&item.value));
        }
    }

    fn clauses(&mut self, query: &Query) {
        match query.order {
            Some(Order::Rank(_)) => self.found(Forbidden::Rank, query.span),
            Some(Order::By(_)) => self.found(Forbidden::OrderBy, query.span),
            None => {}
        }
        if let Some(top) = &query.top {
            self.found(Forbidden::Top, top.span);
        }
        if let Some(window) = &query.window {
            self.found(Forbidden::OffsetLimit, window.offset.span.to(window.limit.span));
        }
    }

    /// The first subquery with a violation counts; if it has several, the one that `clauses` lists first.
    fn found(&mut self, clause: Forbidden, span: Span) {
        self.forbidden.get_or_insert((clause, span));
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Call(call) if call.udf => self.udf_calls += 1,
            ExprKind::Subquery(_, query) => self.query(query, false),
            _ => {}
        }
        expr.kind.for_each_operand(&mut |operand| self.expression(operand));
    }
}
