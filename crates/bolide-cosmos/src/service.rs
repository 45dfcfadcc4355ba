//! The steps of a request.
//!
//!   1. [`CosmosService::handle`] gives it an activity id and starts measuring its duration.
//!   2. The name in its address and the origin of the web page that sent it are checked ([`crate::names`]).
//!   3. Its path is parsed ([`crate::routes`]); the admin API, the certificate and the data explorer are handled separately.
//!   4. The sender is authenticated ([`crate::auth`]); before that nothing about existing resources is disclosed.
//!   5. Verb, path and headers determine an [`Operation`], and the sender's rights to it are checked ([`crate::admission`]).
//!   6. Only now the body is read, within the memory budget ([`crate::request_body`]).
//!   7. [`crate::operations`] reads the rest from the wire, calls the core and writes the response.
//!   8. The response keeps its share of memory until it is sent, and the headers of every response are added, to errors too.
//!   9. The request is logged ([`crate::request_log`]).

mod frames;

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{Account, AnsweredRequest, MemoryShare, Protocol};
use bolide_model::account_key::WELL_KNOWN_KEY;
use bolide_model::rid::ContainerRid;
use bolide_model::{Error, ErrorKind, limits};
use bytes::Bytes;
use http::header;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};

use crate::admin::{self, Admin};
use crate::admission::{self, Admitted};
use crate::direct::FromFrame;
use crate::forwarding::{self, FromPeer, Opening, Outcome, Sent};
use crate::keys::Keys;
use crate::listener::{Listener, Purpose};
use crate::operation::Operation;
use crate::operations::account_root;
use crate::rate_limit::RateLimit;
use crate::request::Call;
use crate::request_body::{Counted, Received, Refused, RequestBody, readable, working_bytes};
use crate::routes::{PathKind, Route};
use crate::snapshots::Snapshots;
use crate::state::{CosmosOptions, Emulation, State};
use crate::status::{self, Failure};
use crate::wire::{Payload, Reply, headers, scope};
use crate::{addressing, auth, common_headers, explorer, health, names, operations, request_log};

/// Maximum length of an error message; for clients without a key, which may leave errors unread, it is shorter.
const MESSAGE_BYTES: usize = 64 * 1024;
const MESSAGE_BYTES_FOR_UNKNOWN: usize = 1024;
/// Maximum bytes of the definition of a database, container, user, permission, offer or key. They stay in memory.
const DEFINITION_BYTES: usize = 64 * 1024;

/// The message for clients in direct mode.
const GATEWAY_MODE_ONLY: &str = "this server speaks gateway mode only; switch the client from direct to gateway mode \
                                 (.NET: `ConnectionMode.Gateway`, Java: `gatewayMode()`), or start the server without --no-direct";

/// A response, and the operation if it was determined.
type Answered = (Option<Operation>, Result<Reply, Failure>);

/// An account with a front end in the protocol of Cosmos DB for NoSQL.
pub struct CosmosService {
    state: State,
    refusals: RateLimit,
    /// Rate limit of responses that need no key.
    public: RateLimit,
}

impl CosmosService {
    /// A front end for `account`, guarded by `keys`.
    pub fn new(account: Arc<Account>, keys: Keys, options: CosmosOptions) -> CosmosService {
        CosmosService {
            state: State::new(account, keys, options),
            refusals: RateLimit::default(),
            public: RateLimit::default(),
        }
    }

    /// The front end for another account in the place of this one, with its own snapshots. Metrics and injected faults go on.
    #[must_use]
    pub fn successor(&self, account: Arc<Account>, snapshots: Option<Arc<dyn Snapshots>>) -> CosmosService {
        CosmosService {
            state: self.state.successor(account, snapshots),
            refusals: RateLimit::default(),
            public: RateLimit::default(),
        }
    }

    /// Whether requests wait for memory.
    pub fn is_memory_short(&self) -> bool {
        self.state.account.memory().is_short()
    }

    /// Handles a request. Never fails: every error becomes a response in the format that clients parse.
    ///
    /// The body is read if its head was admitted, and dismissed otherwise.
    pub async fn handle<B: RequestBody>(&self, request: Request<B>, listener: Listener) -> Response<Payload> {
        let (head, body) = request.into_parts();
        let (reply, _) = self.reply(&head, body, listener).await;
        reply.into_response()
    }

