//! The merge operations that clients support (cosmos-sql §22.1).

use super::{DistinctType, Info};
use crate::error::{QueryError, Result};
use crate::text::ast::Query;

/// A merge operation that a client may support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// `SELECT VALUE AGG(…)`
    Aggregate,
    /// AVG, and MIN and MAX with their counts.
    CompositeAggregate,
    /// DISTINCT
    Distinct,
    /// GROUP BY
    GroupBy,
    /// Several aggregates in one query.
    MultipleAggregates,
    /// Several keys of ORDER BY.
    MultipleOrderBy,
    /// OFFSET LIMIT
    OffsetAndLimit,
    /// ORDER BY
    OrderBy,
    /// TOP
    Top,
    /// Aggregates without VALUE.
    NonValueAggregate,
    /// A count of distinct values.
    DCount,
    /// ORDER BY something that no index has in order.
    NonStreamingOrderBy,
    /// MAKELIST and MAKESET
    ListAndSetAggregate,
    /// COUNTIF
    CountIf,
    /// ORDER BY RANK
    HybridSearch,
    /// RRF with weights.
    WeightedRankFusion,
    /// Component queries without a rewritten ORDER BY.
    HybridSearchSkipOrderByRewrite,
}

/// Names as clients send them. Each enum of names has its own table.
const NAMES: &[(&str, Feature)] = &[
    ("Aggregate", Feature::Aggregate),
    ("CompositeAggregate", Feature::CompositeAggregate),
    ("Distinct", Feature::Distinct),
    ("GroupBy", Feature::GroupBy),
    ("MultipleAggregates", Feature::MultipleAggregates),
    ("MultipleOrderBy", Feature::MultipleOrderBy),
    ("OffsetAndLimit", Feature::OffsetAndLimit),
    ("OrderBy", Feature::OrderBy),
    ("Top", Feature::Top),
    ("NonValueAggregate", Feature::NonValueAggregate),
    ("DCount", Feature::DCount),
    ("NonStreamingOrderBy", Feature::NonStreamingOrderBy),
    ("ListAndSetAggregate", Feature::ListAndSetAggregate),
    ("CountIf", Feature::CountIf),
    ("HybridSearch", Feature::HybridSearch),
    ("WeightedRankFusion", Feature::WeightedRankFusion),
    (
        "HybridSearchSkipOrderByRewrite",
        Feature::HybridSearchSkipOrderByRewrite,
    ),
];

/// The features that a client listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SupportedFeatures {
    list: Vec<Feature>,
}

impl SupportedFeatures {
    /// Reads the comma-separated header; unknown names are ignored.
    pub fn parse(header: &str) -> SupportedFeatures {
        let known = |name: &str| {
            NAMES
                .iter()
                .find(|(own, _)| own.eq_ignore_ascii_case(name))
                .map(|(_, feature)| *feature)
        };
        SupportedFeatures {
            list: header.split(',').filter_map(|name| known(name.trim())).collect(),
        }
    }

    /// A client that supports everything.
    pub fn all() -> SupportedFeatures {
        SupportedFeatures {
            list: NAMES.iter().map(|(_, feature)| *feature).collect(),
        }
    }

    /// Whether the client supports a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.list.contains(&feature)
    }

    /// # Errors
    /// The service's message about old SDKs, with the name of the feature.
    pub(super) fn require(&self, feature: Feature) -> Result<()> {
        if self.has(feature) {
            return Ok(());
        }
        let name = NAMES
            .iter()
            .find(|(_, own)| *own == feature)
            .map_or("", |(name, _)| name);
        Err(QueryError::refused(format!(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested features:\n\
             Query contained {name}, which the calling client does not support."
        )))
    }

    /// Requires every merge operation that a plan needs.
    pub(super) fn check(&self, info: &Info, ast: &Query) -> Result<()> {
        for feature in needed(info, ast) {
            self.require(feature)?;
        }
        Ok(())
    }
}

fn needed(info: &Info, ast: &Query) -> Vec<Feature> {
    let columns = info.alias_aggregates.iter().filter_map(|(_, kind)| *kind);
    let kinds: Vec<&str> = info.aggregates.iter().copied().chain(columns).collect();
    let grouped = !ast.group_by.is_empty();
    let conditions = [
        (!info.aggregates.is_empty(), Feature::Aggregate),
        (info.distinct != DistinctType::None, Feature::Distinct),
        (grouped, Feature::GroupBy),
        (
            !grouped && info.aggregates.is_empty() && !kinds.is_empty(),
            Feature::NonValueAggregate,
        ),
        (!grouped && kinds.len() > 1, Feature::MultipleAggregates),
        (!info.order_descending.is_empty(), Feature::OrderBy),
        (info.order_descending.len() > 1, Feature::MultipleOrderBy),
        (info.has_non_streaming_order_by, Feature::NonStreamingOrderBy),
        (info.top.is_some(), Feature::Top),
        (info.offset.is_some() || info.limit.is_some(), Feature::OffsetAndLimit),
        (
            kinds.iter().any(|kind| matches!(*kind, "MakeList" | "MakeSet")),
            Feature::ListAndSetAggregate,
        ),
        (kinds.contains(&"CountIf"), Feature::CountIf),
        (info.dcount_alias.is_some(), Feature::DCount),
    ];
    conditions
        .into_iter()
        .filter(|(is_needed, _)| *is_needed)
        .map(|(_, feature)| feature)
        .collect()
}
