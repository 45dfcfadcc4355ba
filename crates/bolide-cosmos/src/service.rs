//! The life of a request.
//!
//!   1. [`CosmosService::handle`] gives it an activity id and starts the clock of its metrics.
//!   2. The name it was sent to and the origin of the web page that sent it are looked at ([`crate::names`]).
//!   3. Its path is taken apart ([`crate::routes`]); the admin API, the certificate and the page for browsers go their own ways.
//!   4. The sender is authenticated ([`crate::auth`]); only then is anything said about what exists.
//!   5. Verb, place and headers name an [`Operation`], and the sender's rights to it are checked.
//!   6. Only now the body is read, under the budget of memory ([`crate::request_body`]).
//!   7. [`crate::operations`] reads the rest from the wire, calls the core and writes the answer.
//!   8. The answer takes its share of memory until it is sent, and headers that every answer has are added, refusals included.
//!   9. The log gets its line ([`crate::request_log`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bolide_core::{Account, Container, ContainerInfo, MemoryShare, RequestContext};
use bolide_model::limits;
use bolide_model::rid::ContainerRid;
use bolide_model::time::Clock;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use parking_lot::RwLock;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::admin::Admin;
use crate::auth::Sender;
use crate::consistency::ConsistencyLevel;
use crate::decoding::Decoding;
use crate::faults::FaultRules;
use crate::keys::{Access, Keys, WELL_KNOWN_KEY};
use crate::metrics::Metrics;
use crate::names::{self, Endpoint, Names, Origins};
use crate::operation::Operation;
use crate::pace::Pace;
use crate::request_body::{Counted, Received, Refused, RequestBody, working_bytes};
use crate::routes::{Place, Route};
use crate::status::{self, FORBIDDEN, Failure};
use crate::wire::{Payload, Reply, headers};
use crate::{auth, explorer, operations, request_log};

/// Most bytes of all headers together. Session and continuation tokens stay far below.
const HEADER_BYTES: usize = 64 * 1024;
/// Longest message of a refusal; for whoever has not shown a key, who may leave refusals lying.
const MESSAGE_BYTES: usize = 64 * 1024;
const MESSAGE_BYTES_FOR_UNKNOWN: usize = 1024;
/// Most bytes of the definition of a database, container, user, permission, offer or key. They stay in memory.
const DEFINITION_BYTES: usize = 64 * 1024;
/// Longest path: the longest ids there may be, all of their bytes percent-encoded, take less.
const PATH_BYTES: usize = 16 * 1024;
/// The first version of the API with partitioned containers.
const FIRST_VERSION: &str = "2015-12-16";
/// Longest activity id that is echoed.
const ACTIVITY_ID_BYTES: usize = 64;

/// What clients in direct mode are told.
const GATEWAY_MODE_ONLY: &str = "this server speaks gateway mode only; switch the client from direct to gateway mode \
                                 (.NET: `ConnectionMode.Gateway`, Java: `gatewayMode()`)";

/// Pages of exports that are made at one time: each takes memory for itself.
const EXPORTS: usize = 2;

/// Most containers whose [`ContentPaths`] are kept.
const CONTENT_PATHS: usize = 10_000;
/// What names need for a header: everything outside ASCII, and what would not survive unescaping.
const NAME_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'"').add(b'<').add(b'>').add(b'`');

/// What a server decides about its front end.
#[derive(Debug, Clone)]
pub struct CosmosOptions {
    /// The clock behind server time, for the admin API to show and move.
    pub clock: Arc<Clock>,
    /// Whether the admin API may inject faults.
    pub faults_enabled: bool,
    /// The certificate of the HTTPS listener, for clients to trust.
    pub certificate_pem: Option<Bytes>,
    /// Under which names the server answers.
    pub names: Names,
    /// Origins of web pages that may ask.
    pub origins: Origins,
    /// The default level, and the strongest that a request may ask for.
    pub consistency: ConsistencyLevel,
    /// Where clients are told to reach the server; where they did, if `None`.
    pub endpoint: Option<Endpoint>,
    /// Whether the log shows the headers of requests and answers, for debugging clients.
    pub log_headers: bool,
    /// How many connections are open, for the metrics.
    pub connections: Arc<AtomicUsize>,
}

/// The listener that a request came through.
#[derive(Debug, Clone, Copy)]
pub struct Listener {
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// The address the client reached.
    pub local: std::net::SocketAddr,
}