    /// The response to a request, and its operation if it was determined: then the sender has shown a key.
    async fn reply<B: RequestBody>(&self, head: &Parts, body: B, listener: Listener) -> (Reply, Option<Operation>) {
        let started = self.state.account.monotonic().now();
        let activity_id = common_headers::activity_id(&head.headers);
        let id = headers::ascii(&activity_id).unwrap_or_default();
        // The server that has forwarded a request has checked where that came from.
        let is_from_peer = head.extensions.get::<FromPeer>().is_some();
        let opens_to_peer = !is_from_peer && listener.purpose == Purpose::Database && forwarding::is_opening(head);
        let frame = head.extensions.get::<FromFrame>();
        let source = match frame {
            _ if is_from_peer || opens_to_peer => Ok(None),
            None => self.check_source(head, listener),
            Some(frame) => match &frame.carrier {
                None => Ok(None),
                // Its web page gets no frame to read, and is not told that it may.
                Some(carrier) => self.check_source(carrier, listener).map(|_| None),
            },
        };
        let (page, (operation, answer)) = match source {
            _ if opens_to_peer => (None, (None, self.open_to_peer(head, body).await)),
            Ok(Some(page)) if names::is_preflight(head) => {
                body.dismiss(Refused::Unknown);
                (Some(page), (None, Ok(names::preflight(&head.headers))))
            }
            Ok(page) => (page, self.answer(head, body, listener, id).await),
            Err(failure) => (None, (None, Err(self.refuse_unknown(body, failure).await))),
        };
        let mut reply = answer.unwrap_or_else(|failure| Reply::failure(&failure.cut_to(MESSAGE_BYTES), id));
        let duration = self.state.account.monotonic().since(started);
        if frame.is_some() {
            common_headers::add_for_frame(&mut reply, duration);
        } else if !is_from_peer {
            // The other server adds its own.
            common_headers::add(&mut reply, head, listener, activity_id.clone(), duration);
        }
        if let Some(page) = page {
            names::allow_origin(&mut reply, page);
        }
        request_log::answered(head, &reply, &activity_id, duration, self.state.options.log_headers);
        if let Some(operation) = operation {
            self.state.metrics.observe(operation, &reply, duration);
        }
        if is_of_the_protocol(head, listener.purpose) {
            self.note(head, operation, &reply, duration);
        }
        if head.method == Method::HEAD {
            reply.payload = Payload::Whole(Bytes::new());
        }
        (reply, operation)
    }

    /// Keeps a request of the protocol with its answer, for people who look at the server.
    fn note(&self, head: &Parts, operation: Option<Operation>, reply: &Reply, duration: Duration) {
        let sub_status = reply.headers.get(&headers::SUB_STATUS);
        let sub_status = sub_status.and_then(headers::number);
        self.state.options.recent_requests.note(&AnsweredRequest {
            protocol: Protocol::Cosmos,
            at: self.state.account.server_time(),
            method: head.method.as_str(),
            path: head.uri.path(),
            operation: operation.map(Operation::name),
            status: reply.status.as_u16().into(),
            sub_status: sub_status.unwrap_or(0),
            charge: reply.charge,
            duration,
        });
    }

    /// Delays the refusal of a client without a key, by the rate limit.
    async fn refuse_unknown<B: RequestBody>(&self, body: B, failure: Failure) -> Failure {
        if body.dismiss(Refused::Unknown) {
            self.refusals.wait(self.state.account.monotonic()).await;
        }
        failure.cut_to(MESSAGE_BYTES_FOR_UNKNOWN)
    }

    /// Delays a public response, by the rate limit.
    async fn delay_public<B: RequestBody>(&self, body: B) {
        if body.dismiss(Refused::Unknown) {
            self.public.wait(self.state.account.monotonic()).await;
        }
    }

