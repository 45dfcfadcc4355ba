//! Throughput: what a container may consume, and how much of it is left over for the purge.

mod meter;

use bolide_model::{Reason, RequestUnits, Result};

pub(crate) use meter::{Meter, SharedMeter};

/// The throughput that an offer grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throughput {
    /// A fixed number of request units per second.
    Manual {
        /// Request units per second.
        ru: u32,
    },
    /// A maximum number of request units per second.
    Autoscale {
        /// Maximum number of request units per second.
        max_ru: u32,
        /// Returned to clients unchanged: `autoUpgradePolicy.throughputPolicy.incrementPercent`. `None` after a replace that named no policy.
        increment_percent: Option<u32>,
    },
}

/// The performance level that a container was created with, from before throughput was a number. Only returned to clients, without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OfferType {
    /// No performance level; the value of all containers today.
    #[default]
    Invalid,
    /// The first of three performance levels.
    S1,
    /// The second performance level.
    S2,
    /// The third performance level.
    S3,
}

impl OfferType {
    const ALL: [OfferType; 4] = [OfferType::Invalid, OfferType::S1, OfferType::S2, OfferType::S3];

    /// Returns the name that clients see.
    pub fn name(self) -> &'static str {
        match self {
            OfferType::Invalid => "Invalid",
            OfferType::S1 => "S1",
            OfferType::S2 => "S2",
            OfferType::S3 => "S3",
        }
    }

    /// Returns the type with this name, without regard to case.
    pub fn parse(name: &str) -> Option<OfferType> {
        OfferType::ALL
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(name))
    }
}

impl Throughput {
    /// The throughput that is shown for a container that was created without any.
    pub const DEFAULT: Throughput = Throughput::Manual { ru: 400 };

    /// Returns the maximum number of request units per second.
    pub fn max_ru(self) -> u32 {
        match self {
            Throughput::Manual { ru } => ru,
            Throughput::Autoscale { max_ru, .. } => max_ru,
        }
    }

    /// Checks that the service accepts this throughput (cosmos-rest §4.4).
    ///
    /// # Errors
    /// `BadRequest` with the amount.
    pub fn validate(self) -> Result<()> {
        match self {
            Throughput::Manual { ru } if !(400..=1_000_000).contains(&ru) || ru % 100 != 0 => {
                Err(Reason::ManualThroughput { ru: ru.into() }.into())
            }
            Throughput::Autoscale { max_ru, .. } if max_ru < 1000 => {
                Err(Reason::AutoscaleThroughput { max_ru: max_ru.into() }.into())
            }
            Throughput::Autoscale { max_ru, .. } if max_ru % 1000 != 0 => {
                Err(Reason::AutoscaleStep { max_ru: max_ru.into() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of physical partitions that a new container with this throughput starts with (cosmos-rest §4.5).
    pub fn initial_ranges(self) -> u32 {
        if self.least_ranges() == 1 {
            1
        } else {
            self.max_ru().div_ceil(6_000)
        }
    }

    /// Returns the minimum number of physical partitions for this throughput: each serves up to 10,000 request units per second.
    ///
    /// Source: the service's page on scaling provisioned throughput, by which existing partitions are split until there are that many.
    pub fn least_ranges(self) -> u32 {
        self.max_ru().div_ceil(10_000)
    }
}

/// The budget that sets the pace of the purge, and that throttling enforces (TTL-259…263).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// A fixed number of request units per second, whether used or not.
    Provisioned {
        /// Request units per second.
        ru: f64,
    },
    /// Between a tenth of a maximum and the maximum; billed by the peak of each clock hour.
    Autoscale {
        /// Maximum number of request units per second.
        max_ru: f64,
    },
    /// Billed by use.
    Serverless,
    /// No throughput configured: nothing is billed, and the purge is not slowed down.
    Unlimited,
}

/// Request units per second that a serverless container may consume (TTL-262).
const SERVERLESS_RU: f64 = 5_000.0;

impl Pacing {
    /// Returns the maximum number of request units that users may consume in one second; `None` without a limit.
    pub(crate) fn ceiling(self) -> Option<f64> {
        match self {
            Pacing::Provisioned { ru } => Some(ru),
            Pacing::Autoscale { max_ru } => Some(max_ru),
            Pacing::Serverless => Some(SERVERLESS_RU),
            Pacing::Unlimited => None,
        }
    }

    /// Returns the budget for one of `partitions` equal shares.
    pub(crate) fn share(self, partitions: usize) -> Pacing {
        let partitions = partitions.max(1) as f64;
        match self {
            Pacing::Provisioned { ru } => Pacing::Provisioned { ru: ru / partitions },
            Pacing::Autoscale { max_ru } => Pacing::Autoscale {
                max_ru: max_ru / partitions,
            },
            Pacing::Serverless | Pacing::Unlimited => self,
        }
    }
}

impl From<Option<Throughput>> for Pacing {
    fn from(throughput: Option<Throughput>) -> Pacing {
        match throughput {
            None => Pacing::Unlimited,
            Some(Throughput::Manual { ru }) => Pacing::Provisioned { ru: f64::from(ru) },
            Some(Throughput::Autoscale { max_ru, .. }) => Pacing::Autoscale {
                max_ru: f64::from(max_ru),
            },
        }
    }
}

/// The pace of a container's purge, and what counts as use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacingSettings {
    /// The budget.
    pub pacing: Pacing,
    /// Request units for purging one item; `None`: those of an explicit delete of it.
    pub delete_ru: Option<f64>,
    /// Only [`crate::Account::consume`] counts as use; ordinary operations cost nothing. For test scenarios.
    pub count_only_load: bool,
}

impl PacingSettings {
    /// Returns the settings that follow from an offer.
    pub fn of(throughput: Option<Throughput>) -> PacingSettings {
        PacingSettings {
            pacing: Pacing::from(throughput),
            delete_ru: None,
            count_only_load: false,
        }
    }

    /// Returns whether the units that the purge spends are billed (TTL-262).
    pub(crate) fn is_billed(&self) -> bool {
        self.pacing == Pacing::Serverless
    }

    /// Returns the charge of purging an item of `bytes` bytes.
    pub(crate) fn purge_cost(&self, bytes: usize) -> RequestUnits {
        self.delete_ru
            .map_or_else(|| bolide_model::charge::write(bytes), RequestUnits)
    }
}
