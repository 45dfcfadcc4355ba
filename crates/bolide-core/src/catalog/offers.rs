//! Offers: the throughput of databases and containers.

use bolide_model::rid::{ContainerRid, DatabaseRid, OfferRid};
use bolide_model::{Error, Result, UnixSeconds};

use super::budget::Definition;
use super::records::{OfferRow, database_key};
use super::{Catalog, Moment, check_etag};
use crate::container::ContainerState;
use crate::format::etag::Etag;
use crate::throughput::{OfferType, PacingSettings, Throughput};

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

impl OfferRow {
    fn rid(self) -> OfferRid {
        OfferRid::new(self.number)
    }

    fn to_offer(self, resource: OfferResource) -> Offer {
        Offer {
            rid: self.rid(),
            resource,
            throughput: self.throughput.unwrap_or(Throughput::DEFAULT),
            kind: self.kind,
            etag: self.etag,
            last_modified: self.last_modified,
        }
    }
}

impl Catalog {
    /// All offers.
    pub fn list_offers(&self) -> Vec<Offer> {
        let memory = self.memory.read();
        let of_databases = memory
            .databases
            .values()
            .filter_map(|database| Some(database.row.offer?.to_offer(OfferResource::Database(database.rid))));
        let of_containers = memory
            .databases
            .values()
            .flat_map(|database| database.containers.values())
            .filter_map(|container| {
                Some(
                    container
                        .state()
                        .offer?
                        .to_offer(OfferResource::Container(container.rid())),
                )
            });
        of_databases.chain(of_containers).collect()
    }

    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        let found = self.list_offers().into_iter().find(|offer| offer.rid == rid);
        found.ok_or_else(|| Error::not_found(format!("Resource Not Found: there is no offer '{rid}'.")))
    }

    /// Replaces what an offer grants, and paces the purge by it.
    pub async fn replace_offer(&self, rid: OfferRid, throughput: Throughput, if_match: Option<&str>) -> Result<Offer> {
        throughput.validate()?;
        let offer = self.offer(rid)?;
        check_etag(offer.etag, if_match)?;
        match offer.resource {
            OfferResource::Database(database) => self.replace_database_offer(database, throughput).await?,
            OfferResource::Container(container) => self.replace_container_offer(container, throughput).await?,
        }
        self.offer(rid)
    }

    async fn replace_database_offer(&self, rid: DatabaseRid, throughput: Throughput) -> Result<()> {
        let row = self.memory.read().database(rid)?.row.clone();
        let row = self
            .commit(move |round| {
                let mut row = row.clone();
                row.offer = row.offer.map(|offer| offer.renewed(throughput, Moment::begin(round)));
                round.define(database_key(rid), Definition::Database(&row));
                Ok(row)
            })
            .await?;
        let now = self.now().await?.seconds();
        let mut memory = self.memory.write();
        let database = memory.database_mut(rid)?;
        database.row = row;
        if let Some(meter) = &database.meter {
            meter.lock().set_pacing(&PacingSettings::of(Some(throughput)), 1, now);
        }
        Ok(())
    }

    async fn replace_container_offer(&self, rid: ContainerRid, throughput: Throughput) -> Result<()> {
        let container = self.container_by_rid(rid)?;
        let change = container.lock().await;
        let now = self.now().await?.seconds();
        let state = change.state();
        let after = self
            .commit_state(rid, move |moment| {
                let offer = state.offer.map(|offer| offer.renewed(throughput, moment));
                let pacing = PacingSettings {
                    pacing: Some(throughput).into(),
                    ..state.pacing
                };
                ContainerState {
                    offer,
                    pacing,
                    ..(*state).clone()
                }
            })
            .await?;
        after.pace_meters(now);
        change.replace(after);
        Ok(())
    }
}

impl OfferRow {
    fn renewed(self, throughput: Throughput, moment: Moment) -> OfferRow {
        OfferRow {
            throughput: Some(throughput),
            etag: moment.etag(),
            last_modified: moment.now,
            ..self
        }
    }
}