impl Listener {
    /// The scheme, host and port that the client used: SDKs follow what stands there, also through port mappings.
    pub(crate) fn origin(&self, head: &Parts) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        match names::authority(head) {
            Ok(Some(authority)) => format!("{scheme}://{authority}"),
            _ => format!("{scheme}://{}", self.local),
        }
    }
}

/// An account, spoken to in the protocol of Cosmos DB for NoSQL.
pub struct CosmosService {
    pub(crate) account: Arc<Account>,
    pub(crate) keys: Keys,
    pub(crate) options: CosmosOptions,
    pub(crate) metrics: Metrics,
    pub(crate) faults: FaultRules,
    content_paths: RwLock<HashMap<ContainerRid, ContentPaths>>,
    /// Whose turn it is to go through the figures of all containers.
    figures: Semaphore,
    refusals: Pace,
    /// Of what is answered to everybody.
    public: Pace,
    pub(crate) decoding: Decoding,
    /// Pages of exports that are made at one time.
    pub(crate) exports: Arc<Semaphore>,
}

/// How answers name a container: by these, clients file their session tokens (cosmos-rest §9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentPaths {
    /// By names, percent-encoded.
    pub alternative: HeaderValue,
    /// By resource id.
    pub rid: HeaderValue,
}

/// The database of a container by its name, percent-encoded, as answers about the container give it.
///
/// Java's SDK makes the container's own link of it, without which its change feed does not start.
pub(crate) fn owner_path(container: &ContainerInfo) -> String {
    format!("dbs/{}", utf8_percent_encode(&container.database_id, NAME_ESCAPES))
}

impl ContentPaths {
    fn of(container: &ContainerInfo) -> ContentPaths {
        let id = utf8_percent_encode(&container.properties.id, NAME_ESCAPES);
        let alternative = format!("{}/colls/{id}", owner_path(container));
        ContentPaths {
            alternative: HeaderValue::try_from(alternative).expect("what is percent-encoded is visible ASCII"),
            rid: HeaderValue::try_from(container.rid.to_string()).expect("base64 is visible ASCII"),
        }
    }
}

/// A request that was let in, on its way through an operation.
pub(crate) struct Call<'r> {
    pub service: &'r CosmosService,
    pub ctx: RequestContext,
    pub operation: Operation,
    pub sender: Sender,
    pub route: Route<'r>,
    pub head: &'r Parts,
    pub body: &'r Bytes,
    pub listener: Listener,
    pub activity_id: &'r str,
}

impl Call<'_> {
    pub(crate) fn account(&self) -> &Account {
        &self.service.account
    }

    /// What is decoded of the body.
    pub(crate) async fn decoded<T>(&self, decode: impl FnOnce() -> T) -> T {
        self.service.decoding.run(self.body, decode).await
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }
}

impl CosmosService {
    /// A front end for `account`, guarded by `keys`.
    pub fn new(account: Arc<Account>, keys: Keys, options: CosmosOptions) -> CosmosService {
        CosmosService {
            account,
            keys,
            options,
            metrics: Metrics::default(),
            faults: FaultRules::default(),
            content_paths: RwLock::default(),
            figures: Semaphore::new(1),
            refusals: Pace::default(),
            public: Pace::default(),
            decoding: Decoding::default(),
            exports: Arc::new(Semaphore::new(EXPORTS)),
        }
    }

    /// Whether requests wait for memory that others hold.
    pub fn is_memory_short(&self) -> bool {
        self.account.memory().is_short()
    }

