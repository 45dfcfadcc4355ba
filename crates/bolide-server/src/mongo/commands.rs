//! Commands of MongoDB for the admin API.

use bolide_cosmos::mongo_commands::{CommandFailure, CommandReply, MongoCommands};
use bolide_model::Result;
use bolide_model::account_key::Access;
use bolide_mongo::service::MongoService;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// The front end for MongoDB, as that for Cosmos DB uses it.
pub struct Commands(pub MongoService);

impl MongoCommands for Commands {
    fn run(&self, database: String, command: Bytes, access: Access) -> BoxFuture<'_, Result<CommandReply>> {
        let run = async move {
            let reply = self.0.run_without_connection(database, command, access).await?;
            let failure = reply.failure.map(|error| CommandFailure {
                code: error.code.0,
                name: error.code.shown_name(),
                message: error.message,
            });
            Ok(CommandReply {
                failure,
                body: reply.body.into(),
                charge: reply.charge,
            })
        };
        run.boxed()
    }
}
