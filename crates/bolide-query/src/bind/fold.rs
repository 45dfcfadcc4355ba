//! Constant folding: what does not depend on a row is computed once.

use super::Binder;
use crate::error::{QueryError, Result};
use crate::eval::Row;
use crate::program::{LikePattern, Scalar};
use crate::value::Value;

/// Maximum bytes of constants that are computed at compile time. Owned values share nothing, so a query text could make many large ones from one parameter.
const FOLDED_BYTES: usize = 32 * 1024 * 1024;

impl Binder<'_> {
    /// Replaces a constant expression by its value; other expressions are returned as they are.
    ///
    /// # Errors
    /// As [`crate::memory::Memory::take`].
    pub(super) fn folded(&self, scalar: Scalar) -> Result<Scalar> {
        let scalar = match scalar {
            // One decisive operand decides, whatever the values of the others.
            Scalar::And(list) if list.iter().any(|operand| is_bool(operand, false)) => return Ok(boolean(false)),
            Scalar::Or(list) if list.iter().any(|operand| is_bool(operand, true)) => return Ok(boolean(true)),
            other => other,
        };
        Ok(match self.constant_value(&scalar)? {
            Some(value) => Scalar::Const(value),
            // It is already a constant, or cheaper to compute again than to keep.
            None => scalar,
        })
    }

    fn constant_value(&self, scalar: &Scalar) -> Result<Option<Value<'static>>> {
        if !is_constant(scalar) || scalar.as_const().is_some() {
            return Ok(None);
        }
        let mut row = Row::new(1, self.session);
        let value = match scalar.eval(&mut row) {
            Ok(value) => value,
            Err(QueryError::OutOfMemory) => return Err(QueryError::OutOfMemory),
            // The error is raised when the value is needed, if ever.
            Err(_) => return Ok(None),
        };
        let left = FOLDED_BYTES - self.folded_bytes.get();
        let bytes = value.written_out_bytes(left);
        if bytes > left || !self.session.fuel.spend(bytes as u64) {
            return Ok(None);
        }
        self.folded_bytes.set(self.folded_bytes.get() + bytes);
        self.session.memory.take(bytes)?;
        Ok(Some(value.into_owned()))
    }
}

/// Whether an expression over folded operands depends on no row, no time and no random number.
fn is_constant(scalar: &Scalar) -> bool {
    let known = |scalar: &Scalar| scalar.as_const().is_some();
    match scalar {
        Scalar::Const(_) => true,
        Scalar::Slot(_) | Scalar::Path { .. } | Scalar::Udf(..) | Scalar::Computed(_) | Scalar::Subquery(..) => false,
        Scalar::Step(base, _) | Scalar::Unary(_, base) | Scalar::Regex(base, _) | Scalar::InSet(base, _) => known(base),
        Scalar::Binary(_, sides) => known(&sides.0) && known(&sides.1),
        Scalar::And(list) | Scalar::Or(list) | Scalar::Coalesce(list) | Scalar::Array(list) => list.iter().all(known),
        Scalar::Conditional(parts) | Scalar::Between(parts) => known(&parts.0) && known(&parts.1) && known(&parts.2),
        Scalar::In(value, list) => known(value) && list.iter().all(known),
        Scalar::Like(value, pattern) => {
            known(value)
                && match &**pattern {
                    LikePattern::Constant(_) => true,
                    LikePattern::Dynamic(pattern, _) => known(pattern),
                }
        }
        Scalar::Object(members) => members.iter().all(|(_, value)| known(value)),
        Scalar::Call(function, args) => function.is_pure() && args.iter().all(known),
    }
}

fn is_bool(scalar: &Scalar, value: bool) -> bool {
    scalar.as_const().and_then(Value::as_bool) == Some(value)
}

fn boolean(value: bool) -> Scalar {
    Scalar::Const(Value::Bool(value))
}
