//! The response to a request, whatever the state of the service.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use bolide_cosmos::direct::{self, FrameRequest, RefusedFrame};
use bolide_cosmos::{Listener, Payload, Refused, RequestBody, fallback};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;

use crate::serving::{Absent, Serving};

/// Lets the service handle the request of a frame, if there is one. `None`: the response is longer than a frame can be.
pub async fn respond_to_frame<B: RequestBody>(
    serving: &Serving,
    frame: FrameRequest,
    body: B,
    listener: Listener,
) -> Option<(Vec<u8>, Bytes)> {
    let reply_to = frame.reply_to;
    let Ok(service) = serving.get().await else {
        body.dismiss(Refused::Unknown);
        return direct::to_frame(fallback::not_here(), reply_to);
    };
    // Boxed where it is made: what contains it is moved several times, and would be some kilobytes larger.
    let handled = Box::pin(service.handle_frame(frame, body, listener));
    // A panic in one request must not end the others.
    let handled = AssertUnwindSafe(handled).catch_unwind().await;
    handled.unwrap_or_else(|panic| {
        tracing::error!(message = panic_message(panic.as_ref()), "a request panicked");
        direct::to_frame(fallback::panicked(), reply_to)
    })
}

/// Refuses a frame that is no request. `None`: as [`respond_to_frame`].
pub async fn refuse_frame(serving: &Serving, refused: RefusedFrame, is_known: bool) -> Option<(Vec<u8>, Bytes)> {
    match serving.get().await {
        Ok(service) => service.refuse_frame(refused, is_known).await,
        Err(_) => direct::to_frame(fallback::not_here(), refused.reply_to),
    }
}

/// The body of a response, for hyper.
pub type Body = Either<Full<Bytes>, StreamBody<BoxStream<'static, bolide_model::Result<Frame<Bytes>>>>>;

/// Lets the service handle a request, if there is one.
pub async fn respond<B: RequestBody>(serving: &Serving, request: Request<B>, listener: Listener) -> Response<Payload> {
    let service = match serving.get().await {
        Ok(service) => service,
        Err(absent) => {
            let response = match absent {
                Absent::Starting => fallback::starting(&request, listener.purpose),
                Absent::Replaced(why) => fallback::replacing(why.as_deref()),
            };
            request.into_body().dismiss(Refused::Unknown);
            return response;
        }
    };
    // A panic in one request must not end the others.
    let handled = AssertUnwindSafe(service.handle(request, listener)).catch_unwind().await;
    handled.unwrap_or_else(|panic| {
        tracing::error!(message = panic_message(panic.as_ref()), "a request panicked");
        fallback::panicked()
    })
}

/// The body of a response.
pub fn to_body(payload: Payload) -> Body {
    match payload {
        Payload::Whole(bytes) => Either::Left(Full::new(bytes)),
        Payload::Pages(pages) => Either::Right(StreamBody::new(pages.map(|page| page.map(Frame::data)).boxed())),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}
