//! ORDER BY RANK (cosmos-sql §14).

use super::Binder;
use crate::error::{QueryError, Result, Span};
use crate::limits::RANK_SCORES;
use crate::program::{RankComponent, Ranking};
use crate::text::ast::{Call, Expr, ExprKind, OrderItem};
use crate::value::Value;

impl Binder<'_> {
    pub(super) fn ranking(&mut self, items: &[OrderItem]) -> Result<Ranking> {
        let [item] = items else {
            return Err(not_a_score(items[1].value.span));
        };
        if item.direction.is_some() {
            let message = "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.";
            return Err(QueryError::uncoded(message, item.value.span));
        }
        let (scores, weights) = self.scores(item)?;
        let components = scores
            .into_iter()
            .map(|score| self.component(score))
            .collect::<Result<Vec<_>>>()?;
        let weights = weights.unwrap_or_else(|| vec![1.0; components.len()]);
        if weights.len() != components.len() {
            return Err(bad_weights(item.value.span));
        }
        Ok(Ranking { components, weights })
    }

    /// The score functions of an RRF and its weights, or the only score.
    fn scores<'e>(&mut self, item: &'e OrderItem) -> Result<(Vec<&'e Expr>, Option<Vec<f64>>)> {
        let rrf = match &item.value.kind {
            ExprKind::Call(call) if !call.udf && call.name.eq_ignore_ascii_case("RRF") => call,
            _ => return Ok((vec![&item.value], None)),
        };
        let (scores, weights) = match rrf.args.split_last() {
            Some((last, scores)) if !is_score(last) && !scores.is_empty() => (scores, Some(self.weights(last)?)),
            _ => (rrf.args.as_slice(), None),
        };
        if scores.len() < 2 {
            return Err(not_a_score(item.value.span));
        }
        if let Some(beyond) = scores.get(RANK_SCORES) {
            return Err(too_many_scores(scores.len(), beyond.span));
        }
        Ok((scores.iter().collect(), weights))
    }

    fn weights(&mut self, expr: &Expr) -> Result<Vec<f64>> {
        if !matches!(expr.kind, ExprKind::Array(_) | ExprKind::Parameter(_)) {
            return Err(not_a_score(expr.span));
        }
        let weights = self.expression(expr)?;
        let numbers = weights
            .as_const()
            .and_then(Value::elements)
            .and_then(|items| items.iter().map(Value::as_f64).collect());
        numbers.ok_or_else(|| bad_weights(expr.span))
    }

    fn component(&mut self, expr: &Expr) -> Result<RankComponent> {
        let ExprKind::Call(call) = &expr.kind else {
            return Err(not_a_score(expr.span));
        };
        if call.name.eq_ignore_ascii_case("FullTextScore") {
            return self.full_text_component(call, expr.span);
        }
        if call.name.eq_ignore_ascii_case("RRF") {
            // EF Core's tests compare this message.
            let message = "'RRF' is not a recognized built-in function name.";
            return Err(QueryError::at("SC2005", message, call.name_span));
        }
        if !call.name.eq_ignore_ascii_case("VectorDistance") {
            return Err(not_a_score(expr.span));
        }
        let item = OrderItem {
            value: expr.clone(),
            direction: None,
        };
        let ascending = self.is_euclidean(&item)?;
        Ok(RankComponent::Vector {
            score: self.expression(expr)?,
            ascending,
        })
    }

    fn full_text_component(&mut self, call: &Call, span: Span) -> Result<RankComponent> {
        let [text, terms @ ..] = call.args.as_slice() else {
            return Err(QueryError::at(
                "SC2050",
                crate::functions::arity_message("FullTextScore", 2, None),
                span,
            ));
        };
        if terms.is_empty() {
            return Err(QueryError::at(
                "SC2050",
                crate::functions::arity_message("FullTextScore", 2, None),
                span,
            ));
        }
        if let Some(term) = terms.iter().find(|term| !is_literal(term)) {
            return Err(not_a_term(term.span));
        }
        let text = self.expression(text)?;
        let language = self.language_of(&text)?;
        let terms = terms.iter().map(|term| self.expression(term)).collect::<Result<_>>()?;
        Ok(RankComponent::FullText { text, terms, language })
    }
}

fn is_score(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Call(_))
}

/// Whether a term does not depend on an item: literals and parameters, and arrays and objects of them.
fn is_literal(term: &Expr) -> bool {
    match &term.kind {
        ExprKind::Literal(_) | ExprKind::Parameter(_) => true,
        ExprKind::Array(items) => items.iter().all(is_literal),
        ExprKind::Object(members) => members.iter().all(|(_, value)| is_literal(value)),
        _ => false,
    }
}

fn not_a_term(span: Span) -> QueryError {
    let message = "The second through last arguments of the 'FullTextScore' function must be literals of type string or object \
         specifying the fuzzy search argument.";
    QueryError::at("SC2241", message, span)
}

fn not_a_score(span: Span) -> QueryError {
    let message = "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.";
    QueryError::at("SC2221", message, span)
}

fn too_many_scores(count: usize, span: Span) -> QueryError {
    let message = format!("RRF fuses at most {RANK_SCORES} scores; this one has {count}.");
    QueryError::uncoded(message, span)
}

fn bad_weights(span: Span) -> QueryError {
    let message = "One of the input values is invalid. RRF takes one numeric weight per component.";
    QueryError::at("SC2229", message, span)
}
