//! The ports of an emulator besides the database's. If another program has one of them, the server goes on without it.

use bolide_cosmos::Purpose;

use super::settings::Emulator;
use crate::connection::{Door, Encryption};
use crate::listeners::{Listeners, PortOption, Protocols};
use crate::server::Failure;

/// Listeners for health checks and for the explorer.
#[derive(Debug, Default)]
pub struct SidePorts {
    health: Option<Listeners>,
    explorer: Option<(Listeners, Door)>,
}

impl SidePorts {
    /// Listens on `host`; on no port at all without the switch.
    ///
    /// # Errors
    /// Addresses and ports that cannot be used for another reason than that they are taken.
    pub async fn bind(emulator: Option<&Emulator>, host: &str) -> Result<SidePorts, Failure> {
        let Some(emulator) = emulator else {
            return Ok(SidePorts::default());
        };
        let health = Listeners::bind_if_free(host, emulator.health_port, PortOption::Health).await?;
        let explorer = match &emulator.explorer {
            None => None,
            Some(explorer) => {
                let door = Door {
                    purpose: Purpose::Explorer,
                    encryption: if explorer.protocol.is_tls() {
                        Encryption::Always
                    } else {
                        Encryption::Never
                    },
                };
                let listeners = Listeners::bind_if_free(host, explorer.port, PortOption::Explorer).await?;
                listeners.map(|listeners| (listeners, door))
            }
        };
        Ok(SidePorts { health, explorer })
    }

    /// The port of health checks.
    pub fn health(&self) -> Option<u16> {
        self.health.as_ref().map(Listeners::port)
    }

    /// The port of the explorer.
    pub fn explorer(&self) -> Option<u16> {
        self.explorer.as_ref().map(|(listeners, _)| listeners.port())
    }

    /// The listeners with what they speak.
    pub fn into_listeners(self) -> impl Iterator<Item = (Listeners, Protocols)> {
        let health = Door {
            purpose: Purpose::Health,
            encryption: Encryption::Never,
        };
        let health = self.health.map(|listeners| (listeners, Protocols::Http(health)));
        let explorer = self
            .explorer
            .map(|(listeners, door)| (listeners, Protocols::Http(door)));
        health.into_iter().chain(explorer)
    }
}
