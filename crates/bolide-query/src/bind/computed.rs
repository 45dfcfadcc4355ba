//! Computed properties (cosmos-sql §19).

use std::sync::Arc;

use super::Binder;
use crate::error::{QueryError, Result};
use crate::parameters::Parameters;
use crate::program::{ITEM_SLOT, Projection, Scalar, Source};
use crate::schema::Schema;
use crate::session::Session;
use crate::text::{ast, parse};

/// Binds all computed properties of a container.
pub(super) fn bind_all(schema: &Schema, session: &Session) -> Result<Vec<(String, Arc<Scalar>)>> {
    schema
        .computed
        .iter()
        .map(|property| {
            Ok((
                property.name.clone(),
                Arc::new(bind_one(&property.query, schema, session)?),
            ))
        })
        .collect()
}

/// Binds one definition to an expression over the item in slot 0.
///
/// # Errors
/// If the definition is not a `SELECT VALUE … FROM c` over the root item, or contains what such a definition must not contain.
pub(super) fn bind_one(text: &str, schema: &Schema, session: &Session) -> Result<Scalar> {
    let query = parse(text, &session.memory)?;
    let plain = query.filter.is_none()
        && query.group_by.is_empty()
        && query.order.is_none()
        && query.window.is_none()
        && query.top.is_none()
        && !query.distinct;
    let over_item = matches!(query.from.as_slice(), [ast::FromItem { source: ast::Source::Path { steps, .. }, iterate: false, .. }]
        if steps.is_empty());
    if !plain || !over_item || !matches!(query.selection, ast::Selection::Value(_)) {
        return Err(refused("must have the form SELECT VALUE <expression> FROM <root>"));
    }
    let parameters = Parameters::default();
    let select = Binder::new(&parameters, schema, Vec::new(), session).root(&query)?;
    let [input] = select.inputs.as_slice() else {
        return Err(refused("must read the root item"));
    };
    if input.slot != ITEM_SLOT || !matches!(input.source, Source::Item) || select.grouping.is_some() {
        return Err(refused("cannot contain aggregates"));
    }
    let Projection::Value(scalar) = select.projection else {
        return Err(refused("must use SELECT VALUE"));
    };
    check(&scalar)?;
    Ok(scalar)
}

fn check(scalar: &Scalar) -> Result<()> {
    match scalar {
        Scalar::Subquery(..) => Err(refused("cannot contain subqueries")),
        Scalar::Udf(..) => Err(refused("cannot contain user-defined functions")),
        Scalar::Call(function, _) if !function.is_pure() => Err(refused("cannot contain nondeterministic functions")),
        Scalar::Call(function, _) if function.name.starts_with("ST_") => {
            Err(refused("cannot contain spatial functions"))
        }
        _ => {
            let mut out = Ok(());
            scalar.for_each_operand(&mut |operand| {
                if out.is_ok() {
                    out = check(operand);
                }
            });
            out
        }
    }
}

fn refused(why: &str) -> QueryError {
    QueryError::refused(format!("A computed property query {why}."))
}