    /// The turn to go through the figures of all containers.
    pub(crate) async fn figures_turn(&self) -> SemaphorePermit<'_> {
        self.figures.acquire().await.expect("it is never closed")
    }

    /// Answers a request. Never fails: every error becomes an answer in the shape clients parse.
    ///
    /// The body is read if its head was admitted, and dismissed otherwise.
    pub async fn handle<B: RequestBody>(&self, request: Request<B>, listener: Listener) -> Response<Payload> {
        let started = self.account.monotonic().now();
        let (head, body) = request.into_parts();
        let activity_id = activity_id(&head.headers);
        let id = activity_id.to_str().unwrap_or_default();
        let (page, (operation, answer)) = match self.check_source(&head, listener) {
            Ok(Some(page)) if names::is_preflight(&head) => {
                body.dismiss(Refused::Unknown);
                (Some(page), (None, Ok(names::preflight(&head.headers))))
            }
            Ok(page) => (page, self.answer(&head, body, listener, id).await),
            Err(failure) => {
                self.refuse(body).await;
                (None, (None, Err(failure.cut_to(MESSAGE_BYTES_FOR_UNKNOWN))))
            }
        };
        let mut reply = answer.unwrap_or_else(|failure| Reply::failure(&failure.cut_to(MESSAGE_BYTES), id));
        let duration = self.account.monotonic().since(started);
        add_common_headers(&mut reply, &head, activity_id.clone(), duration);
        add_content_location(&mut reply, &head, listener);
        if let Some(page) = page {
            names::allow_origin(&mut reply, page);
        }
        request_log::answered(&head, &reply, &activity_id, duration, self.options.log_headers);
        if let Some(operation) = operation {
            self.metrics.observe(operation, &reply, duration);
        }
        if head.method == Method::HEAD {
            reply.payload = Payload::Whole(Bytes::new());
        }
        reply.into_response()
    }

    /// Lets whoever has not shown a key wait for the refusal.
    async fn refuse<B: RequestBody>(&self, body: B) {
        if body.dismiss(Refused::Unknown) {
            self.refusals.wait(self.account.monotonic()).await;
        }
    }

    /// Lets whoever asks for what everybody may have wait for it.
    async fn wait_for_public<B: RequestBody>(&self, body: B) {
        if body.dismiss(Refused::Unknown) {
            self.public.wait(self.account.monotonic()).await;
        }
    }

    /// Checks where a request was sent and from which web page, if it is of an origin that was allowed.
    fn check_source<'h>(&self, head: &'h Parts, listener: Listener) -> Result<Option<&'h HeaderValue>, Failure> {
        names::check_name(&self.options.names, head)?;
        names::check_origin(&self.options.origins, head, listener)
    }

    /// The answer, and the operation if it came so far.
    async fn answer<B: RequestBody>(
        &self,
        head: &Parts,
        body: B,
        listener: Listener,
        activity_id: &str,
    ) -> (Option<Operation>, Result<Reply, Failure>) {
        let Some(route) = Route::parse(head.uri.path()) else {
            body.dismiss(Refused::Unknown);
            return (
                None,
                Err(Failure::bad_request("the path is not UTF-8 after percent-decoding")),
            );
        };
        match route.place {
            Place::Admin => return (None, self.answer_admin(head, body, &route).await),
            Place::Certificate => {
                self.wait_for_public(body).await;
                return (None, self.certificate());
            }
            place if explorer::is_asked_for(head, place) => {
                self.wait_for_public(body).await;
                return (None, Ok(self.page(head, listener)));
            }
            // Whatever the signature: how clients sign this is nothing that is known here, and users would doubt their key.
            Place::Addresses if head.headers.get(AUTHORIZATION).is_some_and(|token| !token.is_empty()) => {
                self.wait_for_public(body).await;
                return (None, Err(Failure::bad_request(GATEWAY_MODE_ONLY)));
            }
            _ => {}
        }
        let whole = item_path_with_query(head, &route);
        let (route, admitted) = self.admit_either(head, route, whole.as_deref());
        let (operation, sender) = match admitted {
            Ok(admitted) => admitted,
            Err((Refused::Unknown, failure)) => {
                self.refuse(body).await;
                return (None, Err(failure.cut_to(MESSAGE_BYTES_FOR_UNKNOWN)));
            }
            Err((Refused::Known, failure)) => {
                body.dismiss(Refused::Known);
                // A token that was refused as expired must not be good again after a crash.
                self.account.make_second_durable().await;
                return (None, Err(failure));
            }
        };
        let limit = if operation.is_of_definition() {
            DEFINITION_BYTES
        } else {
            limits::ITEM_BYTES
        };
        let mut received = match self.receive(head, body, limit).await {
            Ok(received) => received,
            Err(failure) => return (None, Err(failure)),
        };
        let has_pre_trigger = !operation.is_read() && head.headers.contains_key(&headers::PRE_TRIGGERS);
        let working = working_bytes(&received.bytes, operation, has_pre_trigger);
        if let Err(failure) = self.make_room(head.version, &mut received, working).await {
            return (Some(operation), Err(failure));
        }
        if let Some(fault) = self.faults.take(operation, &head.method, &route)
            && let Err(failure) = fault.apply().await
        {
            return (Some(operation), Err(failure));
        }
        let ctx = match self.account.begin().await {
            Ok(ctx) => ctx,
            Err(error) => return (Some(operation), Err(error.into())),
        };
        let Received { bytes: body, share } = received;
        let call = Call {
            service: self,
            ctx,
            operation,
            sender,
            route,
            head,
            body: &body,
            listener,
            activity_id,
        };
        let reply = operations::run(&call).await;
        let reply = match reply {
            Ok(reply) => self.bind(reply, head.version, share, Some(operation)).await,
            Err(failure) => Err(failure),
        };
        (Some(operation), reply)
    }

    async fn answer_admin<B: RequestBody>(&self, head: &Parts, body: B, route: &Route<'_>) -> Result<Reply, Failure> {
        if Admin::is_public(route) {
            self.wait_for_public(body).await;
            return Admin::new(self, head, &Bytes::new(), route).answer().await;
        }
        if let Err(failure) = Admin::authenticate(self, head, route) {
            self.refuse(body).await;
            return Err(failure.cut_to(MESSAGE_BYTES_FOR_UNKNOWN));
        }
        if let Some(container) = Admin::import_target(head, route) {
            let body = readable(head, body)?;
            let parts = body.parts(Counted::new(self.account.memory(), head.version));
            return Admin::new(self, head, &Bytes::new(), route)
                .import(&container, parts)
                .await;
        }
        let mut received = self.receive(head, body, limits::ITEM_BYTES).await?;
        let working = working_bytes(&received.bytes, Operation::QueryItems, false);
        self.make_room(head.version, &mut received, working).await?;
        let reply = Admin::new(self, head, &received.bytes, route).answer().await?;
        self.bind(reply, head.version, received.share, None).await
    }

    /// As [`Self::admit`]. Where a signature is not for the path, it may be for the path with its query: the JavaScript SDK sends an item's
    /// id with a bare `?`, and signs it as it is.
    #[expect(clippy::type_complexity, reason = "what `admit` gives, and what it was given for")]
    fn admit_either<'p>(
        &self,
        head: &Parts,
        route: Route<'p>,
        whole: Option<&'p str>,
    ) -> (Route<'p>, Result<(Operation, Sender), (Refused, Failure)>) {
        let admitted = self.admit(head, &route);
        if !matches!(admitted, Err((Refused::Unknown, _))) {
            return (route, admitted);
        }
        let Some(with_query) = whole.and_then(Route::parse) else {
            return (route, admitted);
        };
        match self.admit(head, &with_query) {
            Err((Refused::Unknown, _)) => (route, admitted),
            signed => (with_query, signed),
        }
    }

    /// Checks everything that the head tells before the core is asked.
    fn admit(&self, head: &Parts, route: &Route<'_>) -> Result<(Operation, Sender), (Refused, Failure)> {
        let sender = self
            .identify(head, route)
            .map_err(|failure| (Refused::Unknown, failure))?;
        self.allow(sender, head, route)
            .map_err(|failure| (Refused::Known, failure))
    }

    fn identify(&self, head: &Parts, route: &Route<'_>) -> Result<Sender, Failure> {
        check_header_size(&head.headers)?;
        check_path_size(head.uri.path())?;
        check_version(&head.headers)?;
        let is_database = |name: &str| self.account.database_by_name(name).is_ok();
        auth::authenticate(&self.keys, head, route, is_database)
    }

    fn allow(&self, sender: Sender, head: &Parts, route: &Route<'_>) -> Result<(Operation, Sender), Failure> {
        let operation = Operation::of(route, &head.method, &head.headers)?;
        match &sender {
            Sender::Key(Access::Full) => {}
            Sender::Key(Access::ReadOnly) if operation.is_read() => {}
            Sender::Key(Access::ReadOnly) => {
                let message = format!("a read-only key cannot authorize {}", operation.name());
                return Err(Failure::new(FORBIDDEN, message));
            }
            Sender::Token(grant) => grant.check(&self.account, operation, route, &head.headers)?,
        }
        Ok((operation, sender))
    }

    /// Reads the body of a request that was admitted.
    async fn receive<B: RequestBody>(&self, head: &Parts, body: B, limit: usize) -> Result<Received, Failure> {
        let body = readable(head, body)?;
        let declared = usize::try_from(body.declared_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
        if declared > limit {
            body.dismiss(Refused::Known);
            return Err(too_large(declared, limit));
        }
        let counted = Counted::new(self.account.memory(), head.version);
        Ok(body.read(limit, counted).await?)
    }

    /// Takes memory for what is made of a body besides the body itself.
    async fn make_room(&self, version: Version, received: &mut Received, working: usize) -> Result<(), Failure> {
        let counted = Counted::new(self.account.memory(), version);
        let bytes = received.bytes.len().saturating_add(working);
        Ok(counted.settle(&mut received.share, bytes).await?)
    }

    /// Counts an answer until it is sent.
    async fn bind(
        &self,
        mut reply: Reply,
        version: Version,
        share: Option<MemoryShare>,
        operation: Option<Operation>,
    ) -> Result<Reply, Failure> {
        if let Payload::Whole(bytes) = &mut reply.payload {
            let counted = Counted::new(self.account.memory(), version);
            *bytes = counted.bind(std::mem::take(bytes), share, operation).await?;
        }
        Ok(reply)
    }

    fn page(&self, head: &Parts, listener: Listener) -> Reply {
        let endpoint = names::endpoint(self.options.endpoint.as_ref(), head, listener);
        let is_public = self.keys.holder(WELL_KNOWN_KEY.as_bytes()).is_some();
        explorer::page(&endpoint, is_public.then_some(WELL_KNOWN_KEY))
    }

    fn certificate(&self) -> Result<Reply, Failure> {
        let pem = self.options.certificate_pem.clone();
        let pem = pem.ok_or_else(|| Failure::new(status::NOT_FOUND, "this server has no certificate"))?;
        let mut reply = Reply::json(StatusCode::OK, pem);
        reply.fixed(&headers::CONTENT_TYPE, "application/x-pem-file");
        Ok(reply)
    }

    /// The headers that name a container. Neither its id nor its database's ever changes, so they are made once.
    pub(crate) fn content_paths(&self, container: &Container) -> ContentPaths {
        let rid = container.rid();
        if let Some(paths) = self.content_paths.read().get(&rid) {
            return paths.clone();
        }
        let paths = ContentPaths::of(&container.info());
        let mut known = self.content_paths.write();
        // Those of deleted containers go too, some time.
        if known.len() >= CONTENT_PATHS {
            known.clear();
        }
        known.insert(rid, paths.clone());
        paths
    }
}

