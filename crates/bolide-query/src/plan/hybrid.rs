//! ORDER BY RANK as a client runs it (cosmos-rest §6.11).

use serde_json::{Value as Json, json};

use super::SupportedFeatures;
use crate::error::Result;
use crate::parameters::Parameters;
use crate::schema::Schema;
use crate::text::ast::{OrderItem, Query};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct HybridSearch {}

impl HybridSearch {
    pub fn to_json(&self) -> Json {
        json!({})
    }
}

pub(super) fn plan(
    _ast: &Query,
    _items: &[OrderItem],
    _parameters: &Parameters,
    _schema: &Schema,
    _features: &SupportedFeatures,
) -> Result<HybridSearch> {
    Ok(HybridSearch {})
}
