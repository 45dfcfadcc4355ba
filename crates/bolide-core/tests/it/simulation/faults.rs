//! What happens to servers during a round: they die and start again, are cut off from the store, or split a range.

use std::sync::Arc;

use futures_util::future::{Either, select};

use super::world::{World, pause};
use crate::random::RandomChoices;

/// Maximum number of splits of the container.
const SPLITS: usize = 3;

/// A time when a server is dead or cut off.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    is_killed: bool,
    /// When it begins and how long it lasts, in milliseconds.
    after: u64,
    lasts: u64,
}

impl Trouble {
    /// Returns a trouble that begins within `latest` milliseconds.
    pub fn within(latest: u64, choices: &mut RandomChoices) -> Trouble {
        // Some last longer than a server without heartbeats is taken for alive.
        let longest = if choices.percent(20) { 6_000 } else { 600 };
        Trouble {
            is_killed: choices.percent(60),
            after: choices.roll(latest),
            lasts: choices.roll(longest),
        }
    }

    /// Has its effect on the server in a place, unless the round is over before.
    pub async fn befall(self, world: &World, place: usize) {
        pause(self.after).await;
        if world.network.is_calm() {
            return;
        }
        if self.is_killed {
            world.kill(place);
            pause(self.lasts).await;
            world.start(place).await;
        } else if let Some(server) = world.server_at(place) {
            server.link.cut(true);
            pause(self.lasts).await;
            server.link.cut(false);
        }
    }
}

/// Has one or two faults in a round, or none.
pub async fn inflict(world: Arc<World>, mut choices: RandomChoices) {
    for _ in 0..choices.roll(3) {
        let place = choices.roll(world.places() as u64) as usize;
        let trouble = Trouble::within(800, &mut choices);
        if choices.percent(15) {
            split(&world, place).await;
        } else {
            trouble.befall(&world, place).await;
        }
    }
}

/// Splits a range of the container. It may fail, because others write meanwhile.
async fn split(world: &World, place: usize) {
    let server = world.server_near(place).await;
    if server.container.ranges().ranges.len() > SPLITS {
        return;
    }
    let splitting = server.account.split(&server.container, None);
    if let Either::Left((split, _)) = select(Box::pin(splitting), Box::pin(server.link.death())).await {
        world.network.note(server.link.name(), &format!("split: {split:?}"));
    }
}
