//! Aggregates and group keys in a selection (cosmos-sql §12, §17).

use super::Binder;
use crate::aggregate::AggregateKind;
use crate::error::{QueryError, Result, Span};
use crate::functions::arity_message;
use crate::program::{Aggregate, Scalar};
use crate::text::ast::{Call, Expr, ExprKind};
use crate::text::printer::expression_text;

/// The expression with member access in one form: `c["a"]` and `c.a` are the same key.
pub(super) fn canonical(expr: &Expr) -> Expr {
    let mut out = expr.clone();
    unify_accessors(&mut out);
    out
}

fn unify_accessors(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Member { base, bracket, .. } => {
            *bracket = true;
            unify_accessors(base);
        }
        ExprKind::Index { base, .. } | ExprKind::Unary(_, base) => unify_accessors(base),
        ExprKind::Binary(_, left, right) => {
            unify_accessors(left);
            unify_accessors(right);
        }
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Coalesce(list) | ExprKind::Array(list) => {
            list.iter_mut().for_each(unify_accessors);
        }
        ExprKind::Conditional(a, b, c)
        | ExprKind::Between {
            value: a,
            low: b,
            high: c,
            ..
        } => {
            [a, b, c].into_iter().for_each(|part| unify_accessors(part));
        }
        ExprKind::In { value, list, .. } => {
            unify_accessors(value);
            list.iter_mut().for_each(unify_accessors);
        }
        ExprKind::Like { value, pattern, .. } => {
            unify_accessors(value);
            unify_accessors(pattern);
        }
        ExprKind::Object(members) => members.iter_mut().for_each(|(_, value)| unify_accessors(value)),
        ExprKind::Call(call) => call.args.iter_mut().for_each(unify_accessors),
        ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Name(_) | ExprKind::Subquery(..) => {}
    }
}

/// The aggregate that a call refers to, if any.
pub fn aggregate_of(call: &Call) -> Option<AggregateKind> {
    if call.udf {
        None
    } else {
        AggregateKind::parse(&call.name)
    }
}

/// Whether the query itself contains an aggregate; those of subqueries do not count.
pub fn contains_aggregate(expr: &Expr) -> bool {
    if matches!(&expr.kind, ExprKind::Call(call) if aggregate_of(call).is_some()) {
        return true;
    }
    let mut found = false;
    expr.kind
        .for_each_operand(&mut |operand| found |= contains_aggregate(operand));
    found
}

fn contains_subquery(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Subquery(..));
    expr.kind
        .for_each_operand(&mut |operand| found |= contains_subquery(operand));
    found
}

fn uses_name(expr: &Expr, name: &str) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Name(own) if own == name);
    expr.kind
        .for_each_operand(&mut |operand| found |= uses_name(operand, name));
    found
}

impl Binder<'_> {
    /// The slot of the group key that an expression equals, if any.
    pub(super) fn group_key(&self, expr: &Expr) -> Option<usize> {
        let grouped = |scope: &super::scope::Scope| scope.grouped.as_ref().is_some_and(|keys| !keys.is_empty());
        if !self.scopes.iter().any(grouped) {
            return None;
        }
        let keys = self
            .scopes
            .iter()
            .filter_map(|scope| scope.grouped.as_ref())
            .map(Vec::len);
        // Counts the size of the whole copied expression.
        let copied = expr.span.end.saturating_sub(expr.span.start);
        if !self.session.fuel.spend((20 * copied + 40 * keys.sum::<usize>()) as u64) {
            return None;
        }
        let wanted = canonical(expr);
        self.scopes.iter().enumerate().rev().find_map(|(at, scope)| {
            let (_, slot) = scope.grouped.as_ref()?.iter().find(|(key, _)| *key == wanted)?;
            let hidden = |inner: &super::scope::Scope| inner.names.iter().any(|(name, _)| uses_name(expr, name));
            (!self.scopes[at + 1..].iter().any(hidden)).then_some(*slot)
        })
    }

    /// Binds an aggregate call to the slot of its result.
    pub(super) fn aggregate(&mut self, kind: AggregateKind, call: &Call, span: Span) -> Result<Scalar> {
        let [argument] = call.args.as_slice() else {
            return Err(QueryError::at("SC2050", arity_message(kind.name(), 1, Some(1)), span));
        };
        // EF Core writes these inside subqueries, and the service accepts them.
        let is_outermost = self.scopes.len() == 1;
        if contains_aggregate(argument) || (is_outermost && contains_subquery(argument)) {
            let message =
                "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
            return Err(QueryError::at("SC2101", message, span));
        }
        let Some(mut aggregates) = self.aggregates.take() else {
            let message = format!(
                "The aggregate function {} is only allowed in the SELECT clause.",
                kind.name()
            );
            return Err(QueryError::uncoded(message, span));
        };
        // Inside the argument of an aggregate, rows are visible again.
        let grouped = self.scopes.last_mut().and_then(|scope| scope.grouped.take());
        let argument = self.expression(argument);
        if let Some(scope) = self.scopes.last_mut() {
            scope.grouped = grouped;
        }
        let slot = self.new_slot(None);
        aggregates.push(Aggregate {
            kind,
            argument: argument?,
            slot,
        });
        self.aggregates = Some(aggregates);
        Ok(Scalar::Slot(slot))
    }

    /// Refuses a reference to a row where only keys and aggregates are allowed.
    pub(super) fn check_grouped(&self, scope: usize, expr: &Expr) -> Result<()> {
        if self.scopes[scope].grouped.is_none() {
            return Ok(());
        }
        let message = format!(
            "Property reference '{}' is invalid in the select list because it is not contained in either an aggregate function or \
             the GROUP BY clause.",
            expression_text(expr)
        );
        Err(QueryError::at("SC2102", message, expr.span))
    }
}
