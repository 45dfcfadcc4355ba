//! The throughput of databases and collections.

use bolide_core::{OfferResource, Throughput};
use bolide_mql::{Code, Error, Result};
use bson::raw::cstr;
use bson::{RawDocumentBuf, rawdoc};

use crate::codes;
use crate::commands::arguments::Arguments;
use crate::commands::context::CommandContext;
use crate::commands::data::statements::count;

/// `offerThroughput` or `autoScaleSettings: {maxThroughput}`.
pub struct ThroughputArguments(Option<Throughput>);

impl ThroughputArguments {
    /// Reads them.
    ///
    /// # Errors
    /// `BadValue` for both at once, or amounts that the service does not have.
    pub fn read(arguments: &mut Arguments<'_>) -> Result<ThroughputArguments> {
        let manual = arguments.integer("offerThroughput")?;
        let automatic = match arguments.document("autoScaleSettings")? {
            None => None,
            Some(settings) => {
                let mut fields = Arguments::of_document("autoScaleSettings", settings)?;
                let max = fields.integer("maxThroughput")?;
                let max = fields.required("maxThroughput", max)?;
                fields.finish()?;
                Some(max)
            }
        };
        let throughput = match (manual, automatic) {
            (None, None) => return Ok(ThroughputArguments(None)),
            (Some(_), Some(_)) => {
                let text = "offerThroughput and autoScaleSettings cannot both be given.";
                return Err(Error::bad_value(text));
            }
            (Some(ru), None) => Throughput::Manual { ru: amount(ru)? },
            (None, Some(max_ru)) => Throughput::Autoscale {
                max_ru: amount(max_ru)?,
                increment_percent: None,
            },
        };
        throughput.validate().map_err(|error| codes::error(&error))?;
        Ok(ThroughputArguments(Some(throughput)))
    }

    /// Returns the throughput; `None` if none is given.
    pub fn value(&self) -> Option<Throughput> {
        self.0
    }

    /// Checks that one range has enough for it, because an unsharded collection has no more.
    ///
    /// # Errors
    /// `BadValue`.
    pub fn check_one_range(&self) -> Result<()> {
        match self.0.map(Throughput::least_ranges) {
            None | Some(1) => Ok(()),
            Some(_) => {
                let text = "A collection without shard key can have at most 10000 request units per second.";
                Err(Error::bad_value(text))
            }
        }
    }

    /// Replaces the throughput of a database or collection.
    ///
    /// # Errors
    /// `BadValue` if none is given, or if the resource has none of its own; of the storage.
    pub async fn replace(&self, context: &CommandContext<'_>, resource: OfferResource) -> Result<()> {
        let Some(throughput) = self.0 else {
            return Err(Error::bad_value("offerThroughput or autoScaleSettings is required."));
        };
        let account = &context.state.account;
        let known = account
            .list_offers()
            .into_iter()
            .find(|offer| offer.resource == resource);
        let Some(known) = known else {
            let text = "It was created without throughput of its own, which cannot be added later.";
            return Err(Error::new(Code::BAD_VALUE, text));
        };
        let request = context.begin().await?;
        let replaced = account.replace_offer(&request, known.rid, throughput, None).await;
        replaced.map(drop).map_err(|error| codes::error(&error))
    }
}

fn amount(ru: i64) -> Result<u32> {
    u32::try_from(ru).map_err(|_| Error::bad_value(format!("The throughput {ru} is out of range.")))
}

/// Appends the throughput of a database or collection to a reply, if it has one of its own.
pub fn append(context: &CommandContext<'_>, resource: OfferResource, reply: &mut RawDocumentBuf) {
    let offers = context.state.account.list_offers();
    match offers.into_iter().find(|offer| offer.resource == resource) {
        None => {}
        Some(offer) => match offer.throughput {
            Throughput::Manual { ru } => reply.append(cstr!("provisionedThroughput"), count(ru.into())),
            Throughput::Autoscale { max_ru, .. } => {
                let settings = rawdoc! {"maxThroughput": count(max_ru.into())};
                reply.append(cstr!("autoScaleSettings"), settings);
            }
        },
    }
}
