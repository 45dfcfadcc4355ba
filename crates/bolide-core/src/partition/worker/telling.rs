//! The worker writes the ends of documents into the history before anything that happens later.

use std::sync::atomic::Ordering;

use bolide_model::{Result, UnixMillis};

use super::Worker;
use crate::clock;
use crate::partition::endings::TellEndings;
use crate::partition::transaction::Transaction;

/// How far the ends of documents are written into the history.
#[derive(Debug, Clone, Copy)]
pub(super) enum Telling {
    /// Nobody is to be told, or it failed.
    Off,
    /// Those up to a time are being written.
    UpTo(UnixMillis),
    /// Those up to a time are written.
    Told(UnixMillis),
}

impl Worker {
    /// Writes the ends of documents up to now into the history, but not those after `latest`, if somebody is to be told.
    pub(super) async fn tell_endings(&mut self, latest: UnixMillis) {
        self.telling = Telling::Off;
        let Some(endings) = self.shared.endings.read().clone() else {
            return;
        };
        loop {
            let Ok(now) = clock::exact_now(self.engine.as_ref()).await else {
                return;
            };
            let now = now.min(latest).max(self.head.stamp);
            if now < self.shared.schedule.next_ending() {
                self.telling = Telling::Told(now);
                return;
            }
            let (telling, has_failed) = TellEndings::new(endings.clone());
            let mut telling: Vec<Box<dyn Transaction>> = vec![Box::new(telling)];
            let mut taken = 1;
            self.telling = Telling::UpTo(now);
            let ended = self.carry_out(&mut telling, &mut taken, None, None).await;
            self.telling = Telling::Off;
            for transaction in telling {
                transaction.end(&ended);
            }
            if has_failed.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Returns server time for a write batch: not after the next end of a document that is to be told first.
    pub(super) async fn now(&self) -> Result<UnixMillis> {
        let now = clock::exact_now(self.engine.as_ref()).await?;
        let latest = match self.telling {
            Telling::Off => now,
            Telling::UpTo(until) => until,
            Telling::Told(told) => {
                let next = self.shared.schedule.next_ending();
                told.max(UnixMillis(next.0.saturating_sub(1)))
            }
        };
        Ok(now.min(latest).max(self.head.stamp))
    }
}
