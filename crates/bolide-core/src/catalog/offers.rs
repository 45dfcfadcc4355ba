//! Offers: the throughput of databases and containers.

use bolide_model::rid::{ContainerRid, DatabaseRid, OfferRid};
use bolide_model::{Error, Result, UnixSeconds};

use super::Catalog;
use super::batch::{CommitPoint, check_etag};
use super::rows::{AccountRow, OfferRow, RowKey, Unknown};
use crate::container::ResourceOffer;
use crate::format::etag::Etag;
use crate::throughput::{OfferType, Throughput};

/// What an offer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferResource {
    /// Throughput shared by the containers of a database.
    Database(DatabaseRid),
    /// Throughput of one container.
    Container(ContainerRid),
}

/// The throughput of a database or container.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Its resource id.
    pub rid: OfferRid,
    /// What it is for.
    pub resource: OfferResource,
    /// What it grants.
    pub throughput: Throughput,
    /// The performance level it was created with.
    pub kind: OfferType,
    /// Its version.
    pub etag: Etag,
    /// When it was last written.
    pub last_modified: UnixSeconds,
}

impl Offer {
    fn new(offer: ResourceOffer, resource: OfferResource) -> Offer {
        Offer {
            rid: OfferRid::new(offer.number),
            resource,
            throughput: offer.throughput.unwrap_or(Throughput::DEFAULT),
            kind: offer.kind,
            etag: offer.etag,
            last_modified: offer.last_modified,
        }
    }
}

impl OfferRow {
    /// What it says.
    pub fn offer(&self) -> ResourceOffer {
        ResourceOffer {
            number: self.number,
            throughput: self.throughput,
            kind: self.kind,
            etag: self.etag,
            last_modified: self.last_modified,
        }
    }

    /// Grants something else, if this is the offer that the caller means.
    ///
    /// # Errors
    /// `NotFound`, `PreconditionFailed`.
    fn replace(
        &mut self,
        rid: OfferRid,
        throughput: Throughput,
        commit_point: CommitPoint,
        if_match: Option<&str>,
    ) -> Result<()> {
        if OfferRid::new(self.number) != rid {
            return Err(not_found(rid));
        }
        check_etag(self.etag, if_match)?;
        self.throughput = Some(throughput);
        (self.etag, self.last_modified) = (commit_point.etag(), commit_point.now);
        Ok(())
    }
}

/// A new offer, with the next number of the account.
pub(super) fn new_offer(
    account: &mut AccountRow,
    throughput: Option<Throughput>,
    kind: OfferType,
    commit_point: CommitPoint,
) -> OfferRow {
    let number = account.next_offer;
    account.next_offer += 1;
    OfferRow {
        number,
        throughput,
        kind,
        etag: commit_point.etag(),
        last_modified: commit_point.now,
        unknown: Unknown::default(),
    }
}

impl Catalog {
    /// All offers.
    pub fn list_offers(&self) -> Vec<Offer> {
        let memory = self.memory.read();
        let of_databases = memory.databases.values().filter_map(|database| {
            let offer = database.row.offer.as_ref()?.offer();
            Some(Offer::new(offer, OfferResource::Database(database.rid)))
        });
        let containers = memory
            .databases
            .values()
            .flat_map(|database| database.containers.values());
        let of_containers = containers.filter_map(|container| {
            let offer = container.state().offer?;
            Some(Offer::new(offer, OfferResource::Container(container.rid())))
        });
        of_databases.chain(of_containers).collect()
    }

    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        let found = self.list_offers().into_iter().find(|offer| offer.rid == rid);
        found.ok_or_else(|| not_found(rid))
    }

    /// Replaces what an offer grants, and paces the purge by it.
    pub async fn replace_offer(&self, rid: OfferRid, throughput: Throughput, if_match: Option<&str>) -> Result<Offer> {
        throughput.validate()?;
        let known = match self.offer(rid) {
            Ok(known) => known,
            Err(_) => {
                self.follow().await?;
                self.offer(rid)?
            }
        };
        let if_match = if_match.map(str::to_owned);
        let resource = known.resource;
        let offer = match resource {
            OfferResource::Database(database) => {
                self.commit(move |batch| {
                    let mut row = batch.database(database)?;
                    let commit_point = batch.commit_point();
                    let offer = row.offer.as_mut().ok_or_else(|| not_found(rid))?;
                    offer.replace(rid, throughput, commit_point, if_match.as_deref())?;
                    let offer = offer.offer();
                    batch.replace(RowKey::Database(database), row)?;
                    Ok(offer)
                })
                .await?
            }
            OfferResource::Container(container) => {
                let container = self.container(container).await?;
                let after = self
                    .change_container(&container, move |commit_point, row| {
                        let offer = row.offer.as_mut().ok_or_else(|| not_found(rid))?;
                        offer.replace(rid, throughput, commit_point, if_match.as_deref())?;
                        row.pacing.pacing = Some(throughput).into();
                        Ok(())
                    })
                    .await?;
                after.offer.ok_or_else(|| not_found(rid))?
            }
        };
        Ok(Offer::new(offer, resource))
    }
}

fn not_found(rid: OfferRid) -> Error {
    Error::not_found(format!("Resource Not Found: there is no offer '{rid}'."))
}
