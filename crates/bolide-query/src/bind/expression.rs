//! Binds expressions.

use std::sync::Arc;

use super::scope::unresolved;
use super::select::{element_step, path_scalar};
use super::{Binder, Path, STEP_BYTES};
use crate::error::{QueryError, Result};
use crate::like::Like;
use crate::memory::ALLOCATION_BYTES;
use crate::path::PathStep;
use crate::program::{ITEM_SLOT, InSet, LikePattern, Scalar, SubqueryForm};
use crate::text::ast::{Expr, ExprKind, Literal, Query, SubqueryKind, UnaryOp};
use crate::value::Value;

/// Lists of at least this length are looked up in a set instead of comparing one by one.
const MIN_SET_VALUES: usize = 5;

/// Units to bind a node.
const BINDING: u64 = 200;

/// Memory of a node of the program, in bytes.
const SCALAR_BYTES: usize = size_of::<Scalar>() + ALLOCATION_BYTES;

impl Binder<'_> {
    /// Binds an expression and folds constants.
    pub(super) fn expression(&mut self, expr: &Expr) -> Result<Scalar> {
        self.session.fuel.burn(BINDING)?;
        self.session.memory.take(SCALAR_BYTES)?;
        if let Some(slot) = self.group_key(expr) {
            return Ok(Scalar::Slot(slot));
        }
        let scalar = self.unfolded(expr)?;
        self.folded(scalar)
    }

    fn all(&mut self, list: &[Expr]) -> Result<Vec<Scalar>> {
        list.iter().map(|expr| self.expression(expr)).collect()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Scalar>> {
        self.expression(expr).map(Box::new)
    }

    fn unfolded(&mut self, expr: &Expr) -> Result<Scalar> {
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Scalar::Const(constant(literal)),
            ExprKind::Parameter(name) => Scalar::Const(self.parameters.get(name).cloned().unwrap_or(Value::Undefined)),
            ExprKind::Name(_) | ExprKind::Member { .. } | ExprKind::Index { .. } => self.access(expr)?,
            ExprKind::Unary(op, operand) => Scalar::Unary(*op, self.boxed(operand)?),
            ExprKind::Binary(op, left, right) => {
                Scalar::Binary(*op, Box::new((self.expression(left)?, self.expression(right)?)))
            }
            ExprKind::And(list) => Scalar::And(self.all(list)?),
            ExprKind::Or(list) => Scalar::Or(self.all(list)?),
            ExprKind::Coalesce(list) => Scalar::Coalesce(self.all(list)?),
            ExprKind::Conditional(a, b, c) => Scalar::Conditional(Box::new((
                self.expression(a)?,
                self.expression(b)?,
                self.expression(c)?,
            ))),
            ExprKind::Between {
                value,
                low,
                high,
                negated,
            } => {
                let parts = (self.expression(value)?, self.expression(low)?, self.expression(high)?);
                negate(Scalar::Between(Box::new(parts)), *negated)
            }
            ExprKind::In { value, list, negated } => negate(self.in_list(value, list)?, *negated),
            ExprKind::Like {
                value,
                pattern,
                escape,
                negated,
            } => negate(self.like(value, pattern, escape.as_deref())?, *negated),
            ExprKind::Array(items) => Scalar::Array(self.all(items)?),
            ExprKind::Object(members) => Scalar::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((Arc::from(name.as_str()), self.expression(value)?)))
                    .collect::<Result<_>>()?,
            ),
            ExprKind::Call(call) => self.call(call, expr.span)?,
            ExprKind::Subquery(kind, query) => self.subquery_expression(*kind, query)?,
        })
    }

    fn in_list(&mut self, value: &Expr, list: &[Expr]) -> Result<Scalar> {
        let value = self.boxed(value)?;
        let list = self.all(list)?;
        let constants: Option<Vec<_>> = list.iter().map(|item| item.as_const().cloned()).collect();
        Ok(match constants {
            Some(constants) if constants.len() >= MIN_SET_VALUES => {
                Scalar::InSet(value, Arc::new(InSet::new(constants, self.session)?))
            }
            _ => Scalar::In(value, list),
        })
    }

    fn like(&mut self, value: &Expr, pattern: &Expr, escape: Option<&str>) -> Result<Scalar> {
        let value = self.boxed(value)?;
        let escape = escape.and_then(|text| text.chars().next());
        let pattern = self.expression(pattern)?;
        let constant = pattern.as_const().and_then(Value::as_str);
        let compiled = constant
            .map(|pattern| {
                self.session.fuel.burn(Like::units(pattern))?;
                self.session.memory.take(Like::bytes(pattern))?;
                Ok(Like::new(pattern, escape))
            })
            .transpose()?;
        Ok(Scalar::Like(
            value,
            Box::new(compiled.map_or(LikePattern::Dynamic(pattern, escape), LikePattern::Constant)),
        ))
    }

    fn subquery_expression(&mut self, kind: SubqueryKind, query: &Query) -> Result<Scalar> {
        let form = match kind {
            SubqueryKind::Scalar => SubqueryForm::Single,
            SubqueryKind::Exists => SubqueryForm::Exists,
            SubqueryKind::Array => SubqueryForm::Array,
            SubqueryKind::First => SubqueryForm::First,
            SubqueryKind::Last => SubqueryForm::Last,
            SubqueryKind::All => SubqueryForm::None,
        };
        let mut select = self.subquery(query)?;
        if form == SubqueryForm::None {
            // ALL(… WHERE f) is true if no row fails f; a row whose f is undefined does not fail it.
            let filter = select.filter.take().unwrap_or(Scalar::Const(Value::Bool(true)));
            select.filter = Some(self.folded(Scalar::Unary(UnaryOp::Not, Box::new(filter)))?);
        }
        Ok(Scalar::Subquery(form, Arc::new(select)))
    }

    /// Binds a name and the accessors after it.
    fn access(&mut self, expr: &Expr) -> Result<Scalar> {
        let mut steps = Vec::new();
        let mut base = expr;
        // The longest prefix that is a group key is replaced by that key.
        let key = loop {
            if let Some(slot) = self.group_key(base) {
                break Some(slot);
            }
            match &base.kind {
                ExprKind::Member { base: inner, name, .. } => {
                    self.session.memory.take(STEP_BYTES + name.len())?;
                    steps.push(PathStep::Name(name.clone()));
                    base = inner;
                }
                ExprKind::Index { base: inner, index } => {
                    steps.push(self.index_step(index)?);
                    base = inner;
                }
                _ => break None,
            }
        };
        steps.reverse();
        if let Some(slot) = key {
            return Ok(path_scalar(slot, steps));
        }
        let ExprKind::Name(name) = &base.kind else {
            let base = self.expression(base)?;
            let step = |base, step| self.folded(Scalar::Step(Box::new(base), step));
            return steps.into_iter().try_fold(base, step);
        };
        let found = self.find(name).ok_or_else(|| unresolved(name, base.span))?;
        self.check_grouped(found.scope, expr)?;
        if found.binding.path.as_ref().is_some_and(|path| path.is_empty())
            && let Some((PathStep::Name(first), rest)) = steps.split_first()
            && let Some((_, computed)) = self.computed.iter().find(|(name, _)| name == first)
        {
            let computed = Scalar::Computed(computed.clone());
            return Ok(rest
                .iter()
                .cloned()
                .fold(computed, |base, step| Scalar::Step(Box::new(base), step)));
        }
        Ok(path_scalar(found.binding.slot, steps))
    }

    /// The content of brackets: a number or a parameter, but no expression that must be computed.
    fn index_step(&self, index: &Expr) -> Result<PathStep> {
        match &index.kind {
            ExprKind::Literal(Literal::Number(number)) => Ok(element_step(*number)),
            ExprKind::Parameter(name) => Ok(match self.parameters.get(name) {
                Some(Value::String(name)) => {
                    self.session.memory.take(STEP_BYTES + name.as_str().len())?;
                    PathStep::name(name.as_str())
                }
                Some(Value::Number(number)) => element_step(*number),
                _ => PathStep::Nowhere,
            }),
            _ => {
                let message = "The specified query includes 'member indexer' which is currently not supported.";
                Err(QueryError::at("SC2990", message, index.span))
            }
        }
    }

    /// The path below the item that a bound expression reads; `None` if it reads something else.
    ///
    /// # Errors
    /// As [`crate::memory::Memory::take`].
    pub(super) fn path_of(&self, scalar: &Scalar) -> Result<Option<Path>> {
        match scalar {
            Scalar::Slot(slot) => Ok(self.slot_paths[*slot].clone()),
            Scalar::Path { slot, steps } => match &self.slot_paths[*slot] {
                Some(path) => self.joined(path, steps).map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The name of the computed property that an expression refers to.
    pub(super) fn computed_name(&self, scalar: &Scalar) -> Option<&str> {
        let Scalar::Computed(wanted) = scalar else { return None };
        self.computed
            .iter()
            .find(|(_, own)| Arc::ptr_eq(own, wanted))
            .map(|(name, _)| name.as_str())
    }
}

const _: () = assert!(ITEM_SLOT == 0, "a new binder reserves slot 0 for the item");

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Undefined => Value::Undefined,
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Number(number) => Value::Number(*number),
        Literal::String(text) => Value::string(text.as_str()),
    }
}

fn negate(scalar: Scalar, negated: bool) -> Scalar {
    if negated {
        Scalar::Unary(UnaryOp::Not, Box::new(scalar))
    } else {
        scalar
    }
}
