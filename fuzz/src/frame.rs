//! A frame of direct mode without its length: that of a connection, or of a request.
//!
//! What can be read is written again as it was; a request is for a path of the protocol, or is refused with a reason.

use bolide_cosmos::direct;
use bolide_rntbd::context::ContextRequest;
use bolide_rntbd::frame::{HEAD_BYTES, Head, LENGTH_BYTES, head_rest};
use bytes::Bytes;
use http::HeaderValue;

/// Reads the bytes as the head of a frame.
pub fn run(data: &[u8]) {
    let length = u32::try_from(data.len() + LENGTH_BYTES).expect("short");
    assert_eq!(
        head_rest(length.to_le_bytes(), usize::MAX).is_ok(),
        data.len() + LENGTH_BYTES >= HEAD_BYTES
    );
    let Ok(head) = Head::read(Bytes::copy_from_slice(data)) else {
        return;
    };
    let mut ids: Vec<u16> = head.tokens.iter().map(|token| token.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "no token is there twice");
    if let Ok(context) = ContextRequest::of(&head)
        && let Some(bytes) = context.write()
    {
        let again = Head::read(Bytes::from(bytes).slice(LENGTH_BYTES..)).expect("it was written");
        assert_eq!(ContextRequest::of(&again), Ok(context));
    }
    let Ok(direct::Parsed { request, .. }) = direct::to_request(&head, &HeaderValue::from_static("2020-07-15")) else {
        return;
    };
    match request {
        Ok(request) => {
            let path = request.request.uri().path();
            assert!(matches!(path, "/" | "/dbs") || path.starts_with("/dbs/"), "{path}");
            assert!(request.request.uri().query().is_none());
        }
        Err(refused) => assert!(!refused.why.0.is_empty()),
    }
}
