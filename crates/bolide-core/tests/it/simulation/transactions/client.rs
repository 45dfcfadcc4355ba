//! A client: its transactions, and the single writes and snapshots between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_core::{Account, Container, DocumentScan, OpenTransaction, ReadScope, SessionRecord, StoredDocument};
use bolide_model::epk::Epk;
use bolide_model::{Error, ErrorKind, UnixMillis};
use futures_util::future::{Either, select};

use super::history::{End, Read, Transaction};
use super::register::{draft, first_place, id_of, list_in, register_in, slot_in};
use super::{REGISTERS, SLOTS, TRANSACTIONS, collections_of};
use crate::random::RandomChoices;
use crate::simulation::faults::Trouble;
use crate::simulation::world::{Server, World, pause};

/// How long a transaction may last, in milliseconds: longer than any that is not stuck.
const LIFETIME: i64 = 30_000;
/// Maximum number of steps of a transaction.
const STEPS: u64 = 4;

/// See the module.
pub struct Client {
    world: Arc<World>,
    moments: Arc<AtomicU64>,
    choices: RandomChoices,
}

/// What a client has sent of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Commit,
    Abort,
}

/// A transaction that a client is making at a server.
struct Making<'c> {
    client: &'c mut Client,
    /// The place of the server.
    place: usize,
    account: Arc<Account>,
    collections: [Arc<Container>; 2],
    made: Transaction,
    sent: Sent,
}

/// What a session stores of a transaction that its client was told not to be committed.
const REFUSAL: &[u8] = b"refused";

impl Client {
    pub fn new(world: Arc<World>, moments: Arc<AtomicU64>, choices: RandomChoices) -> Client {
        Client {
            world,
            moments,
            choices,
        }
    }

    /// Makes the transactions of a round.
    pub async fn run(mut self) -> Vec<Transaction> {
        let mut made = Vec::new();
        for _ in 0..self.choices.roll(TRANSACTIONS + 1) {
            pause(self.choices.roll(400)).await;
            let place = self.choices.roll(self.world.places() as u64) as usize;
            let server = self.world.server_near(place).await;
            let mut new = self.make(&server, place).await;
            let was_sent = new.end == End::Unknown && new.commit.0 > new.number;
            if was_sent && self.choices.percent(50) {
                self.send_commit_again(&mut new).await;
            }
            made.push(new);
        }
        made
    }

    /// Reads all registers in one snapshot. No server may be in trouble.
    pub async fn read_all(&mut self) -> Transaction {
        let server = self.world.server_near(0).await;
        let mut making = Making::new(self, &server, 0);
        making.read_snapshot(true).await.expect("a store without faults");
        making.made
    }

    /// Returns whether the session of a transaction has the record of its commit. No server may be in trouble.
    pub async fn has_record(&self, number: u64) -> bool {
        let account = self.world.server_near(0).await.account;
        record_at(&account, number).await.expect("a store without faults")
    }

    /// Sends a commit to another server, because nobody has answered it.
    async fn send_commit_again(&mut self, sent: &mut Transaction) {
        let at = self.choices.roll(self.world.places() as u64) as usize;
        let other = self.world.server_near(at).await;
        let found = find_record(&other.account, sent.number, true);
        if let Either::Left((Ok(is_committed), _)) = select(Box::pin(found), Box::pin(other.link.death())).await {
            let said = format!("the commit of {} was sent again: {is_committed}", sent.number);
            self.world.network.note(other.link.name(), &said);
            sent.end = if is_committed { End::Committed } else { End::Aborted };
            sent.commit.1 = self.moment();
        }
    }

    /// Makes a transaction, a snapshot or a single write, unless the server dies before.
    async fn make(&mut self, server: &Server, place: usize) -> Transaction {
        let kind = self.choices.roll(10);
        let register = self.choices.roll(REGISTERS as u64) as usize;
        let mut making = Making::new(self, server, place);
        let work = async {
            match kind {
                0 => making.read_snapshot(false).await,
                1 | 2 => making.append_outside(register).await,
                _ => making.run().await,
            }
        };
        let ended = match select(Box::pin(work), Box::pin(server.link.death())).await {
            Either::Left((Err(error), _)) => Some(error),
            Either::Left((Ok(()), _)) => None,
            Either::Right(((), _)) => Some(Error::new(ErrorKind::Timeout, "the server died")),
        };
        making.finish(ended, server)
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }
}