/// Adds what every answer has (cosmos-rest §10).
fn add_common_headers(reply: &mut Reply, head: &Parts, activity_id: HeaderValue, duration: Duration) {
    let version = head.headers.get(&headers::VERSION).cloned();
    let version = version.unwrap_or_else(|| HeaderValue::from_static("2020-07-15"));
    reply.header(&headers::ACTIVITY_ID, activity_id);
    reply.header(&headers::VERSION, version);
    reply.fixed(&headers::GATEWAY_VERSION, "version=2.14.0");
    reply.fixed(&headers::SERVICE_VERSION, "version=2.14.0.0");
    reply.fixed(&headers::SCHEMA_VERSION, "1.19");
    reply.header(&headers::REQUEST_DURATION, milliseconds(duration));
}

/// Says where the representation that was read is, as the service does.
fn add_content_location(reply: &mut Reply, head: &Parts, listener: Listener) {
    if head.method != Method::GET || reply.status != StatusCode::OK {
        return;
    }
    // Python ends every path with a slash.
    let path = head.uri.path().trim_end_matches('/');
    reply.text(&headers::CONTENT_LOCATION, listener.origin(head) + path);
}

/// A duration in milliseconds, with three decimal places.
fn milliseconds(duration: Duration) -> HeaderValue {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    // From the last digit to the first: four at least, with a point before the last three.
    let mut text = [b'0'; 24];
    let (mut at, mut rest, mut digits) = (text.len(), micros, 0);
    while rest > 0 || digits < 4 {
        if digits == 3 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        digits += 1;
    }
    HeaderValue::from_bytes(&text[at..]).expect("digits and a point are visible ASCII")
}

