//! Offers: the throughput of databases and containers.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::rid::OfferRid;

use super::Account;
use crate::catalog::{Catalog, Offer};
use crate::runtime::RequestContext;
use crate::throughput::Throughput;

/// Operations on offers.
impl Account {
    /// Returns all offers.
    pub fn list_offers(&self) -> Vec<Offer> {
        self.catalog().list_offers()
    }

    /// Returns the offer with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        self.catalog().offer(rid)
    }

    /// Replaces the throughput that an offer grants. If a container's ranges cannot serve the new throughput, they are split.
    ///
    /// # Errors
    /// `NotFound`; `BadRequest` for invalid amounts; `PreconditionFailed` if the offer has another version.
    pub async fn replace_offer(
        &self,
        _ctx: &RequestContext,
        rid: OfferRid,
        throughput: Throughput,
        if_match: Option<&str>,
    ) -> Result<Offer> {
        let if_match = if_match.map(str::to_owned);
        let replace =
            |catalog: Arc<Catalog>| async move { catalog.replace_offer(rid, throughput, if_match.as_deref()).await };
        let offer = self.catalog().carry_out(replace).await?;
        self.admin().split_for_throughput(&offer).await?;
        Ok(offer)
    }
}
