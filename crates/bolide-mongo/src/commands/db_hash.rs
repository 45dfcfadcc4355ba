//! `dbHash`.

use std::sync::Arc;

use bolide_core::Container;
use bolide_mql::Result;
use bson::raw::CStr;
use bson::{RawDocumentBuf, rawdoc};
use data_encoding::HEXLOWER;
use md5::{Digest, Md5};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, statistics};
use crate::codes;

/// `{dbHash: 1, collections?: [name]}` → `{collections: {name: md5}, capped, uuids, md5, timeMillis}`, of live documents.
///
/// The hash of a collection does not depend on the order of its documents: it is the MD5 of the sum of the documents' MD5s, as numbers of 128 bits.
/// Equal data on two servers of Bolide have equal hashes; those of MongoDB are others.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let begun = context.state.monotonic().now();
    let mut names: Vec<&str> = Vec::new();
    for name in arguments.array("collections")?.into_iter().flatten() {
        names.extend(name?.as_str());
    }
    arguments.ignore(&["skipTempCollections"]);
    arguments.finish()?;
    let account = &context.state.account;
    account.refresh_catalog().await.map_err(|error| codes::error(&error))?;
    let mut all = account.list_collections(context.database);
    all.retain(|container| names.is_empty() || names.contains(&container.properties().id.as_str()));
    all.sort_by_key(|container| container.properties().id.clone());
    let (mut hashes, mut uuids, mut total) = (RawDocumentBuf::new(), RawDocumentBuf::new(), Md5::new());
    for container in &all {
        let hash = hash(context, container).await?;
        total.update(hash.as_bytes());
        let definition = collections::definition(container)?;
        let properties = container.properties();
        // Names are checked when collections are created: they have no NUL.
        if let Ok(name) = <&CStr>::try_from(properties.id.as_str()) {
            hashes.append(name, hash);
            uuids.append(name, collections::uuid(&definition));
        }
    }
    let millis = context.state.monotonic().since(begun).as_millis();
    let reply = rawdoc! {
        "host": context.state.options.host.name.as_str(),
        "collections": hashes,
        "capped": [],
        "uuids": uuids,
        "md5": HEXLOWER.encode(&total.finalize()),
        "timeMillis": i32::try_from(millis).unwrap_or(i32::MAX),
    };
    Ok(reply.into())
}

async fn hash(context: &CommandContext<'_>, container: &Arc<Container>) -> Result<String> {
    let sum = statistics::fold(context, container, 0_u128, |sum, document| {
        let digest: [u8; 16] = Md5::digest(document.document().as_bytes()).into();
        *sum = sum.wrapping_add(u128::from_be_bytes(digest));
        Ok(())
    });
    Ok(HEXLOWER.encode(&Md5::digest(sum.await?.to_be_bytes())))
}

#[cfg(test)]
mod tests;
