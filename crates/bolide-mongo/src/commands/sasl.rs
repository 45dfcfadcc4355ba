//! `saslStart`, `saslContinue`.

use bolide_mql::value::number;
use bolide_mql::{Error, Result};
use bson::raw::RawBsonRef;
use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc};
use data_encoding::BASE64;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use crate::authentication::SaslStart;
use crate::client::{Client, SaslReply};
use crate::state::MongoState;

/// `{saslStart: 1, mechanism, payload, options?, autoAuthorize?}` → `{conversationId, done, payload}`.
pub async fn start(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let begun = begin(context.state, context.client, context.database, arguments).await?;
    Ok(document(begun).into())
}

/// Begins a conversation inside hello. `None` if it fails: then the client authenticates in the usual way, or gets its error there.
pub async fn speculate(state: &MongoState, client: &Client, command: &RawDocument) -> Option<RawDocumentBuf> {
    let mut arguments = Arguments::of_document("speculativeAuthenticate", command).ok()?;
    let database = arguments.string("db").ok()??;
    arguments.ignore(&["saslStart"]);
    begin(state, client, database, arguments).await.ok().map(document)
}

/// `{saslContinue: 1, conversationId, payload}` → `{conversationId, done, payload}`.
pub async fn proceed(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let id = arguments.value("conversationId");
    let id = arguments.required("conversationId", id)?;
    let id = number::whole(id).and_then(|id| i32::try_from(id).ok());
    let id = id.ok_or_else(|| Error::bad_value("conversationId must be a whole number of 32 bits"))?;
    let payload = payload(&mut arguments)?;
    arguments.finish()?;
    let credentials = &context.state.options.credentials;
    let proceeded = context.client.sasl_continue(credentials, id, &payload).await?;
    Ok(document(proceeded).into())
}

async fn begin(state: &MongoState, client: &Client, database: &str, mut arguments: Arguments<'_>) -> Result<SaslReply> {
    let mechanism = arguments.string("mechanism")?;
    let mechanism = arguments.required("mechanism", mechanism)?;
    let payload = payload(&mut arguments)?;
    let skip_empty_exchange = match arguments.document("options")? {
        Some(options) => Arguments::of_document("saslStart.options", options)?.boolean("skipEmptyExchange")?,
        None => None,
    };
    arguments.ignore(&["autoAuthorize"]);
    arguments.finish()?;
    // A user of the account is one of every database.
    let credentials = &state.options.credentials;
    let user = SaslStart::user(mechanism, &payload).filter(|user| !credentials.knows(user));
    let created = match user {
        Some(user) => state.users.find(&state.account, database, &user).await?,
        None => None,
    };
    let start = SaslStart {
        mechanism,
        database,
        payload: &payload,
        skip_empty_exchange: skip_empty_exchange == Some(true),
        created: created.as_ref().map(|user| &user.credentials),
    };
    client.sasl_start(credentials, &start)
}

/// The payload: binary data, or, from old clients, base64.
fn payload(arguments: &mut Arguments<'_>) -> Result<Vec<u8>> {
    let payload = arguments.value("payload");
    match arguments.required("payload", payload)? {
        RawBsonRef::Binary(binary) => Ok(binary.bytes.to_vec()),
        RawBsonRef::String(text) => BASE64
            .decode(text.as_bytes())
            .map_err(|_| Error::bad_value("payload is not base64")),
        other => Err(wrong_type("payload", other, "types '[binData, string']")),
    }
}

fn document(reply: SaslReply) -> RawDocumentBuf {
    let payload = Binary {
        subtype: BinarySubtype::Generic,
        bytes: reply.payload,
    };
    rawdoc! {
        "conversationId": reply.conversation,
        "done": reply.is_done,
        "payload": payload,
    }
}
