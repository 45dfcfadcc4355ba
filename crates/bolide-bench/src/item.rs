//! The items that are stored and read: documents of exactly 1 KB.

use std::sync::Arc;

use bolide_core::{Account, Container, CreateItem};
use bolide_model::document::Document;

use crate::Result;

/// Bytes of a document.
pub const BYTES: usize = 1024;

/// The id of the `number`-th item; all ids have the same length.
pub fn id(number: u64) -> String {
    format!("{number:012}")
}

/// The document with an id, which is its partition key too. Without `ttl` its container's default applies.
pub fn document(id: &str, ttl: Option<i32>) -> String {
    let ttl = ttl.map(|seconds| format!("\"ttl\":{seconds},")).unwrap_or_default();
    let mut text = format!(
        "{{\"id\":\"{id}\",{ttl}\"kind\":\"session\",\"user\":{{\"name\":\"Ada Lovelace\",\"roles\":[\"reader\",\"editor\"]}},\
         \"visits\":17,\"score\":0.75,\"active\":true,\"device\":null,\"notes\":\""
    );
    const END: &str = "\"}";
    text.extend(
        std::iter::repeat_n("lorem ipsum ", BYTES / 12)
            .flat_map(str::chars)
            .take(BYTES - END.len() - text.len()),
    );
    text.push_str(END);
    text
}

/// Number of concurrent writes, so that they share commits.
const TOGETHER: u64 = 256;

/// Creates the items from 0 to `count`, exclusive, many at a time.
pub async fn create_all(
    account: &Arc<Account>,
    container: &Arc<Container>,
    count: u64,
    document: impl Fn(u64) -> String,
) -> Result<()> {
    for first in (0..count).step_by(TOGETHER as usize) {
        let numbers = first..count.min(first + TOGETHER);
        let creates: Vec<_> = numbers
            .map(|number| tokio::spawn(create(account, container, &document(number))))
            .collect();
        for create in creates {
            create.await??;
        }
    }
    Ok(())
}

/// Creates an item through the core.
pub fn create(
    account: &Arc<Account>,
    container: &Arc<Container>,
    document: &str,
) -> impl Future<Output = Result<()>> + Send + use<> {
    let (account, container) = (account.clone(), container.clone());
    let document = Document::parse(document.as_bytes());
    async move {
        let create = CreateItem {
            document: document.map_err(|error| error.to_string())?,
            partition_key: None,
        };
        let ctx = account.begin().await.map_err(|error| error.to_string())?;
        let created = account.create_item(&ctx, &container, create).await;
        created.map_err(|refusal| refusal.error.to_string())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