/// The request's activity id, or a new one.
fn activity_id(headers: &HeaderMap) -> HeaderValue {
    let sent = headers.get(&headers::ACTIVITY_ID);
    let usable = sent.filter(|id| (1..=ACTIVITY_ID_BYTES).contains(&id.len()) && id.to_str().is_ok());
    usable.cloned().unwrap_or_else(new_activity_id)
}

fn new_activity_id() -> HeaderValue {
    let mut buffer = uuid::Uuid::encode_buffer();
    let id = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    HeaderValue::from_str(id).expect("a GUID is ASCII")
}

/// The path of an item with what stands behind a `?`, if something does.
fn item_path_with_query(head: &Parts, route: &Route<'_>) -> Option<String> {
    let query = head.uri.query().filter(|_| route.place == Place::Item)?;
    Some(format!("{}?{query}", head.uri.path()))
}

fn check_path_size(path: &str) -> Result<(), Failure> {
    if path.len() <= PATH_BYTES {
        return Ok(());
    }
    let message = format!("the path is too long. bytes={} limit={PATH_BYTES}", path.len());
    Err(Failure::new(status::URI_TOO_LONG, message))
}

fn check_header_size(headers: &HeaderMap) -> Result<(), Failure> {
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if size <= HEADER_BYTES {
        return Ok(());
    }
    let message = format!("the request's headers are too large. bytes={size} limit={HEADER_BYTES}");
    Err(Failure::new(status::HEADERS_TOO_LARGE, message))
}

