//! The bound form of a query: names are slots, parameters are constants, patterns are compiled.
//!
//! Every input of every FROM, every group key and every aggregate has its own slot in one flat row, so that a subquery reads the rows around it
//! without copying them. Slot 0 is the item.

use std::fmt;
use std::sync::Arc;

use crate::aggregate::AggregateKind;
use crate::functions::Function;
use crate::functions::regex::Pattern;
use crate::like::Like;
use crate::path::PathStep;
use crate::text::ast::{BinaryOp, UnaryOp};
use crate::value::{SameKey, Value};

/// The slot of the container's item.
pub const ITEM_SLOT: usize = 0;

/// An expression over a row.
#[derive(Debug, Clone)]
pub enum Scalar {
    Const(Value<'static>),
    Slot(usize),
    /// Steps below the value of a slot.
    Path {
        slot: usize,
        steps: Arc<[PathStep]>,
    },
    /// One step below any other expression.
    Step(Box<Scalar>, PathStep),
    Unary(UnaryOp, Box<Scalar>),
    Binary(BinaryOp, Box<(Scalar, Scalar)>),
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    Coalesce(Vec<Scalar>),
    Conditional(Box<(Scalar, Scalar, Scalar)>),
    Between(Box<(Scalar, Scalar, Scalar)>),
    In(Box<Scalar>, Vec<Scalar>),
    /// IN over constants, compared as by DISTINCT.
    InSet(Box<Scalar>, Arc<InSet>),
    Like(Box<Scalar>, Box<LikePattern>),
    Array(Vec<Scalar>),
    Object(Vec<(Arc<str>, Scalar)>),
    Call(&'static Function, Vec<Scalar>),
    /// REGEXMATCH with a constant pattern.
    Regex(Box<Scalar>, Arc<Pattern>),
    Udf(Arc<str>, Vec<Scalar>),
    /// A computed property: evaluated with the item in slot 0.
    Computed(Arc<Scalar>),
    Subquery(SubqueryForm, Arc<Select>),
}

/// What a subquery returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryForm {
    /// The only row.
    Single,
    Exists,
    Array,
    First,
    Last,
    /// True if there is no row; the filter is already negated.
    None,
}

/// The constant list of an IN.
#[derive(Debug, Clone)]
pub struct InSet {
    pub values: Vec<Value<'static>>,
    pub keys: std::collections::HashSet<SameKey>,
}

#[derive(Debug, Clone)]
pub enum LikePattern {
    Constant(Like),
    Dynamic(Scalar, Option<char>),
}

/// The source of the rows of one FROM item.
#[derive(Debug, Clone)]
pub enum Source {
    /// The container's items; the execution fills the slot.
    Item,
    /// The value itself, if defined.
    Value(Scalar),
    /// Each element, if the value is an array.
    Each(Scalar),
    /// Each result of a subquery.
    Subquery(Arc<Select>),
    /// Each element of each result that is an array.
    EachOfSubquery(Arc<Select>),
}

#[derive(Debug, Clone)]
pub struct Input {
    pub slot: usize,
    pub source: Source,
}

#[derive(Debug, Clone)]
pub enum Projection {
    /// A single value; a row whose value is undefined is left out.
    Value(Scalar),
    /// An object per row; undefined columns are left out.
    List(Vec<(Arc<str>, Scalar)>),
}

#[derive(Debug, Clone)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub argument: Scalar,
    /// The slot of its result.
    pub slot: usize,
}

/// Grouping: one group per key, or without keys one group of all rows.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// Each key and the slot of its value.
    pub keys: Vec<(Scalar, usize)>,
    pub aggregates: Vec<Aggregate>,
    /// The query has GROUP BY: no rows give no groups.
    pub explicit: bool,
}

#[derive(Debug, Clone)]
pub struct SortKey {
    pub value: Scalar,
    pub descending: bool,
    /// Rows without a value are left out (one key under the wildcard index).
    pub skip_undefined: bool,
    /// Arrays and objects count as undefined (composite indexes).
    pub primitives_only: bool,
    /// Of a distance of vectors: how the nearest ones are searched.
    pub search: Option<VectorSearch>,
}

/// What the options of a `VectorDistance` say about the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorSearch {
    /// Every item is compared.
    pub is_exact: bool,
    /// How much of an index is searched, compared with one tenth of the usual.
    pub list_multiplier: f64,
    /// Number of items that are compared exactly, for each row.
    pub candidate_multiplier: f64,
}

impl VectorSearch {
    /// The service's defaults.
    pub const LIST_MULTIPLIER: f64 = 10.0;
    pub const CANDIDATE_MULTIPLIER: f64 = 5.0;
    /// Maximum of both.
    pub const MAX_MULTIPLIER: f64 = 100.0;
}

/// A component of ORDER BY RANK.
#[derive(Debug, Clone)]
pub enum RankComponent {
    FullText {
        text: Scalar,
        terms: Vec<Scalar>,
        language: String,
    },
    /// For a Euclidean distance smaller is better.
    Vector { score: Scalar, ascending: bool },
}

