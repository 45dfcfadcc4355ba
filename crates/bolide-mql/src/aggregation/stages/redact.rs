//! `$redact`

use std::sync::Arc;

use bson::raw::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Each, Run, Stage};
use crate::error::{Error, Result};
use crate::expression::{Expression, Scope};
use crate::value::text;

#[derive(Debug)]
struct Redact {
    expression: Expression,
}

/// The variables that the expression may give, and their values.
const DECISIONS: [(&str, &str); 3] = [("DESCEND", "descend"), ("PRUNE", "prune"), ("KEEP", "keep")];

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let mut scope = parser.scope.clone();
    for (name, _) in DECISIONS {
        scope.define(name);
    }
    let expression = Expression::parse(spec, &mut scope)?;
    Ok(Parsed::stage(Redact { expression }))
}

impl Stage for Redact {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Each::source(input, move |document| {
            let redacted = {
                let scope = document.scope(&run.context);
                let [descend, prune, keep] = DECISIONS.map(|(name, value)| (name, Some(RawBsonRef::String(value))));
                let scope = scope.with_variable(descend.0, descend.1);
                let scope = scope.with_variable(prune.0, prune.1);
                let scope = scope.with_variable(keep.0, keep.1);
                self.document(&document.bytes, &scope)?
            };
            Ok(redacted.map(|bytes| document.with_bytes(bytes)))
        }))
    }
}

impl Redact {
    /// Decides about a document, the root or one below it. The recursion is as deep as the document.
    fn document(&self, document: &RawDocument, scope: &Scope<'_>) -> Result<Option<RawDocumentBuf>> {
        let scope = scope.with_variable("CURRENT", Some(RawBsonRef::Document(document)));
        let decision = self.expression.evaluate(&scope)?;
        match decision.as_ref().and_then(|decision| decision.as_str()) {
            Some("keep") => Ok(Some(document.to_owned())),
            Some("prune") => Ok(None),
            Some("descend") => self.descend(document, &scope).map(Some),
            _ => {
                let shown = decision.map_or("MISSING".to_owned(), |value| text::render(value.as_raw_bson_ref()));
                let text = format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but \
                     returned {shown}"
                );
                Err(Error::new(17053, text))
            }
        }
    }

    fn descend(&self, document: &RawDocument, scope: &Scope<'_>) -> Result<RawDocumentBuf> {
        let mut output = RawDocumentBuf::new();
        for field in document {
            let (name, value) = field?;
            match value {
                RawBsonRef::Document(inner) => {
                    if let Some(inner) = self.document(inner, scope)? {
                        output.append(name, RawBson::Document(inner));
                    }
                }
                RawBsonRef::Array(array) => output.append(name, RawBson::Array(self.array(array, scope)?)),
                other => output.append(name, other),
            }
        }
        Ok(output)
    }

    fn array(&self, array: &RawArray, scope: &Scope<'_>) -> Result<RawArrayBuf> {
        let mut output = RawArrayBuf::new();
        for element in array {
            match element? {
                RawBsonRef::Document(inner) => {
                    if let Some(inner) = self.document(inner, scope)? {
                        output.push(RawBson::Document(inner));
                    }
                }
                RawBsonRef::Array(inner) => output.push(RawBson::Array(self.array(inner, scope)?)),
                other => output.push(other),
            }
        }
        Ok(output)
    }
}