/// A body whose codings are known.
fn readable<B: RequestBody>(head: &Parts, body: B) -> Result<B, Failure> {
    if body.declared_bytes() != Some(0)
        && let Err(failure) = check_codings(&head.headers)
    {
        body.dismiss(Refused::Known);
        return Err(failure);
    }
    Ok(body)
}

/// Refuses a body that is compressed or coded in another way: nothing here decodes it, and what it says is not what was sent.
///
/// Source: RFC 9112 section 6.1 has 501 for a transfer coding, RFC 9110 section 15.5.16 has 415 for a content coding.
fn check_codings(headers: &HeaderMap) -> Result<(), Failure> {
    let codings = |name| {
        let lines = headers.get_all(name).iter();
        let codings = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        codings.map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty())
    };
    let mut transfer = codings(TRANSFER_ENCODING);
    let is_chunked_once = transfer
        .next()
        .is_none_or(|coding| coding.eq_ignore_ascii_case(b"chunked"))
        && transfer.next().is_none();
    if !is_chunked_once {
        return Err(Failure::new(
            status::NOT_IMPLEMENTED,
            "the body has a transfer coding that this server does not know; send it with none, or `transfer-encoding: chunked`",
        ));
    }
    if codings(CONTENT_ENCODING).all(|coding| coding.eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    Err(Failure::new(
        status::UNSUPPORTED_MEDIA_TYPE,
        "the body has a content coding; send it uncompressed, without `content-encoding`",
    ))
}

/// Refuses what is no version of the API (cosmos-rest §0.3). Whoever sends none, as people with curl do, gets the usual one.
fn check_version(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(version) = headers::non_empty(headers, &headers::VERSION)? else {
        return Ok(());
    };
    let digits = |part: &str, count| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let mut parts = version.split('-');
    let is_date = [4, 2, 2]
        .iter()
        .all(|count| parts.next().is_some_and(|part| digits(part, *count)))
        && parts.next().is_none();
    if is_date && version >= FIRST_VERSION {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "header `{}` must be a date from {FIRST_VERSION} on. value=`{version}`",
        headers::VERSION
    )))
}

pub(crate) fn too_large(size: usize, limit: usize) -> Failure {
    // A body without a length is read no further than just over its limit.
    Failure::new(
        status::TOO_LARGE,
        format!("Request size is too large. bytes={size} or more, limit={limit}"),
    )
}

/// Answers that a server gives when it cannot ask its [`CosmosService`].
pub mod stand_in {
    use super::{Failure, Payload, Reply, Request, Response, StatusCode, headers, new_activity_id, status};

    /// While the store is being recovered: the health check says so, everything else is unavailable.
    pub fn starting<B>(request: &Request<B>) -> Response<Payload> {
        if request.uri().path() == "/_bolide/health" {
            return Reply::value(status::UNAVAILABLE.http, &crate::admin::starting()).into_response();
        }
        failure(&Failure::new(
            status::UNAVAILABLE,
            "the server is starting; the store is being recovered",
        ))
    }

    /// After a panic.
    pub fn panicked() -> Response<Payload> {
        failure(&Failure::new(
            status::INTERNAL,
            "the request ran into a bug of the server; its log has the details",
        ))
    }