    /// Checks the name in the address of a request and the origin of its web page; returns the origin if it is an allowed one.
    fn check_source<'h>(&self, head: &'h Parts, listener: Listener) -> Result<Option<&'h HeaderValue>, Failure> {
        names::check_name(&self.state.options.names, head)?;
        names::check_origin(&self.state.options.origins, head, listener)
    }

    async fn answer<B: RequestBody>(&self, head: &Parts, body: B, listener: Listener, activity_id: &str) -> Answered {
        let Some(route) = Route::parse(head.uri.path()) else {
            body.dismiss(Refused::Unknown);
            let failure = Failure::bad_request("the path is not UTF-8 after percent-decoding");
            return (None, Err(failure));
        };
        if listener.purpose != Purpose::Health && route.kind == PathKind::Admin {
            return (None, self.answer_admin(head, body, &route).await);
        }
        if route.kind == PathKind::Addresses && self.state.options.has_direct && listener.purpose == Purpose::Database {
            return (None, self.answer_addresses(head, body, listener).await);
        }
        if let Some(answer) = self.public_response(head, listener, &route) {
            self.delay_public(body).await;
            return (None, answer);
        }
        let whole = admission::item_path_with_query(head, &route);
        match admission::admit(&self.state, head, route, whole.as_deref()) {
            Ok(admitted) => self.answer_admitted(head, body, listener, activity_id, admitted).await,
            Err((Refused::Unknown, failure)) => (None, Err(self.refuse_unknown(body, failure).await)),
            Err((Refused::Known, failure)) => {
                body.dismiss(Refused::Known);
                // A token that was refused as expired must not be valid again after a crash.
                self.state.account.make_second_durable().await;
                (None, Err(failure))
            }
        }
    }

    /// The response for requests that need no key.
    fn public_response(&self, head: &Parts, listener: Listener, route: &Route<'_>) -> Option<Result<Reply, Failure>> {
        if listener.purpose == Purpose::Health {
            let running = admin::running(&self.state);
            return Some(health::answer(&head.method, head.uri.path(), &running, true));
        }
        let options = &self.state.options;
        let has_explorer = options.has_explorer;
        match route.kind {
            PathKind::Certificate => Some(self.certificate()),
            _ if !has_explorer && explorer::is_page(route) => {
                let failure = Failure::new(status::NOT_FOUND, "the explorer is switched off");
                Some(Err(failure))
            }
            kind if has_explorer && explorer::is_requested(head, kind, listener.purpose) => {
                Some(self.explorer(head, listener, &route.leaf))
            }
            // Tools that wait for the official emulator ask without a key.
            PathKind::Account
                if options.emulation.is_some() && head.method == Method::GET && auth::is_unsigned(head) =>
            {
                Some(Ok(account_root::properties(options, head, listener)))
            }
            // Whatever the signature: clients sign this path in an unknown way, and a 401 would make users doubt their key.
            PathKind::Addresses if !auth::is_unsigned(head) => Some(Err(Failure::bad_request(GATEWAY_MODE_ONLY))),
            _ => None,
        }
    }

    async fn answer_admitted<B: RequestBody>(
        &self,
        head: &Parts,
        body: B,
        listener: Listener,
        activity_id: &str,
        admitted: Admitted<'_>,
    ) -> Answered {
        let operation = admitted.operation;
        let limit = if operation.has_definition_body() {
            DEFINITION_BYTES
        } else {
            limits::ITEM_BYTES
        };
        let reply = match self.receive(head, body, limit).await {
            Ok(received) => self.run(head, received, listener, activity_id, admitted).await,
            Err(failure) => Err(failure),
        };
        (Some(operation), reply)
    }

    /// Carries out a request after its body was read.
    async fn run(
        &self,
        head: &Parts,
        mut received: Received,
        listener: Listener,
        activity_id: &str,
        admitted: Admitted<'_>,
    ) -> Result<Reply, Failure> {
        let Admitted {
            route,
            operation,
            sender,
        } = admitted;
        let has_pre_trigger = !operation.is_read() && head.headers.contains_key(&headers::PRE_TRIGGERS);
        let working = working_bytes(&received.bytes, operation, has_pre_trigger);
        self.reserve_working_memory(head.version, &mut received, working)
            .await?;
        if let Some(fault) = self.state.faults.take(operation, &head.method, &route) {
            fault.apply().await?;
        }
        // Another server may have made what is not known here, or changed a definition.
        let account = &self.state.account;
        let is_shared = account.has_shared_store();
        if is_shared && (!operation.is_on_items() || addressing::known_container(account, &route).is_none()) {
            account.refresh_catalog().await?;
        }
        self.check_meant_container(head, &route)?;
        let container = is_shared
            .then(|| addressing::known_container(account, &route))
            .flatten();
        let Received { bytes: body, share } = received;
        // Between servers there is no TLS.
        let may_forward =
            is_shared && operation.is_forwardable() && !listener.is_tls && head.extensions.get::<FromPeer>().is_none();
        // Boxed: the future of nearly all requests stays as small as it is without.
        if may_forward && let Some(forwarded) = Box::pin(self.forward(head, &body, activity_id, &route)).await {
            return self.bind(forwarded?, head.version, share, Some(operation)).await;
        }
        let call = Call {
            state: &self.state,
            ctx: account.begin().await?,
            operation,
            sender,
            route,
            head,
            body: &body,
            listener,
            activity_id,
        };
        let reply = match operations::run(&call).await {
            // Boxed: the future of nearly all requests stays as small as it is without.
            Err(failure) if is_shared && operation.is_on_items() => Box::pin(again(call, container, failure)).await?,
            reply => reply?,
        };
        self.bind(reply, head.version, share, Some(operation)).await
    }

    /// Lets another server carry out a write that it had better commit. `None`: it is carried out here.
    async fn forward(
        &self,
        head: &Parts,
        body: &Bytes,
        activity_id: &str,
        route: &Route<'_>,
    ) -> Option<Result<Reply, Failure>> {
        let forwarding = self.state.forwarding.as_ref()?;
        let is_small = body.len() <= forwarding::BODY_BYTES && head.headers.len() <= forwarding::HEADERS;
        if !is_small || headers::names_triggers(&head.headers) {
            return None;
        }
        let account = &self.state.account;
        let container = account.container_by_names(&route.database, &route.container)?;
        let key = scope::partition_key(&head.headers, &container).ok()??;
        let writer = account.writer_elsewhere(&container, &key)?;
        // Asked last: it decodes the token once more.
        if auth::shows_a_key(head) {
            return None;
        }
        let sent = Sent {
            head,
            activity_id,
            body,
        };
        match forwarding.send(writer, sent).await {
            Outcome::Answered(response) => Some(Ok(Reply::forwarded(response))),
            Outcome::NotSent => None,
            Outcome::Unknown => {
                let message = "the outcome of the write is unknown: the server that was to commit it has not answered";
                Some(Err(Error::new(ErrorKind::Timeout, message).into()))
            }
        }
    }

    /// Lets another server of the store send requests on this connection. It needs the primary key.
    async fn open_to_peer<B: RequestBody>(&self, head: &Parts, body: B) -> Result<Reply, Failure> {
        let opening = Opening::of(&self.state.keys, &head.headers);
        let Some(opening) = opening.ok().filter(|opening| self.state.openings.accept(opening)) else {
            let why =
                "the sender has not shown a key of this account, or its clock differs much, or has shown it before";
            let failure = Failure::new(status::UNAUTHORIZED, why);
            return Err(self.refuse_unknown(body, failure).await);
        };
        let has_body = body.declared_bytes() != Some(0);
        body.dismiss(Refused::Known);
        if self.state.account.node_id().map(|own| own.to_string()).as_ref() != Some(&opening.node) {
            return Err(Failure::new(status::MISDIRECTED, "this is another server"));
        }
        if has_body || head.version != Version::HTTP_11 {
            return Err(Failure::bad_request("this is upgraded from HTTP/1.1, without a body"));
        }
        let mut reply = Reply::empty(StatusCode::SWITCHING_PROTOCOLS);
        reply.fixed(&header::CONNECTION, "upgrade");
        reply.fixed(&header::UPGRADE, forwarding::PROTOCOL);
        reply.header(&forwarding::MARK, opening.response_mark(&self.state.keys));
        Ok(reply)
    }

    async fn answer_admin<B: RequestBody>(&self, head: &Parts, body: B, route: &Route<'_>) -> Result<Reply, Failure> {
        let state = &self.state;
        if Admin::is_public(route) {
            self.delay_public(body).await;
            return Admin::new(state, head, &Bytes::new(), route, None).answer().await;
        }
        let access = match Admin::authenticate(state, head, route) {
            Ok(access) => Some(access),
            Err(failure) => return Err(self.refuse_unknown(body, failure).await),
        };
        if Admin::is_import(head, route) {
            let body = readable(head, body)?;
            let parts = body.parts(Counted::new(state.account.memory(), head.version));
            return Admin::new(state, head, &Bytes::new(), route, access)
                .import(parts)
                .await;
        }
        let mut received = self.receive(head, body, limits::ITEM_BYTES).await?;
        let working = working_bytes(&received.bytes, Operation::QueryItems, false);
        self.reserve_working_memory(head.version, &mut received, working)
            .await?;
        let reply = Admin::new(state, head, &received.bytes, route, access).answer().await?;
        self.bind(reply, head.version, received.share, None).await
    }

    /// Reads the body of an admitted request.
    async fn receive<B: RequestBody>(&self, head: &Parts, body: B, limit: usize) -> Result<Received, Failure> {
        let body = readable(head, body)?;
        let declared = usize::try_from(body.declared_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
        if declared > limit {
            body.dismiss(Refused::Known);
            return Err(Failure::too_large(declared, limit));
        }
        let counted = Counted::new(self.state.account.memory(), head.version);
        Ok(body.read(limit, counted).await?)
    }

    /// Reserves memory for data made from a body.
    async fn reserve_working_memory(
        &self,
        version: Version,
        received: &mut Received,
        working: usize,
    ) -> Result<(), Failure> {
        let counted = Counted::new(self.state.account.memory(), version);
        let bytes = received.bytes.len().saturating_add(working);
        Ok(counted.grow_to_final(&mut received.share, bytes).await?)
    }

    /// Binds a response to its memory until it is sent.
    async fn bind(
        &self,
        mut reply: Reply,
        version: Version,
        share: Option<MemoryShare>,
        operation: Option<Operation>,
    ) -> Result<Reply, Failure> {
        if let Payload::Whole(bytes) = &mut reply.payload {
            let counted = Counted::new(self.state.account.memory(), version);
            *bytes = counted.bind(std::mem::take(bytes), share, operation).await?;
        }
        Ok(reply)
    }

    /// The data explorer's page, or another of its files.
    fn explorer(&self, head: &Parts, listener: Listener, name: &str) -> Result<Reply, Failure> {
        let configured = self.state.options.endpoint.as_ref();
        let endpoint = match self.state.options.emulation {
            Some(Emulation { port, is_tls, .. }) if listener.purpose == Purpose::Explorer => {
                names::endpoint_on_port(configured, head, listener, is_tls, port)
            }
            _ => names::endpoint(configured, head, listener),
        };
        let is_public = self.state.keys.holder(WELL_KNOWN_KEY.as_bytes()).is_some();
        let session = explorer::Session {
            endpoint: &endpoint,
            key: is_public.then_some(WELL_KNOWN_KEY),
        };
        explorer::answer(head, name, &session)
    }

    fn certificate(&self) -> Result<Reply, Failure> {
        let pem = self.state.options.certificate_pem.clone();
        let pem = pem.ok_or_else(|| Failure::new(status::NOT_FOUND, "this server has no certificate"))?;
        let mut reply = Reply::json(StatusCode::OK, pem);
        reply.fixed(&headers::CONTENT_TYPE, "application/x-pem-file");
        Ok(reply)
    }
}

/// Carries out a request again if another server has deleted its container, which was `container`, and has made another one of its name.
async fn again(mut call: Call<'_>, container: Option<ContainerRid>, failure: Failure) -> Result<Reply, Failure> {
    let account = &call.state.account;
    let is_read = failure.status.http == StatusCode::NOT_FOUND && account.refresh_catalog().await.is_ok();
    let now = addressing::known_container(account, &call.route);
    if !is_read || now.is_none() || now == container {
        return Err(failure);
    }
    call.ctx = account.begin().await?;
    operations::run(&call).await
}

/// Whether a request is one of the protocol: none of the admin API, for the page of the explorer or its files, for the health of the server, or a preflight.
fn is_of_the_protocol(head: &Parts, purpose: Purpose) -> bool {
    let path = head.uri.path();
    let is_for_page = path == "/" && auth::is_unsigned(head);
    let is_of_others = path.starts_with("/_bolide") || path.starts_with("/_explorer") || is_for_page;
    purpose != Purpose::Health && !is_of_others && head.method != Method::OPTIONS
}
