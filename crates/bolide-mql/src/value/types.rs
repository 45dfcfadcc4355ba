//! Names and codes of the BSON types.

use bson::RawBsonRef;
use bson::spec::ElementType;

use super::number::{self, Number};
use crate::error::{Code, Error, Result};

/// Type, code, alias.
const TYPES: [(ElementType, i32, &str); 21] = [
    (ElementType::Double, 1, "double"),
    (ElementType::String, 2, "string"),
    (ElementType::EmbeddedDocument, 3, "object"),
    (ElementType::Array, 4, "array"),
    (ElementType::Binary, 5, "binData"),
    (ElementType::Undefined, 6, "undefined"),
    (ElementType::ObjectId, 7, "objectId"),
    (ElementType::Boolean, 8, "bool"),
    (ElementType::DateTime, 9, "date"),
    (ElementType::Null, 10, "null"),
    (ElementType::RegularExpression, 11, "regex"),
    (ElementType::DbPointer, 12, "dbPointer"),
    (ElementType::JavaScriptCode, 13, "javascript"),
    (ElementType::Symbol, 14, "symbol"),
    (ElementType::JavaScriptCodeWithScope, 15, "javascriptWithScope"),
    (ElementType::Int32, 16, "int"),
    (ElementType::Timestamp, 17, "timestamp"),
    (ElementType::Int64, 18, "long"),
    (ElementType::Decimal128, 19, "decimal"),
    (ElementType::MinKey, -1, "minKey"),
    (ElementType::MaxKey, 127, "maxKey"),
];

/// Returns the alias of the value's type: `"int"`, `"objectId"`, `"binData"` …
pub fn name(value: RawBsonRef<'_>) -> &'static str {
    TYPES[row(value.element_type())].2
}

/// Returns the number of the value's type: −1 for MinKey, 127 for MaxKey.
pub fn code(value: RawBsonRef<'_>) -> i32 {
    TYPES[row(value.element_type())].1
}

/// Returns the alias of a type as the table has it, if there is such a type.
pub fn alias(alias: &str) -> Option<&'static str> {
    TYPES.iter().find(|row| row.2 == alias).map(|row| row.2)
}

/// Returns the alias of the type with a number.
pub fn name_of_code(code: i32) -> Option<&'static str> {
    TYPES.iter().find(|row| row.1 == code).map(|row| row.2)
}

fn row(element_type: ElementType) -> usize {
    let row = TYPES.iter().position(|row| row.0 == element_type);
    row.expect("every type has a row")
}

/// A set of types, as `$type` and `bsonType` name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeSet {
    /// Bits by the rows of the table.
    rows: u32,
}

impl TypeSet {
    /// Returns the set that a code, an alias, `"number"`, or an array of these stands for.
    ///
    /// # Errors
    /// - `BadValue` for an unknown alias or code.
    /// - `TypeMismatch` for a value of another type.
    /// - `FailedToParse` for an empty array.
    pub fn parse(operand: RawBsonRef<'_>) -> Result<TypeSet> {
        let mut types = TypeSet { rows: 0 };
        match operand {
            RawBsonRef::Array(items) => {
                for item in items {
                    types.add(item.map_err(Error::malformed)?)?;
                }
            }
            operand => types.add(operand)?,
        }
        if types.rows == 0 {
            return Err(Error::new(Code::FAILED_TO_PARSE, "$type must match at least one type"));
        }
        Ok(types)
    }

    /// Returns the set of one alias or of `"number"`.
    pub fn of_alias(alias: &str) -> Option<TypeSet> {
        if alias == "number" {
            return Some(TypeSet::numbers());
        }
        let row = TYPES.iter().position(|row| row.2 == alias)?;
        Some(TypeSet { rows: 1 << row })
    }

    /// Returns the set of the four numeric types.
    pub fn numbers() -> TypeSet {
        let types = [
            ElementType::Double,
            ElementType::Int32,
            ElementType::Int64,
            ElementType::Decimal128,
        ];
        TypeSet {
            rows: types.into_iter().fold(0, |rows, each| rows | 1 << row(each)),
        }
    }

    /// Returns the types of both sets.
    #[must_use]
    pub fn union(self, other: TypeSet) -> TypeSet {
        TypeSet {
            rows: self.rows | other.rows,
        }
    }

    /// Tells whether the value's type is in the set.
    pub fn matches(self, value: RawBsonRef<'_>) -> bool {
        self.contains(value.element_type())
    }

    /// Tells whether a type is in the set.
    pub fn contains(self, element_type: ElementType) -> bool {
        self.rows & (1 << row(element_type)) != 0
    }

    fn add(&mut self, item: RawBsonRef<'_>) -> Result<()> {
        let found = match item {
            RawBsonRef::String(alias) => {
                TypeSet::of_alias(alias).ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {alias}")))?
            }
            item if Number::of(item).is_some() => of_code(item)?,
            _ => {
                return Err(Error::new(
                    Code::TYPE_MISMATCH,
                    "type must be represented as a number or a string",
                ));
            }
        };
        *self = self.union(found);
        Ok(())
    }
}

fn of_code(item: RawBsonRef<'_>) -> Result<TypeSet> {
    let whole = number::whole(item);
    if whole == Some(0) {
        return Err(Error::bad_value(
            "Invalid numerical type code: 0. Instead use {$exists:false}.",
        ));
    }
    let row = TYPES.iter().position(|row| Some(i64::from(row.1)) == whole);
    row.map(|row| TypeSet { rows: 1 << row })
        .ok_or_else(|| Error::bad_value(format!("Invalid numerical type code: {}", super::text::render(item))))
}