#[derive(Debug, Clone)]
pub struct Ranking {
    pub components: Vec<RankComponent>,
    /// One per component.
    pub weights: Vec<f64>,
}

#[derive(Debug, Clone)]
pub enum Ordering {
    None,
    Keys(Vec<SortKey>),
    Rank(Ranking),
}

/// A bound query or subquery.
#[derive(Debug, Clone)]
pub struct Select {
    pub inputs: Vec<Input>,
    pub filter: Option<Scalar>,
    pub grouping: Option<Grouping>,
    pub ordering: Ordering,
    pub projection: Projection,
    pub distinct: bool,
    pub skip: u64,
    pub take: Option<u64>,
}

impl Select {
    /// Whether the first input is the container or a subquery over it.
    pub fn reads_items(&self) -> bool {
        self.inputs.first().is_some_and(|input| match &input.source {
            Source::Item => true,
            Source::Subquery(inner) | Source::EachOfSubquery(inner) => inner.reads_items(),
            Source::Value(scalar) | Source::Each(scalar) => scalar.reads_item_slot(),
        })
    }

    /// Whether the only input is the container.
    pub fn is_over_items_only(&self) -> bool {
        matches!(
            self.inputs.as_slice(),
            [Input {
                source: Source::Item,
                slot: ITEM_SLOT,
            }]
        )
    }

    /// The keys of rows that are items, if they are sorted by keys.
    pub fn sort_keys(&self) -> Option<&[SortKey]> {
        let is_sorted_items = self.is_over_items_only() && self.grouping.is_none() && !self.distinct;
        match &self.ordering {
            Ordering::Keys(keys) if is_sorted_items => Some(keys),
            _ => None,
        }
    }

    /// The key of rows that are items, sorted by one key.
    pub fn only_sort_key(&self) -> Option<&SortKey> {
        match self.sort_keys()? {
            [key] => Some(key),
            _ => None,
        }
    }

    /// Whether the content of items is read; a plain count of items does not need it.
    pub fn reads_content(&self) -> bool {
        let is_plain = self.filter.is_none() && self.is_over_items_only();
        let counts_only = |grouping: &Grouping| {
            let mut arguments = grouping.aggregates.iter().map(|aggregate| &aggregate.argument);
            !grouping.explicit && arguments.all(|argument| argument.as_const().is_some())
        };
        self.reads_items() && !(is_plain && self.grouping.as_ref().is_some_and(counts_only))
    }
}

impl Scalar {
    /// The constant, if the expression is one.
    pub fn as_const(&self) -> Option<&Value<'static>> {
        match self {
            Scalar::Const(value) => Some(value),
            _ => None,
        }
    }

    fn reads_item_slot(&self) -> bool {
        matches!(self, Scalar::Slot(ITEM_SLOT) | Scalar::Path { slot: ITEM_SLOT, .. })
    }
}

impl fmt::Display for SubqueryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubqueryForm::Single => "scalar",
            SubqueryForm::Exists => "exists",
            SubqueryForm::Array => "array",
            SubqueryForm::First => "first",
            SubqueryForm::Last => "last",
            SubqueryForm::None => "none",
        })
    }
}

impl Scalar {
    /// Calls `f` on every direct operand, except in subqueries and computed properties.
    pub fn for_each_operand<'s>(&'s self, f: &mut dyn FnMut(&'s Scalar)) {
        match self {
            Scalar::Const(_) | Scalar::Slot(_) | Scalar::Path { .. } | Scalar::Computed(_) | Scalar::Subquery(..) => {}
            Scalar::Step(base, _) | Scalar::Unary(_, base) | Scalar::Regex(base, _) | Scalar::InSet(base, _) => f(base),
            Scalar::Binary(_, sides) => {
                f(&sides.0);
                f(&sides.1);
            }
            Scalar::Conditional(parts) | Scalar::Between(parts) => {
                f(&parts.0);
                f(&parts.1);
                f(&parts.2);
            }
            Scalar::And(list)
            | Scalar::Or(list)
            | Scalar::Coalesce(list)
            | Scalar::Array(list)
            | Scalar::Call(_, list) => {
                list.iter().for_each(f);
            }
            Scalar::Udf(_, list) => list.iter().for_each(f),
            Scalar::In(value, list) => {
                f(value);
                list.iter().for_each(f);
            }
            Scalar::Like(value, pattern) => {
                f(value);
                if let LikePattern::Dynamic(pattern, _) = &**pattern {
                    f(pattern);
                }
            }
            Scalar::Object(members) => members.iter().for_each(|(_, value)| f(value)),
        }
    }
}

/// Whether the optional last argument of a function of strings leaves case as it is.
pub fn regards_case(flag: &[Scalar]) -> bool {
    match flag {
        [] => true,
        [flag] => flag.as_const().and_then(Value::as_bool) == Some(false),
        _ => false,
    }
}
