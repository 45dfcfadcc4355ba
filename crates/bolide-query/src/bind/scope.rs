//! Names in scope (cosmos-sql §4).

use super::{Binder, Path};
use crate::error::{QueryError, Span};
use crate::text::ast::Expr;

/// The names that one FROM introduces. While its selection is bound under GROUP BY or aggregates, also the keys and aggregates that replace them.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub names: Vec<(String, Binding)>,
    /// The slot that `*` refers to.
    pub star: Option<usize>,
    /// If set, the selection may use only these keys and aggregates.
    pub grouped: Option<Vec<(Expr, usize)>>,
}

/// The slot and path that a name refers to.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub slot: usize,
    /// The path below the item, if the value is at one.
    pub path: Option<Path>,
}

/// The binding of a name, and the number of scopes outwards.
pub(super) struct Found {
    pub binding: Binding,
    pub scope: usize,
}

impl Binder<'_> {
    /// Finds a name, in inner scopes first.
    pub(super) fn find(&self, name: &str) -> Option<Found> {
        self.scopes.iter().enumerate().rev().find_map(|(scope, names)| {
            let (_, binding) = names.names.iter().find(|(own, _)| own == name)?;
            Some(Found {
                binding: binding.clone(),
                scope,
            })
        })
    }

    /// Adds a name to the innermost scope.
    pub(super) fn introduce(&mut self, name: &str, binding: Binding, span: Span) -> Result<(), QueryError> {
        let scope = self.scopes.last_mut().expect("a scope is open while its FROM is bound");
        if scope.names.iter().any(|(own, _)| own == name) {
            return Err(QueryError::uncoded(
                format!("The input alias '{name}' is specified more than once."),
                span,
            ));
        }
        scope.names.push((name.to_owned(), binding));
        Ok(())
    }
}

pub(super) fn unresolved(name: &str, span: Span) -> QueryError {
    QueryError::at("SC2001", format!("Identifier '{name}' could not be resolved."), span)
}
