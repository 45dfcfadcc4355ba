//! Offers: the throughput of databases and containers.

use std::sync::Arc;

use bolide_model::error::Resource;
use bolide_model::rid::OfferRid;
use bolide_model::{Error, Result};

use super::Account;
use crate::catalog::{Catalog, Offer, OfferResource};
use crate::runtime::RequestContext;
use crate::throughput::Throughput;

/// Operations on offers.
impl Account {
    /// Returns all offers.
    pub fn list_offers(&self) -> Vec<Offer> {
        let mut offers = self.catalog().list_offers();
        offers.retain(|offer| self.shows_offer(offer));
        offers
    }

    /// Returns the offer with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        let offer = self.catalog().offer(rid)?;
        match self.shows_offer(&offer) {
            true => Ok(offer),
            false => Err(Error::missing(Resource::Offer, &rid)),
        }
    }

    /// Whether it is not that of a private collection.
    fn shows_offer(&self, offer: &Offer) -> bool {
        match offer.resource {
            OfferResource::Container(rid) => self.container_by_rid(rid).is_ok(),
            OfferResource::Database(_) => true,
        }
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
        let split = self.admin().split_for_throughput(&offer).await;
        // The children may lack the entries of an index.
        self.index_signal().notify_one();
        split?;
        Ok(offer)
    }
}
