//! The order of results, and of the documents that a write of one document chooses from.

use bolide_core::{ScanDirection, StoredDocument};
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
    /// None in particular: that in which documents are read.
    Natural,
    /// That of a scan of the whole collection, in which documents were inserted, or backwards: `{$natural: 1}`, `{$natural: -1}`.
    Scan(ScanDirection),
    /// By the values of fields.
    Keys(Sort),
    /// By the distance of the filter's `$near`.
    Distance,
}

impl Order {
    /// Reads the order that a command asks for: its sort, or that of its filter or hint.
    ///
    /// # Errors
    /// Of the sort; `BadValue` for a natural order that its hint or filter does not allow; 40218 for a sort by the score of a text search, if the filter
    /// has none.
    pub fn parse(sort: Option<&RawDocument>, hint: Option<RawBsonRef<'_>>, filter: &Filter) -> Result<Order> {
        let hinted = hinted_direction(hint)?;
        if hinted.is_some() {
            check_natural(filter, "hint")?;
        }
        let Some(sort) = sort.filter(|sort| !sort.is_empty()) else {
            return Ok(match hinted {
                _ if filter.has_near() => Order::Distance,
                Some(direction) => Order::Scan(direction),
                None => Order::Natural,
            });
        };
        if let Some(is_descending) = Sort::natural(sort)? {
            let direction = match is_descending {
                true => ScanDirection::Backward,
                false => ScanDirection::Forward,
            };
            check_natural(filter, "sort order")?;
            if is_given(hint) && hinted != Some(direction) {
                let text = "error processing query: planner returned error: a sort by $natural goes with no other hint";
                return Err(Error::bad_value(text));
            }
            return Ok(Order::Scan(direction));
        }
        let sort = Sort::parse(sort)?;
        if !filter.has_text() && sort.keys().iter().any(|key| key.source == SortSource::TextScore) {
            let text = "query requires text score metadata, but it is not available";
            return Err(Error::new(40218, text));
        }
        Ok(Order::Keys(sort))
    }

    /// The direction in which the whole collection must be read; `None` if documents may be read in any way.
    pub fn scan_direction(&self) -> Option<ScanDirection> {
        match self {
            Order::Scan(direction) => Some(*direction),
            Order::Natural | Order::Keys(_) | Order::Distance => None,
        }
    }

    /// Whether it is the order in which documents are read, so that nothing is to be sorted.
    pub fn is_natural(&self) -> bool {
        matches!(self, Order::Natural | Order::Scan(_))
    }

    /// Returns bytes by whose order documents are sorted.
    ///
    /// # Errors
    /// Of sort keys, such as parallel arrays.
    pub fn key(&self, document: &StoredDocument, filter: &Filter, context: &Context) -> Result<Vec<u8>> {
        let number = document.number();
        Ok(match self {
            Order::Natural | Order::Scan(ScanDirection::Forward) => number.to_be_bytes().to_vec(),
            Order::Scan(ScanDirection::Backward) => (!number).to_be_bytes().to_vec(),
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

/// Checks that a filter goes with a natural order: it must not order documents itself.
fn check_natural(filter: &Filter, place: &str) -> Result<()> {
    let ordering = match (filter.has_near(), filter.has_text()) {
        (true, _) => "geoNear",
        (false, true) => "text",
        (false, false) => return Ok(()),
    };
    let text = format!("{ordering} expression not allowed with $natural {place}");
    Err(Error::bad_value(text))
}

/// Returns the direction of the hint `{$natural: ±1}`; `None` for any other hint.
///
/// # Errors
/// `BadValue` for another number.
pub fn hinted_direction(hint: Option<RawBsonRef<'_>>) -> Result<Option<ScanDirection>> {
    let Some(RawBsonRef::Document(hint)) = hint else {
        return Ok(None);
    };
    match hint.get("$natural")?.map(whole) {
        None => Ok(None),
        Some(Some(1)) => Ok(Some(ScanDirection::Forward)),
        Some(Some(-1)) => Ok(Some(ScanDirection::Backward)),
        Some(_) => {
            let text = "$natural hint cannot be set to a value other than -1 or 1.";
            Err(Error::bad_value(text))
        }
    }
}

/// Whether a hint says anything.
fn is_given(hint: Option<RawBsonRef<'_>>) -> bool {
    match hint {
        Some(RawBsonRef::Document(key)) => !key.is_empty(),
        hint => hint.is_some(),
    }
}
