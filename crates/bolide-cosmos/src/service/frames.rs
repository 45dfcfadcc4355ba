//! Requests in direct mode: where they are sent, and those that come as frames.

use bolide_model::ErrorKind;
use bolide_model::partition_key::PartitionKey;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};

use super::{CosmosService, MESSAGE_BYTES_FOR_UNKNOWN};
use crate::direct::{self, FrameRequest, FromFrame, Position, RefusedFrame, ReplyTo, addresses};
use crate::listener::Listener;
use crate::request_body::{Refused, RequestBody};
use crate::routes::Route;
use crate::status::{self, Failure};
use crate::wire::{Reply, headers, scope};
use crate::{addressing, request_log};

impl CosmosService {
    /// Where clients in direct mode send frames.
    pub(super) async fn answer_addresses<B: RequestBody>(
        &self,
        head: &Parts,
        body: B,
        listener: Listener,
    ) -> Result<Reply, Failure> {
        match addresses::answer(&self.state, head, listener).await {
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
        body: B,
        listener: Listener,
    ) -> Option<(Vec<u8>, Bytes)> {
        let FrameRequest { request, reply_to } = frame;
        let (head, ()) = request.into_parts();
        let (mut reply, operation) = self.reply(&head, body, listener).await;
        let is_barrier = head.method == Method::HEAD;
        if is_barrier {
            // The question is how far the range is, not the container's definition.
            reply.remove(&headers::LSN);
            reply.remove(&headers::SESSION_TOKEN);
        }
        let is_read = is_barrier || head.method == Method::GET || headers::is_query(&head.headers);
        if !is_read && reply.status.is_success() {
            // A reader that sees the write is further than the quorum was when it was answered.
            acknowledge_the_one_before(&mut reply);
        }
        let known_to_sender = reply_to.position;
        let is_known = operation.is_some() && reply.status != StatusCode::FORBIDDEN;
        let position = match is_known && reply.value_of(&headers::LSN).is_none() {
            true => self.position(&head).await,
            false => None,
        };
        // Who may not know where the range is gets back what it knows already.
        let mut position = position.unwrap_or(known_to_sender);
        if position.range == known_to_sender.range && !is_session_not_available(&reply) {
            // With less it would take this for a replica that is behind: the container may be another one, or another server may have written.
            position.lsn = position.lsn.max(known_to_sender.lsn);
        }
        direct::reply_to_frame(reply, ReplyTo { position, ..reply_to })
    }

    /// Refuses a request of a frame whose sender means another container than the one that has the name now.
    ///
    /// # Errors
    /// 410/1000.
    pub(super) fn check_meant_container(&self, head: &Parts, route: &Route<'_>) -> Result<(), Failure> {
        let frame = head.extensions.get::<FromFrame>();
        let Some(meant) = frame.and_then(|frame| frame.container.as_ref()) else {
            return Ok(());
        };
        match addressing::container(&self.state.account, route) {
            Ok(container) if container.rid().to_string() != *meant => {
                let message = "the container was deleted, and created again";
                Err(Failure::new(status::NAME_IS_STALE, message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a frame that is no request; after a delay if its sender has shown no key. `None`: as [`CosmosService::handle_frame`].
    pub async fn refuse_frame(&self, refused: RefusedFrame, is_known: bool) -> Option<(Vec<u8>, Bytes)> {
        let started = self.state.account.monotonic().now();
        if !is_known {
            self.refusals.wait(self.state.account.monotonic()).await;
        }
        let duration = self.state.account.monotonic().since(started);
        let failure = Failure::bad_request(refused.why.0.clone()).cut_to(MESSAGE_BYTES_FOR_UNKNOWN);
        let id = direct::activity_text(refused.reply_to.activity_id);
        let reply = Reply::failure(&failure, headers::ascii(&id).unwrap_or_default());
        let head = refused.as_request();
        request_log::answered(&head, &reply, &id, duration, false);
        self.note(&head, None, &reply, duration);
        direct::reply_to_frame(reply, refused.reply_to)
    }

    /// Where the range of a request is: that of its partition key, or this one, or the first one of its container.
    async fn position(&self, head: &Parts) -> Option<Position> {
        let account = &self.state.account;
        let route = Route::parse(head.uri.path())?;
        let container = addressing::container(account, &route).ok()?;
        let used = head.extensions.get::<FromFrame>().and_then(|from| from.range);
        let range = scope::range(&head.headers).ok().flatten().or(used);
        let key = head.headers.get(&headers::PARTITION_KEY);
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
        let found = match range {
            Some(id) => ranges.iter().find(|known| known.id == id),
            None => ranges.first(),
        };
        // Of a range that is gone there is nothing to say but its name.
        Some(Position {
            range: range.or(found.map(|found| found.id))?,
            lsn: found.map_or(0, |found| found.lsn.0),
        })
    }
}

/// Says of a write that a quorum had the position before it.
fn acknowledge_the_one_before(reply: &mut Reply) {
    let lsn: Option<u64> = reply.value_of(&headers::LSN).and_then(headers::number);
    if let Some(before) = lsn.and_then(|lsn| lsn.checked_sub(1)) {
        reply.number(&headers::QUORUM_ACKED_LSN, before);
    }
}

/// Whether a response says that the server is behind what its client has seen.
fn is_session_not_available(reply: &Reply) -> bool {
    let status = status::of(&ErrorKind::SessionNotAvailable);
    let sub_status = reply.value_of(&headers::SUB_STATUS).and_then(headers::number);
    reply.status == status.http && sub_status == Some(status.sub)
}