    /// When the head could not be read at all, and the listener has decided on a status for it.
    pub fn unreadable(status: StatusCode) -> Response<Payload> {
        let (status, message) = match status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
                status::HEADERS_TOO_LARGE,
                "the request's line and headers are larger than this server reads at all, more than 100 headers, or with a \
                 length that no body has",
            ),
            StatusCode::URI_TOO_LONG => (status::URI_TOO_LONG, "the request's path is too long"),
            _ => (
                status::BAD_REQUEST,
                "the request's line or one of its headers is not as HTTP/1.1 has it",
            ),
        };
        failure(&Failure::new(status, message))
    }

    fn failure(failure: &Failure) -> Response<Payload> {
        let activity_id = new_activity_id();
        let mut reply = Reply::failure(failure, activity_id.to_str().unwrap_or_default());
        reply.header(&headers::ACTIVITY_ID, activity_id);
        reply.into_response()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn versions_are_dates_from_the_first_on() {
        let check = |version| {
            check_version(&HeaderMap::from_iter([(
                headers::VERSION.clone(),
                HeaderValue::from_static(version),
            )]))
        };
        for version in ["2015-12-16", "2020-07-15", "2020-11-05", ""] {
            assert!(check(version).is_ok(), "{version}");
        }
        for version in ["2015-12-15", "2020-7-15", "2020-07-15-1", "latest", "20200715"] {
            assert!(check(version).is_err(), "{version}");
        }
    }

    #[test]
    fn a_coded_body_is_refused_with_what_it_is() {
        let check = |name: &'static str, values: &[&'static str]| {
            let name = HeaderName::from_static(name);
            let lines = values
                .iter()
                .map(|value| (name.clone(), HeaderValue::from_static(value)));
            let checked = check_codings(&lines.collect());
            checked.map_or_else(|failure| failure.status.http.as_u16(), |()| 200)
        };
        for (values, status) in [
            (&[][..], 200),
            (&["chunked"], 200),
            (&[" Chunked ,"], 200),
            (&["gzip, chunked"], 501),
            (&["gzip", "chunked"], 501),
            (&["chunked", "chunked"], 501),
            (&["identity, chunked"], 501),
        ] {
            assert_eq!(check("transfer-encoding", values), status, "{values:?}");
        }
        for (values, status) in [
            (&["identity"][..], 200),
            (&[""], 200),
            (&["gzip"], 415),
            (&["identity", "br"], 415),
            (&["x"], 415),
        ] {
            assert_eq!(check("content-encoding", values), status, "{values:?}");
        }
    }

    #[test]
    fn durations_are_milliseconds_with_three_decimal_places() {
        for (micros, shown) in [
            (0, "0.000"),
            (7, "0.007"),
            (1_050, "1.050"),
            (123_456_789, "123456.789"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            assert_eq!(milliseconds(Duration::from_micros(micros)), shown);
        }
    }

    #[test]
    fn names_survive_a_header_and_unescaping() {
        assert_eq!(
            utf8_percent_encode("a b%ü-Ω", NAME_ESCAPES).to_string(),
            "a%20b%25%C3%BC-%CE%A9"
        );
    }

    #[test]
    fn stand_ins_have_the_shape_of_errors() {
        let elsewhere = Request::get("/dbs").body(()).expect("valid");
        for (response, status) in [
            (stand_in::starting(&elsewhere), 503),
            (stand_in::panicked(), 500),
            (stand_in::unreadable(StatusCode::BAD_REQUEST), 400),
        ] {
            assert_eq!(response.status(), status);
            assert!(response.headers().contains_key(&headers::ACTIVITY_ID));
            assert_eq!(response.headers()[&headers::CONTENT_TYPE_OPTIONS], "nosniff");
            let body = json(response);
            assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
        }
    }

    #[test]
    fn health_says_that_the_store_is_being_recovered() {
        let health = Request::get("/_bolide/health").body(()).expect("valid");
        let response = stand_in::starting(&health);
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[&headers::CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(json(response)["status"], "starting");
    }

    fn json(response: Response<Payload>) -> serde_json::Value {
        let Payload::Whole(body) = response.into_body() else {
            panic!("a stand-in is whole")
        };
        serde_json::from_slice(&body).expect("JSON")
    }
}
