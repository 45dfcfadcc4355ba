//! The order of results, and of the documents that a write of one document chooses from.

use bolide_core::StoredDocument;
use bolide_mql::filter::Filter;
use bolide_mql::sort::{Sort, SortSource};
use bolide_mql::value::key;
use bolide_mql::value::number::whole;
use bolide_mql::{Context, Error, Result};
use bson::RawDocument;
use bson::raw::RawBsonRef;

/// An order of documents.
#[derive(Debug, Clone)]
pub enum Order {
    /// The order of insertion.
    Natural,
    /// `{$natural: -1}`: the last one inserted is the first.
    NaturalBackwards,
    /// By the values of fields.
    Keys(Sort),
    /// By the distance of the filter's `$near`.
    Distance,
}

impl Order {
    /// Reads the order that a command asks for: its sort, or that of its filter or hint.
    ///
    /// # Errors
    /// Of the sort; 40218 for a sort by the score of a text search, if the filter has none.
    pub fn parse(sort: Option<&RawDocument>, hint: Option<RawBsonRef<'_>>, filter: &Filter) -> Result<Order> {
        let Some(sort) = sort.filter(|sort| !sort.is_empty()) else {
            return Ok(match hint_direction(hint)? {
                _ if filter.has_near() => Order::Distance,
                Some(true) => Order::NaturalBackwards,
                _ => Order::Natural,
            });
        };
        if let Some(is_descending) = Sort::natural(sort)? {
            return Ok(match is_descending {
                true => Order::NaturalBackwards,
                false => Order::Natural,
            });
        }
        let sort = Sort::parse(sort)?;
        if !filter.has_text() && sort.keys().iter().any(|key| key.source == SortSource::TextScore) {
            let text = "query requires text score metadata, but it is not available";
            return Err(Error::new(40218, text));
        }
        Ok(Order::Keys(sort))
    }

    /// Whether it is the order in which documents are read, so that nothing is to be sorted.
    pub fn is_natural(&self) -> bool {
        matches!(self, Order::Natural)
    }

    /// Returns bytes by whose order documents are sorted.
    ///
    /// # Errors
    /// Of sort keys, such as parallel arrays.
    pub fn key(&self, document: &StoredDocument, filter: &Filter, context: &Context) -> Result<Vec<u8>> {
        let number = document.number();
        Ok(match self {
            Order::Natural => number.to_be_bytes().to_vec(),
            Order::NaturalBackwards => (!number).to_be_bytes().to_vec(),
            Order::Keys(sort) => {
                let metadata = filter.metadata(document.document(), context);
                sort.key_with(document.document(), metadata.as_ref(), context.collation.as_deref())?
            }
            Order::Distance => {
                let distance = filter.near_distance(document.document()).unwrap_or(f64::INFINITY);
                key::of(RawBsonRef::Double(distance), None)
            }
        })
    }
}

/// Returns the direction of the hint `{$natural: ±1}`, true if it is backwards; `None` for any other hint.
fn hint_direction(hint: Option<RawBsonRef<'_>>) -> Result<Option<bool>> {
    let Some(RawBsonRef::Document(hint)) = hint else {
        return Ok(None);
    };
    match hint.get("$natural")?.map(whole) {
        None => Ok(None),
        Some(Some(1)) => Ok(Some(false)),
        Some(Some(-1)) => Ok(Some(true)),
        Some(_) => {
            let text = "$natural hint cannot be set to a value other than -1 or 1.";
            Err(Error::bad_value(text))
        }
    }
}
