//! Responses while they are built.

use bolide_core::Etag;
use bolide_model::RequestUnits;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde_json::json;

use super::header_list::HeaderList;
use super::headers::{CONTENT_TYPE, ETAG};
use super::{Payload, headers};
use crate::status::Failure;

/// A response to which headers are still being added.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderList,
    pub payload: Payload,
    /// The charge. One unit unless the core sets another: SDKs expect a charge above zero everywhere.
    pub charge: RequestUnits,
    /// Whether the response names its container: one about a missing item does not.
    pub names_container: bool,
    /// The headers of a response that another server has made.
    pub forwarded: Option<Box<HeaderMap>>,
}

impl Reply {
    /// A response without a body.
    pub(crate) fn empty(status: StatusCode) -> Reply {
        Reply {
            status,
            headers: HeaderList::new(),
            payload: Payload::Whole(Bytes::new()),
            charge: RequestUnits(1.0),
            names_container: true,
            forwarded: None,
        }
    }

    /// A response that another server has made. Its charge was counted there.
    pub(crate) fn forwarded(response: Response<Bytes>) -> Reply {
        let (head, body) = response.into_parts();
        let mut reply = Reply::empty(head.status);
        reply.charge = RequestUnits(0.0);
        reply.payload = Payload::Whole(body);
        reply.forwarded = Some(Box::new(head.headers));
        reply
    }

    /// A response with JSON text.
    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
        let mut reply = Reply::empty(status);
        // Must be exactly this: .NET reads error bodies only with this content type (cosmos-rest §0.5).
        reply.fixed(&CONTENT_TYPE, "application/json");
        reply.payload = Payload::Whole(body.into());
        reply
    }

    /// A response with a JSON value.
    pub(crate) fn value(status: StatusCode, body: &serde_json::Value) -> Reply {
        Reply::json(status, body.to_string())
    }

    /// An error, in the format that clients parse (cosmos-rest §0.6).
    pub(crate) fn failure(failure: &Failure, activity_id: &str) -> Reply {
        let tag = concat!("bolide/", env!("CARGO_PKG_VERSION"));
        let message = format!("{}\r\nActivityId: {activity_id}, {tag}", failure.message);
        let mut body = json!({"code": failure.status.code, "message": message});
        if let Some(additional) = &failure.additional {
            body["additionalErrorInfo"] = additional.as_str().into();
        }
        let mut reply = Reply::value(failure.status.http, &body);
        if failure.status.sub != 0 {
            reply.number(&headers::SUB_STATUS, u64::from(failure.status.sub));
        }
        if let Some(after) = failure.retry_after {
            reply.number(
                &headers::RETRY_AFTER_MS,
                u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            );
        }
        reply
    }

    /// Sets a header to a number.
    pub(crate) fn number(&mut self, name: &'static HeaderName, value: u64) {
        self.ascii(name, itoa::Buffer::new().format(value));
    }

    /// Sets a header to a static text.
    pub(crate) fn fixed(&mut self, name: &'static HeaderName, value: &'static str) {
        self.headers.set_fixed(name, value);
    }

    /// Sets a header to a short text that consists of visible ASCII characters.
    pub(crate) fn ascii(&mut self, name: &'static HeaderName, value: &str) {
        let value = HeaderValue::from_str(value).expect("visible ASCII is valid in a header");
        self.headers.set(name, value);
    }

    /// Sets a header to a text. If the text is not valid in a header it is left out; callers percent-encode names first.
    pub(crate) fn text(&mut self, name: &'static HeaderName, value: impl Into<String>) {
        if let Ok(value) = HeaderValue::try_from(value.into()) {
            self.headers.set(name, value);
        }
    }

    /// Sets a header to a value.
    pub(crate) fn header(&mut self, name: &'static HeaderName, value: HeaderValue) {
        self.headers.set(name, value);
    }

    /// Sets the entity tag to the version of a resource.
    #[must_use]
    pub(crate) fn version(mut self, etag: Etag) -> Reply {
        let text = HeaderValue::from_bytes(&etag.text()).expect("a quoted GUID is visible ASCII");
        self.headers.set(&ETAG, text);
        self
    }

    /// Sets the entity tag; the text includes its quotes.
    #[must_use]
    pub(crate) fn etag(mut self, etag: impl ToString) -> Reply {
        self.text(&ETAG, etag.to_string());
        self
    }

    /// Drops the body and its headers, as clients request with `prefer: return=minimal`.
    #[must_use]
    pub(crate) fn without_body(mut self) -> Reply {
        self.headers.remove(&CONTENT_TYPE);
        self.payload = Payload::Whole(Bytes::new());
        self
    }

    /// The value of a header, which another server may have set.
    pub(crate) fn value_of(&self, name: &'static HeaderName) -> Option<&[u8]> {
        let forwarded = || Some(self.forwarded.as_ref()?.get(name)?.as_bytes());
        self.headers.get(name).or_else(forwarded)
    }

    /// Removes a header, whoever has set it.
    pub(crate) fn remove(&mut self, name: &'static HeaderName) {
        self.headers.remove(name);
        if let Some(forwarded) = &mut self.forwarded {
            forwarded.remove(name);
        }
    }

    /// All headers; what another server has set, and this one, too, comes last.
    pub(crate) fn all_headers(&self) -> impl Iterator<Item = (&HeaderName, &[u8])> {
        let forwarded = self.forwarded.iter().flat_map(|forwarded| forwarded.iter());
        let forwarded = forwarded.map(|(name, value)| (name, value.as_bytes()));
        self.headers.iter().chain(forwarded)
    }

    /// The finished response.
    pub(crate) fn into_response(mut self) -> Response<Payload> {
        if let Some(forwarded) = self.forwarded.take() {
            let mut response = Response::new(self.payload);
            *response.status_mut() = self.status;
            *response.headers_mut() = *forwarded;
            response.headers_mut().extend(self.headers.into_map());
            return response;
        }
        if self.charge == RequestUnits(1.0) {
            self.fixed(&headers::REQUEST_CHARGE, "1");
        } else {
            self.text(&headers::REQUEST_CHARGE, self.charge.rounded().0.to_string());
        }
        // Browsers must treat stored text as its type says, and not as a page or a script.
        self.fixed(&headers::CONTENT_TYPE_OPTIONS, "nosniff");
        let mut response = Response::new(self.payload);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.into_map();
        response
    }
}

/// The body of a feed: `{"_rid":…,"<array>":[…],"_count":n}` around JSON texts with commas between them.
pub(crate) fn envelope(rid: &str, array: &str, rows: &[u8], count: usize) -> Bytes {
    let mut body = Vec::with_capacity(rows.len() + rid.len() + array.len() + 48);
    // Resource ids and array names need no escapes.
    body.extend_from_slice(format!("{{\"_rid\":\"{rid}\",\"{array}\":[").as_bytes());
    body.extend_from_slice(rows);
    body.extend_from_slice(format!("],\"_count\":{count}}}").as_bytes());
    body.into()
}

#[cfg(test)]
mod tests;