impl<'c> Making<'c> {
    fn new(client: &'c mut Client, server: &Server, place: usize) -> Making<'c> {
        let began = client.moment();
        Making {
            client,
            place,
            account: server.account.clone(),
            collections: collections_of(&server.account),
            made: Transaction {
                number: began,
                snapshot: (began, u64::MAX),
                commit: (u64::MAX, u64::MAX),
                reads: Vec::new(),
                appended: Vec::new(),
                slots_met: Vec::new(),
                end: End::Aborted,
            },
            sent: Sent::Nothing,
        }
    }

    /// Notes the outcome.
    fn finish(self, error: Option<Error>, server: &Server) -> Transaction {
        let is_ordinary = |error: &Error| {
            let kinds = [ErrorKind::Conflict, ErrorKind::Timeout, ErrorKind::Unavailable];
            kinds.contains(&error.kind) || matches!(error.kind, ErrorKind::Throttled { .. })
        };
        assert!(
            error.as_ref().is_none_or(is_ordinary),
            "no transaction fails so: {error:?}"
        );
        let mut made = self.made;
        made.end = match (&error, self.sent) {
            (None, Sent::Commit) => End::Committed,
            (Some(error), Sent::Commit) if error.kind == ErrorKind::Timeout => End::Unknown,
            _ => End::Aborted,
        };
        if error.is_none() {
            made.commit.1 = self.client.moment();
        }
        let error = error.map(|error| error.to_string());
        self.client
            .world
            .network
            .note(server.link.name(), &format!("{made:?} {error:?}"));
        made
    }

    /// Runs a transaction of several steps.
    async fn run(&mut self) -> Result<(), Error> {
        let now = self.account.begin().await?.now;
        let until = UnixMillis(now.0 + LIFETIME);
        let begun = self.account.begin_transaction(&self.collections[0], now, until).await?;
        self.made.snapshot.1 = self.client.moment();
        let open = Arc::new(OpenTransaction::new(begun));
        for _ in 0..=self.client.choices.roll(STEPS) {
            pause(self.client.choices.roll(150)).await;
            let register = self.client.choices.roll(REGISTERS as u64) as usize;
            match self.client.choices.roll(10) {
                0 | 1 => self.scan(&open).await?,
                2..5 => drop(self.read(&open, register).await?),
                _ => self.append(&open, register).await?,
            }
        }
        let begun = open.take().await.expect("nobody else has it");
        self.made.commit.0 = self.client.moment();
        if self.client.choices.percent(15) {
            self.sent = Sent::Abort;
            return Ok(());
        }
        if self.client.choices.percent(15) {
            // The server dies, or is cut off, while it commits.
            let (world, trouble) = (self.client.world.clone(), Trouble::within(20, &mut self.client.choices));
            let place = self.place;
            tokio::spawn(async move { trouble.befall(&world, place).await });
        }
        self.sent = Sent::Commit;
        let session = session_of(self.made.number);
        let record = SessionRecord {
            content: session.clone(),
            session,
            refusal: REFUSAL.to_vec(),
        };
        self.account.commit_transaction(begun, Some(record)).await
    }

    /// Finds a register: in which collection it is, and the document.
    async fn read(
        &mut self,
        open: &OpenTransaction,
        register: usize,
    ) -> Result<Option<(usize, StoredDocument)>, Error> {
        let mut found = Vec::new();
        for (place, collection) in self.collections.iter().enumerate() {
            let document = open.find(collection, &id_of(register)).await?;
            found.extend(document.map(|document| (place, document)));
        }
        self.note_read(register, found.iter().map(|(_, document)| list_in(document)).collect());
        Ok(found.into_iter().next())
    }

    fn note_read(&mut self, register: usize, found: Vec<Vec<u64>>) {
        let own = self
            .made
            .appended
            .iter()
            .filter(|appended| **appended == register)
            .count();
        self.made.reads.push(Read { register, found, own });
    }

    /// Scans both collections, and notes what is there.
    async fn scan(&mut self, open: &Arc<OpenTransaction>) -> Result<(), Error> {
        let mut found = vec![Vec::new(); REGISTERS];
        for collection in self.collections.clone() {
            for document in self.documents(open, &collection).await? {
                found[register_in(document.document())].push(list_in(&document));
            }
        }
        for (register, found) in found.into_iter().enumerate() {
            self.note_read(register, found);
        }
        Ok(())
    }

    /// Scans a collection.
    async fn documents(
        &mut self,
        open: &Arc<OpenTransaction>,
        collection: &Arc<Container>,
    ) -> Result<Vec<StoredDocument>, Error> {
        // The time does not matter: it is judged by that of the transaction.
        let scope = ReadScope::in_transaction(UnixMillis(0), open.clone());
        let mut scan = DocumentScan::default();
        let mut found = Vec::new();
        while let Some(page) = scan.next_page(&scope, collection).await? {
            found.extend(page.documents);
        }
        let slots = found.iter().map(|document| slot_in(document.document()));
        self.made.slots_met.push(slots.collect());
        Ok(found)
    }

    /// Appends to a register, which it creates if it is not there, and sometimes moves.
    async fn append(&mut self, open: &Arc<OpenTransaction>, register: usize) -> Result<(), Error> {
        let found = self.read(open, register).await?;
        let mut list = found.as_ref().map_or_else(Vec::new, |(_, document)| list_in(document));
        list.push(self.made.number);
        let to = match &found {
            None => first_place(register),
            // One that it has created itself stays where others create it, too, so that they conflict.
            Some((place, _)) if list[0] == self.made.number || self.client.choices.percent(70) => *place,
            Some((place, _)) => 1 - place,
        };
        let slot = match &found {
            Some((_, document)) if self.client.choices.percent(70) => slot_in(document.document()),
            _ => self.client.choices.roll(SLOTS) as i64,
        };
        let new = draft((&self.account, &self.collections[to]), register, &list, slot);
        if let Some((from, old)) = &found
            && *from != to
        {
            let delete = |batch: &mut bolide_core::DocumentBatch<'_, '_>| {
                let old = batch.again(old)?.expect("it was read in this snapshot");
                batch.delete(&old);
                Ok(())
            };
            open.write(&self.collections[*from], delete).await?;
        }
        let is_replaced = found.is_some_and(|(from, _)| from == to);
        let write = |batch: &mut bolide_core::DocumentBatch<'_, '_>| match batch.find(&id_of(register))? {
            Some(old) if is_replaced => batch.replace(&old, &new),
            _ => batch.insert(&new),
        };
        if open.write(&self.collections[to], write).await?.is_err() {
            // The `_id` is that of no other document in this snapshot, so it is the slot. Nothing else may follow in the transaction: it may be half of a move.
            let others = self.documents(open, &self.collections[to].clone()).await?;
            let has_slot = others.iter().any(|other| slot_in(other.document()) == slot);
            assert!(has_slot, "nobody has slot {slot}");
            return Err(Error::new(ErrorKind::Conflict, "the slot is taken"));
        }
        self.made.appended.push(register);
        Ok(())
    }

    /// Appends to a register without a transaction, if it is in the collection where it began.
    async fn append_outside(&mut self, register: usize) -> Result<(), Error> {
        let collection = self.collections[first_place(register)].clone();
        let (account, number) = (self.account.clone(), self.made.number);
        let drafting = (account.clone(), collection.clone());
        let session = session_of(number);
        let append = move |batch: &mut bolide_core::DocumentBatch<'_, '_>| {
            let Some(old) = batch.find(&id_of(register))? else {
                return Ok(None);
            };
            let before = list_in(&old);
            let list = [&before[..], &[number]].concat();
            batch
                .replace(
                    &old,
                    &draft((&drafting.0, &drafting.1), register, &list, slot_in(old.document())),
                )?
                .expect("it keeps its slot");
            batch.set_session(&session, &session)?;
            Ok(Some(before))
        };
        let ctx = account.begin().await?;
        self.made.commit.0 = self.made.number;
        self.made.appended.push(register);
        self.sent = Sent::Commit;
        let written = account.write_document(&ctx, (&collection, Epk::start()), append).await;
        let before = written.map_err(|refusal| refusal.error)?.value;
        self.made.snapshot.1 = self.client.moment();
        match before {
            Some(list) => self.made.reads.push(Read {
                register,
                found: vec![list],
                own: 0,
            }),
            None => self.made.appended.clear(),
        }
        Ok(())
    }

    /// Reads all registers, or some of them, in one snapshot outside of transactions.
    async fn read_snapshot(&mut self, is_whole: bool) -> Result<(), Error> {
        let now = self.account.begin().await?.now;
        let until = UnixMillis(now.0 + LIFETIME);
        let begun = self
            .account
            .begin_snapshot(&self.collections[1], (now, false), until)
            .await?;
        self.made.snapshot.1 = self.client.moment();
        let open = Arc::new(OpenTransaction::new(begun));
        for _ in 0..self.client.choices.roll(3) {
            pause(self.client.choices.roll(150)).await;
            let register = self.client.choices.roll(REGISTERS as u64) as usize;
            self.read(&open, register).await?;
        }
        match is_whole || self.client.choices.percent(50) {
            true => self.scan(&open).await,
            false => Ok(()),
        }
    }
}

/// Returns the key of the session of a transaction: each has its own.
fn session_of(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Returns whether the session of a transaction has the record of its commit.
async fn record_at(account: &Account, number: u64) -> Result<bool, Error> {
    find_record(account, number, false).await
}

/// As [`record_at`]; without a record the transaction is `refused`: it must not be committed later.
async fn find_record(account: &Account, number: u64, refuses: bool) -> Result<bool, Error> {
    for collection in &collections_of(account) {
        let ctx = account.begin().await?;
        let session = session_of(number);
        let read = account.write_document(&ctx, (collection, Epk::start()), {
            let session = session.clone();
            move |batch| {
                let stored = batch.session(&session)?;
                if stored.is_none() && refuses {
                    batch.set_session(&session, REFUSAL)?;
                }
                Ok(stored)
            }
        });
        let stored = read.await.map_err(|refusal| refusal.error)?.value;
        if stored.is_some_and(|stored| stored == session) {
            return Ok(true);
        }
    }
    Ok(false)
}
