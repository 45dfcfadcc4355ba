//! Requests in direct mode: where they are sent, and those that come as frames.

use bolide_model::partition_key::PartitionKey;
use bolide_rntbd::frame::ActivityId;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use super::CosmosService;
use crate::addressing;
use crate::direct::{self, FrameRequest, Position, addresses};
use crate::listener::Listener;
use crate::request_body::{Refused, RequestBody};
use crate::routes::Route;
use crate::status::Failure;
use crate::wire::{Reply, headers};

impl CosmosService {
    /// Where clients in direct mode send frames.
    pub(super) async fn answer_addresses<B: RequestBody>(
        &self,
        head: &Parts,
        body: B,
        listener: Listener,
    ) -> Result<Reply, Failure> {
        match addresses::answer(&self.state, head, listener) {
            Err(failure) if failure.status.http == StatusCode::UNAUTHORIZED => {
                Err(self.refuse_unknown(body, failure).await)
            }
            answer => {
                body.dismiss(Refused::Known);
                answer
            }
        }
    }

    /// Handles the request of a frame. `None`: its response is longer than a frame can be.
    pub async fn handle_frame<B: RequestBody>(
        &self,
        frame: FrameRequest,
        activity_id: ActivityId,
        body: B,
        listener: Listener,
    ) -> Option<(Bytes, Bytes)> {
        let (number, means_container) = (frame.transport_request_id, frame.means_container);
        let uri = frame.request.uri().clone();
        let key = frame.request.headers().get(&headers::PARTITION_KEY).cloned();
        let range = frame.request.headers().get(&headers::PARTITION_KEY_RANGE_ID).cloned();
        let response = self.handle(frame.request.map(|()| body), listener).await;
        let is_positioned = response.headers().contains_key(&headers::LSN);
        let is_unknown = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let position = match is_positioned || is_unknown {
            true => Position::default(),
            false => self
                .position(uri.path(), key.as_ref(), range.as_ref())
                .await
                .unwrap_or_default(),
        };
        direct::to_frame(response, activity_id, number, means_container, position)
    }

    /// Where the range of a request is: that of its partition key, or the one that it names, or the first one of its container.
    async fn position(&self, path: &str, key: Option<&HeaderValue>, range: Option<&HeaderValue>) -> Option<Position> {
        let account = &self.state.account;
        let route = Route::parse(path)?;
        let container = addressing::container(account, &route).ok()?;
        let key = key
            .and_then(headers::ascii)
            .and_then(|key| PartitionKey::from_header(key).ok());
        if let Some(key) = key.and_then(|key| container.properties().partition_key.meant_by(key))
            && let Ok(position) = account.position(&container, &key).await
        {
            let (range, lsn) = (position.range, position.lsn.0);
            return Some(Position { range, lsn });
        }
        let ranges = container.ranges().ranges;
        let named = range
            .and_then(headers::ascii)
            .and_then(|range| range.parse::<u32>().ok());
        let found = ranges.iter().find(|range| Some(range.id) == named).or(ranges.first())?;
        Some(Position {
            range: found.id,
            lsn: found.lsn.0,
        })
    }
}
