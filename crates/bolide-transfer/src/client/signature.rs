//! The signature of a request by an account key.
//!
//! Source: REST reference, "Access control on Cosmos DB resources".

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::AccountKey;
use bolide_model::time::wall_clock;
use hmac::{Hmac, Mac as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;
use ureq::http::Method;

/// The date and the `authorization` of a request that is sent now.
pub(super) fn of(key: &AccountKey, method: &Method, path: &[&str]) -> (String, String) {
    let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(wall_clock().0).unwrap_or_default());
    let date = httpdate::fmt_http_date(now);
    let authorization = signed(key, method, path, &date);
    (date, authorization)
}

/// Signs the kind and link of what is at `path`: a feed is signed by the link of its parent.
pub(super) fn signed(key: &AccountKey, method: &Method, path: &[&str], date: &str) -> String {
    let is_feed = path.len() % 2 == 1;
    let (kind, link) = match path {
        // An offer is signed by its resource id alone.
        ["offers", id] => ("offers", id.to_lowercase()),
        [parent @ .., kind] if is_feed => (*kind, parent.join("/")),
        [.., kind, _] => (*kind, path.join("/")),
        _ => ("", String::new()),
    };
    let payload = format!(
        "{}\n{kind}\n{link}\n{}\n\n",
        method.as_str().to_lowercase(),
        date.to_lowercase()
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(key.bytes()).expect("HMAC takes keys of any length");
    mac.update(payload.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    utf8_percent_encode(&format!("type=master&ver=1.0&sig={signature}"), NON_ALPHANUMERIC).to_string()
}
