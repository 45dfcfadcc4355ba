//! The tour of Bolide with the `mongodb` crate: `bolide-mongo-rust-tour --uri URI --endpoint URL --key KEY --certificate FILE --tables DIR`.

mod checks;
mod connections;
mod documents;
mod expiry;
mod tables;
mod transactions;
mod world;

use std::process::ExitCode;

use checks::{Outcome, Tour};
use world::World;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Outcome<usize> {
    let world = World::open().await?;
    let mut tour = Tour::default();
    connections::run(&mut tour, &world).await;
    documents::run(&mut tour, &world).await;
    tables::run(&mut tour, &world).await?;
    expiry::run(&mut tour, &world).await;
    transactions::run(&mut tour, &world).await;
    Ok(tour.finish())
}
