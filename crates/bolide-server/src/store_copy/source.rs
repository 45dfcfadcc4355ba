//! The source of a copy: a running server, asked through its admin API.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_core::{CopyPage, PartitionId, SealedPartition};
use bolide_model::time::Monotonic;
use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Edition, Head};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::admin_client::{AdminClient, Refused};
use crate::server::Failure;

/// How often what has no effect is asked again if there is no answer, and the time between two attempts.
const TRIES: usize = 5;
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// A copy that has begun at a server.
pub(super) struct Source {
    client: Arc<AdminClient>,
    clock: Monotonic,
    id: String,
    time: UnixMillis,
}

/// A request that could not be read as the server means it.
fn unexpected(what: &str) -> Failure {
    Failure::new(format!(
        "--from: the server has answered without {what}; is it of another version?"
    ))
}

impl Source {
    /// Begins a copy.
    ///
    /// # Errors
    /// No server answers, or it refuses.
    pub async fn begin(client: AdminClient) -> Result<Source, Failure> {
        let client = Arc::new(client);
        let begun = on_a_thread(&client, |client| client.send("copies", None)).await?;
        let (id, time) = (begun["id"].as_str(), begun["timeMs"].as_i64());
        Ok(Source {
            id: id.ok_or_else(|| unexpected("an id"))?.to_owned(),
            time: UnixMillis(time.ok_or_else(|| unexpected("its time"))?),
            clock: Monotonic::system(),
            client,
        })
    }

    /// Server time at the beginning.
    pub fn time(&self) -> UnixMillis {
        self.time
    }

    /// Returns the partitions to copy.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn partitions(&self) -> Result<Vec<PartitionId>, Failure> {
        let (answer, _) = self.again(|| self.send("partitions", json!({}))).await;
        let answer = answer?;
        let partitions = answer["partitions"]
            .as_array()
            .ok_or_else(|| unexpected("partitions"))?;
        let ids = partitions.iter().map(|id| id.as_u64().map(PartitionId));
        ids.collect::<Option<_>>().ok_or_else(|| unexpected("partitions"))
    }

    /// Returns a page of all rows of a partition, in the space of this number.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn rows(&self, partition: PartitionId, space: usize, from: Bytes) -> Result<CopyPage, Failure> {
        let body = json!({"partition": partition.0, "space": space, "from": STANDARD.encode(&from)});
        let (page, _) = self.again(|| self.page("rows", body.clone())).await;
        decode(page?)
    }

    /// Returns changed rows of a partition. If there is no answer, changed keys are lost, as the page then says.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn changes(&self, partition: PartitionId) -> Result<CopyPage, Failure> {
        let body = json!({"partition": partition.0});
        let (page, is_lost) = self.again(|| self.page("changes", body.clone())).await;
        let mut page = decode(page?)?;
        page.is_lost |= is_lost;
        Ok(page)
    }

    /// Seals the store. Returns its partitions.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn seal(&self) -> Result<Vec<SealedPartition>, Refused> {
        let answer = self.send("seal", json!({})).await?;
        sealed(&answer).ok_or_else(|| Refused {
            status: None,
            message: unexpected("partitions").to_string(),
        })
    }

    /// Lengthens the lease of the seal.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn renew(&self) -> Result<(), Refused> {
        self.send("seal", json!({"renew": true})).await.map(drop)
    }

    /// Ends the copy: the store has moved, or with `unseal` is written on. Returns its partitions as they are without a seal.
    ///
    /// # Errors
    /// Those of the server. If there was no answer, it is unknown whether the store has moved.
    pub async fn finish(&self, unseal: bool) -> Result<Vec<SealedPartition>, Failure> {
        let answer = self
            .send("finish", json!({"unseal": unseal}))
            .await
            .map_err(|refused| {
                let unknown = "; it is unknown whether it is still sealed, `bolide unseal` lets it be written";
                let more = if refused.status.is_none() { unknown } else { "" };
                Failure::new(format!("{}{more}", refused.message))
            })?;
        sealed(&answer).ok_or_else(|| unexpected("partitions"))
    }

    /// Gives the copy up. If that fails, its lease ends.
    pub async fn end(&self) {
        let route = format!("copies/{}", self.id);
        let _ = on_a_thread(&self.client, move |client| client.delete(&route)).await;
    }

    /// Asks several times if a later attempt may succeed. Returns the last answer, and whether others were before it.
    async fn again<T, F>(&self, ask: impl Fn() -> F) -> (Result<T, Refused>, bool)
    where
        F: Future<Output = Result<T, Refused>>,
    {
        let mut tries = 1;
        loop {
            match ask().await {
                Err(refused) if is_passing(&refused) && tries < TRIES => tries += 1,
                answer => return (answer, tries > 1),
            }
            self.clock.sleep(TRY_AGAIN).await;
        }
    }

    async fn send(&self, route: &str, body: Value) -> Result<Value, Refused> {
        let route = format!("copies/{}/{route}", self.id);
        on_a_thread(&self.client, move |client| client.send(&route, Some(&body))).await
    }

    async fn page(&self, route: &str, body: Value) -> Result<Bytes, Refused> {
        let route = format!("copies/{}/{route}", self.id);
        on_a_thread(&self.client, move |client| client.send_for_bytes(&route, &body)).await
    }
}

/// Whether a later attempt may succeed.
fn is_passing(refused: &Refused) -> bool {
    matches!(refused.status, None | Some(408 | 429 | 449 | 503))
}

/// Sends a request on a thread for those that wait.
async fn on_a_thread<T: Send + 'static>(
    client: &Arc<AdminClient>,
    send: impl FnOnce(&AdminClient) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let client = client.clone();
    let sent = tokio::task::spawn_blocking(move || send(&client)).await;
    sent.unwrap_or_else(|_| {
        Err(Refused {
            status: None,
            message: "a request could not be sent".to_owned(),
        })
    })
}

fn decode(page: Bytes) -> Result<CopyPage, Failure> {
    CopyPage::decode(page).map_err(|error| Failure::new(format!("--from: {error}")))
}

fn sealed(answer: &Value) -> Option<Vec<SealedPartition>> {
    let partitions = answer["partitions"].as_array()?.iter().map(|partition| {
        Some(SealedPartition {
            id: PartitionId(partition["id"].as_u64()?),
            head: Head {
                lsn: Lsn(partition["lsn"].as_u64()?),
                stamp: UnixMillis(partition["stampMs"].as_i64()?),
                edition: Edition(partition["edition"].as_u64()?),
            },
            items: partition["items"].as_u64(),
        })
    });
    partitions.collect()
}
