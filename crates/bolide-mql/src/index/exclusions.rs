//! Options that an index cannot have together, and the ranges of numeric ones.

use bson::raw::RawDocument;

use super::definition::IndexDefinition;
use super::pattern::{Kind, cannot};
use super::specification::collation_text;
use super::time_to_live::{PARTIAL_CORE, TS, is_core};
use crate::error::{Code, Error, Result};
use crate::value;

/// The bits of a 2d index.
const BITS: std::ops::RangeInclusive<i64> = 1..=32;
const BAD_BITS: i32 = 16803;

/// Options that an index cannot have together.
pub fn check(definition: &IndexDefinition) -> Result<()> {
    let kind = definition.kind();
    if let Some(collation) = &definition.collation
        && matches!(kind, Kind::Text | Kind::Plane)
    {
        return Err(cannot(format!(
            "Index type '{}' does not support collation: {}",
            kind.name(),
            collation_text(Some(collation))
        )));
    }
    if kind == Kind::Wildcard {
        for (option, is_set) in [("sparse", definition.sparse), ("unique", definition.unique)] {
            if is_set {
                return Err(cannot(format!(
                    "Index type 'wildcard' does not support the '{option}' option"
                )));
            }
        }
    }
    if let Some(partial) = &definition.partial {
        if definition.sparse {
            return Err(cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
        }
        if definition.expire_after_seconds.is_some() && is_core(&definition.key) {
            return Err(cannot(PARTIAL_CORE));
        }
        partial.check()?;
    }
    if definition.unique && definition.prepare_unique {
        return Err(cannot(
            "cannot create an index with the 'unique' option and the 'prepareUnique' option",
        ));
    }
    if kind == Kind::Vector && definition.expire_after_seconds.is_some() {
        return Err(cannot(
            "Index type 'cosmosSearch' does not support the 'expireAfterSeconds' option",
        ));
    }
    check_unique(definition)
}

fn check_unique(definition: &IndexDefinition) -> Result<()> {
    if !definition.unique && !definition.prepare_unique {
        return Ok(());
    }
    match definition.kind() {
        Kind::Hashed => Err(cannot(
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        )),
        Kind::Wildcard => Err(cannot(
            "Index type 'wildcard' does not support the 'prepareUnique' option",
        )),
        kind @ (Kind::Text | Kind::Sphere | Kind::Plane | Kind::Vector) => Err(Error::new(
            Code::NOT_IMPLEMENTED,
            format!("Index type '{}' does not support the 'unique' option", kind.name()),
        )),
        // No document has the field, so all documents would have one key.
        Kind::Ordered if definition.key.fields().iter().any(|field| &*field.name == TS) => {
            Err(cannot("an index on '_ts' cannot be unique"))
        }
        Kind::Ordered => Ok(()),
    }
}

/// Checks the numeric options of geospatial indexes.
pub fn check_numbers(numbers: &RawDocument, kind: Kind) -> Result<()> {
    let whole = |name: &str| {
        let value = numbers.get(name).ok().flatten();
        value.map(|value| value::number::whole(value).unwrap_or(i64::MIN))
    };
    if kind == Kind::Plane && whole("bits").is_some_and(|bits| !BITS.contains(&bits)) {
        return Err(Error::new(BAD_BITS, "bits in geo index must be between 1 and 32"));
    }
    let limits = [
        ("2dsphereIndexVersion", Kind::Sphere, 1..=3),
        ("textIndexVersion", Kind::Text, 1..=3),
    ];
    for (name, of, versions) in limits {
        if let Some(version) = whole(name).filter(|version| kind == of && !versions.contains(version)) {
            return Err(cannot(format!("unsupported value of {name}: {version}")));
        }
    }
    let levels = (whole("coarsestIndexedLevel"), whole("finestIndexedLevel"));
    match levels {
        (Some(coarsest), _) if coarsest < 0 => Err(Error::new(16747, "coarsestIndexedLevel must be >= 0")),
        (_, Some(finest)) if finest > 30 => Err(Error::new(16748, "finestIndexedLevel must be <= 30")),
        (Some(coarsest), Some(finest)) if finest < coarsest => {
            Err(Error::new(16749, "finestIndexedLevel must be >= coarsestIndexedLevel"))
        }
        _ => Ok(()),
    }
}
