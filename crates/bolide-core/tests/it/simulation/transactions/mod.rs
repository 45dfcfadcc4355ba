//! Transactions of MongoDB in the simulation: clients read and write registers at any server, some in transactions, some in single writes, and what they
//! have seen must be snapshot isolation ([`history`]).
//!
//! A register is a document with a list, to which each writer appends its number. It is in one of two collections, which are two partitions of one home:
//! transactions also move it, so that one who sees a commit only in part finds it twice or not at all. It also has one of a few slots, and changes it; by a unique index
//! no two documents of a collection have the same. Documents do not end here.

mod client;
mod history;
mod register;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bolide_core::{Account, CollectionDefinition, Container};
use bolide_model::ttl::Policy;
use bolide_mql::bson::{RawDocumentBuf, rawdoc};
use bolide_mql::index::{IndexDefinition, ParseOptions};

use tokio::task::JoinHandle;

use super::text_of;
use super::world::World;
use crate::random::RandomChoices;
pub use client::Client;
use history::{End, Transaction};

/// The database of the collections, and the collections.
const DATABASE: &str = "m";
const COLLECTIONS: [&str; 2] = ["left", "right"];
/// The number of registers.
const REGISTERS: usize = 4;
/// The number of slots of a collection.
const SLOTS: u64 = 6;

const CLIENTS: u64 = 3;
/// Maximum number of transactions of one client in one round.
const TRANSACTIONS: u64 = 3;

/// Creates the collections.
pub async fn create_collections(account: &Account) {
    for name in COLLECTIONS {
        let id_index = IndexDefinition::id_index(None).expect("a definition");
        let mut definition = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
        let slots = rawdoc! {"key": {"slot": 1}, "name": "slot_1", "unique": true};
        let slots = IndexDefinition::parse(&slots, &ParseOptions::default()).expect("a definition");
        definition.add_index(slots, None, false);
        let created = account.create_collection(DATABASE, name, definition, Policy::Off).await;
        created.expect("a collection");
    }
}

/// Returns the collections as a server has them.
fn collections_of(account: &Account) -> [Arc<Container>; 2] {
    COLLECTIONS.map(|name| {
        account
            .find_collection(DATABASE, name)
            .expect("it was created before all servers")
    })
}

/// All transactions of a simulation so far.
#[derive(Default)]
pub struct Transactions {
    history: Vec<Transaction>,
}

/// The transactions of a round that are being made.
pub struct Round(Vec<JoinHandle<Vec<Transaction>>>);

impl Round {
    /// Begins the transactions of a round.
    pub fn begin(world: &Arc<World>, moments: &Arc<AtomicU64>, choices: &mut RandomChoices) -> Round {
        let clients = (0..CLIENTS).map(|_| {
            let choices = RandomChoices::new(choices.roll(u64::MAX));
            tokio::spawn(Client::new(world.clone(), moments.clone(), choices).run())
        });
        Round(clients.collect())
    }

    /// Waits until they have ended.
    ///
    /// # Errors
    /// The text of a client that has failed.
    pub async fn end(self) -> Result<Vec<Transaction>, String> {
        let mut made = Vec::new();
        for client in self.0 {
            made.extend(client.await.map_err(|panic| text_of(panic.into_panic()))?);
        }
        Ok(made)
    }
}

impl Transactions {
    /// Checks the transactions of a round, and all before them. Nothing may be on its way any more. Returns how often each outcome was.
    ///
    /// # Errors
    /// If they are not snapshot isolation.
    pub async fn take(&mut self, made: Vec<Transaction>, mut reader: Client) -> Result<(), String> {
        for mut made in made {
            if made.end == End::Unknown {
                // The record of the session was to be written with the documents, so it tells whether they were.
                made.end = match reader.has_record(made.number).await {
                    true => End::Committed,
                    false => End::Aborted,
                };
            }
            self.history.push(made);
        }
        self.history.push(reader.read_all().await);
        history::check(&self.history)
    }
}
