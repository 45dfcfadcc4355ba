//! Requests to a data directory, answered in this process as a server would.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bolide_cosmos::{ConsistencyLevel, CosmosOptions, CosmosService, Keys, Listener, Names, Origins, Payload, Purpose};
use bolide_model::account_key::AccountKey;
use bolide_model::time::Clock;
use bolide_transfer::Transport;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::local_store::LocalStore;
use crate::server::Failure;

/// Bytes of a part of an import.
const PART_BYTES: usize = 256 * 1024;

/// A store in this process.
pub struct InProcess {
    store: LocalStore,
    service: CosmosService,
    name: String,
}

impl InProcess {
    /// Answers for a store to requests that are signed with `key`.
    pub fn new(store: LocalStore, key: &AccountKey, name: String) -> InProcess {
        let options = CosmosOptions {
            clock: Arc::new(Clock::System),
            faults_enabled: false,
            certificate_pem: None,
            names: Names::All,
            origins: Origins::default(),
            consistency: ConsistencyLevel::Session,
            endpoint: None,
            log_headers: false,
            connections: Arc::default(),
            has_direct: false,
            has_gateway_v2: false,
            has_explorer: false,
            emulation: None,
            snapshots: None,
            peers: None,
            recent_requests: Arc::default(),
            mongo: None,
        };
        InProcess {
            service: CosmosService::new(store.account.clone(), Keys::new(key.clone()), options),
            store,
            name,
        }
    }

    /// Closes the store.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(&self) -> Result<(), Failure> {
        self.store.close()
    }
}

async fn whole(payload: Payload) -> Result<Vec<u8>, String> {
    match payload {
        Payload::Whole(bytes) => Ok(bytes.into()),
        Payload::Pages(mut pages) => {
            let mut body = Vec::new();
            while let Some(page) = pages.next().await {
                body.extend_from_slice(&page.map_err(|error| error.to_string())?);
            }
            Ok(body)
        }
    }
}

impl Transport for InProcess {
    fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, String> {
        let listener = Listener {
            purpose: Purpose::Database,
            is_tls: false,
            local: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        };
        self.store.runtime.block_on(async {
            let response = self.service.handle(request.map(Bytes::from), listener).await;
            let (head, payload) = response.into_parts();
            Ok(Response::from_parts(head, whole(payload).await?))
        })
    }

    fn import_lines(&self, request: Request<()>, lines: &mut dyn Read) -> Result<Response<Vec<u8>>, String> {
        let ids = request.uri().path().split('/').skip(2);
        let ids: Vec<_> = ids.map(|id| percent_decode_str(id).decode_utf8_lossy()).collect();
        let [_, database, _, container, _] = ids.as_slice() else {
            return Err("no path of an import".to_owned());
        };
        let account = &self.store.account;
        let found = account.database_by_name(database);
        let found = found.and_then(|database| account.container_by_name(database.rid, container));
        let parts = stream::iter(std::iter::from_fn(|| part_of(lines)));
        let imported = found.and_then(|found| self.store.runtime.block_on(account.import(&found, parts)));
        let (status, body) = match imported {
            Ok(imported) => (StatusCode::OK, json!({"imported": imported})),
            Err(error) => {
                let body = json!({"code": "BadRequest", "message": error.to_string()});
                (StatusCode::BAD_REQUEST, body)
            }
        };
        let mut response = Response::new(body.to_string().into_bytes());
        *response.status_mut() = status;
        Ok(response)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The next part of an import; `None` at its end.
fn part_of(lines: &mut dyn Read) -> Option<bolide_model::Result<Bytes>> {
    let mut part = vec![0; PART_BYTES];
    match lines.read(&mut part) {
        Ok(0) => None,
        Ok(count) => {
            part.truncate(count);
            Some(Ok(Bytes::from(part)))
        }
        Err(error) => Some(Err(bolide_model::Error::bad_request(error.to_string()))),
    }
}
