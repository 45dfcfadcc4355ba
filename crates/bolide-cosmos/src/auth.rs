//! Authentication: signatures by account keys, resource tokens, the emulator's form of Entra tokens, and bearer keys of the admin API.
//!
//! A signature covers verb, resource type, resource link and date (cosmos-rest §2.1). SDKs sign the links of unusual names in different forms, so two
//! forms of the whole link are tried. Only a path that consists of resource ids may be signed by its last one alone, as most SDKs do: such an id
//! contains those of its parents, so the signature is valid for one resource, while a name alone would be valid for that name everywhere.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use bolide_model::account_key::Access;
use bolide_model::time::wall_clock;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Method};

use crate::keys::Keys;
use crate::request::Sender;
use crate::resource_token::Grant;
use crate::routes::{Route, Signed};
use crate::status::{FORBIDDEN, Failure, MISSING_AUTHORIZATION, UNAUTHORIZED};
use crate::wire::{ascii, headers, percent};

/// Maximum difference between a request's date and real time, in both directions.
const CLOCK_SKEW: Duration = Duration::from_secs(15 * 60);
/// Buffer for the 32 bytes of an HMAC-SHA256 and the rest of the last base64 group.
const SIGNATURE_BUFFER_BYTES: usize = 33;
/// Number of forms of a link, see [`spelling`].
const SPELLINGS: usize = 2;

/// Determines the sender of a request. `is_database`: whether there is a database with a name.
///
/// # Errors
/// 401 if the token is missing, malformed or not signed by a key of the account; 403 if its date is too far from real time.
pub(crate) fn authenticate(
    keys: &Keys,
    head: &Parts,
    route: &Route<'_>,
    is_database: impl Fn(&str) -> bool,
) -> Result<Sender, Failure> {
    sender_of(keys, head, |signature| {
        by_signature(keys, head, route, signature, is_database)
    })
}

/// Determines the sender of a request that signs another link than that of its path.
///
/// # Errors
/// As [`authenticate`].
pub(crate) fn authenticate_link(keys: &Keys, head: &Parts, signed: Signed<'_>) -> Result<Sender, Failure> {
    sender_of(keys, head, |signature| {
        verify(keys, head, signed, signature, |is_signed| is_signed(signed.link))
    })
}

/// Determines the sender by the kind of its token; `by_signature` judges a signature.
fn sender_of(
    keys: &Keys,
    head: &Parts,
    by_signature: impl FnOnce(&str) -> Result<Access, Failure>,
) -> Result<Sender, Failure> {
    let token =
        percent::decode(authorization(head)?).ok_or_else(|| Failure::malformed_authorization("it is not UTF-8"))?;
    match Token::parse(&token)? {
        Token::Master { signature } => by_signature(signature).map(Sender::Key),
        Token::Entra { jwt } => by_emulator_jwt(keys, jwt).map(Sender::Key),
        Token::Resource { sealed } => Grant::open(keys, sealed).map(|grant| Sender::Token(Box::new(grant))),
    }
}

/// The rights of the sender of an admin request, by `Authorization: Bearer <account key>`.
///
/// # Errors
/// 401 if the key is missing or wrong.
pub(crate) fn authenticate_admin(keys: &Keys, head: &Parts) -> Result<Access, Failure> {
    let token = authorization(head)?;
    let bearer = token
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, key) =
        bearer.ok_or_else(|| Failure::malformed_authorization("the admin API expects `Bearer <account key>`"))?;
    keys.holder(key.trim().as_bytes())
        .ok_or_else(|| Failure::new(UNAUTHORIZED, "the bearer is not a key of this account"))
}

/// What a request shows for its authorization.
///
/// # Errors
/// 401 if that is nothing.
pub(crate) fn authorization(head: &Parts) -> Result<&str, Failure> {
    let missing = || {
        Failure::new(
            MISSING_AUTHORIZATION,
            "The required header 'authorization' is missing or empty.",
        )
    };
    let value = head
        .headers
        .get(AUTHORIZATION)
        .filter(|value| !value.is_empty())
        .ok_or_else(missing)?;
    headers::ascii(value).ok_or_else(|| Failure::malformed_authorization("it has bytes outside ASCII"))
}

/// A decoded and parsed authorization header.
enum Token<'t> {
    /// A signature by an account key.
    Master { signature: &'t str },
    /// An Entra ID token.
    Entra { jwt: &'t str },
    /// A token made for one permission.
    Resource { sealed: &'t str },
}

impl<'t> Token<'t> {
    fn parse(token: &'t str) -> Result<Token<'t>, Failure> {
        let (mut kind, mut signature) = (None, None);
        for (name, value) in ascii::split(token, b'&').filter_map(|field| ascii::split_once(field, b'=')) {
            if name.eq_ignore_ascii_case("type") {
                kind.get_or_insert(value);
            } else if name.eq_ignore_ascii_case("sig") {
                signature.get_or_insert(value);
            }
        }
        let kind = kind.ok_or_else(|| Failure::malformed_authorization("`type` is missing"))?;
        let signature = signature
            .filter(|sig| !sig.is_empty())
            .ok_or_else(|| Failure::malformed_authorization("`sig` is missing"))?;
        match kind {
            "master" => Ok(Token::Master { signature }),
            "aad" => Ok(Token::Entra { jwt: signature }),
            "resource" => Ok(Token::Resource { sealed: signature }),
            _ => Err(Failure::malformed_authorization(
                "`type` is neither master, resource nor aad",
            )),
        }
    }
}

fn by_signature(
    keys: &Keys,
    head: &Parts,
    route: &Route<'_>,
    signature: &str,
    is_database: impl Fn(&str) -> bool,
) -> Result<Access, Failure> {
    let signed = route.signed();
    verify(keys, head, signed, signature, |is_signed| {
        let by_link = || (0..SPELLINGS).find_map(|nth| is_signed(&spelling(signed.link, nth)));
        let by_rid = || {
            let rid = route.rid().filter(|_| !is_database(&route.database))?;
            is_signed(&rid.to_ascii_lowercase()).or_else(|| is_signed(rid))
        };
        by_link().or_else(by_rid)
    })
}

/// Checks a signature and its date. `find` asks for each form of the link that the client may have signed whose key has signed it.
fn verify(
    keys: &Keys,
    head: &Parts,
    signed: Signed<'_>,
    signature: &str,
    find: impl FnOnce(&dyn Fn(&str) -> Option<Access>) -> Option<Access>,
) -> Result<Access, Failure> {
    let mut bytes = [0; SIGNATURE_BUFFER_BYTES];
    let length = STANDARD
        .decode_slice(signature, &mut bytes)
        .map_err(|_| Failure::malformed_authorization("the signature is not the base64 of 32 bytes"))?;
    let signature = &bytes[..length];
    let date = SignedDate::of(head)?;
    let verb = lower_case(&head.method);
    let signer = |link: &str| keys.signer(&payload(&verb, signed.resource_type, link, &date), signature);
    let access = find(&signer).ok_or_else(|| mismatch(&verb, &signed, &date))?;
    date.check()?;
    Ok(access)
}

fn lower_case(method: &Method) -> Cow<'static, str> {
    match method.as_str() {
        "GET" => Cow::Borrowed("get"),
        "POST" => Cow::Borrowed("post"),
        other => Cow::Owned(other.to_ascii_lowercase()),
    }
}

fn payload<'a>(verb: &'a str, resource_type: &'a str, link: &'a str, date: &'a SignedDate) -> [&'a [u8]; 10] {
    let (ms_date, plain_date) = date.lines();
    let lines = [verb, resource_type, link, ms_date, plain_date];
    std::array::from_fn(|i| if i % 2 == 0 { lines[i / 2].as_bytes() } else { b"\n" })
}

/// The forms of a link that clients sign, the most likely first.
fn spelling(link: &str, nth: usize) -> Cow<'_, str> {
    match nth {
        0 => percent::decode_lossy(link),
        _ => Cow::Borrowed(link),
    }
}

/// The date that a signature covers.
struct SignedDate {
    text: String,
    is_ms_date: bool,
}

impl SignedDate {
    fn of(head: &Parts) -> Result<SignedDate, Failure> {
        let ms_date = head.headers.get(&headers::MS_DATE);
        let value = ms_date
            .or_else(|| head.headers.get(http::header::DATE))
            .ok_or_else(|| {
                Failure::new(
                    UNAUTHORIZED,
                    "A signed request needs its date in the header 'x-ms-date' or 'date'.",
                )
            })?;
        let text = headers::ascii(value)
            .ok_or_else(|| Failure::malformed_authorization("the date has bytes outside ASCII"))?
            .to_ascii_lowercase();
        Ok(SignedDate {
            text,
            is_ms_date: ms_date.is_some(),
        })
    }

    /// The fourth and the fifth line of the signed text.
    fn lines(&self) -> (&str, &str) {
        if self.is_ms_date {
            (&self.text, "")
        } else {
            ("", &self.text)
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let signed = parse_http_date(&self.text).ok_or_else(|| {
            Failure::new(
                UNAUTHORIZED,
                format!("the signed date is not an RFC 1123 date. date=`{}`", self.text),
            )
        })?;
        let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(wall_clock().0).unwrap_or(0));
        let skew = now.duration_since(signed).unwrap_or_else(|ahead| ahead.duration());
        if skew <= CLOCK_SKEW {
            return Ok(());
        }
        Err(Failure::new(
            FORBIDDEN,
            format!(
                "The authorization token is not valid at the current time. Please create another token and retry \
                 (token start time: {}, current time: {}).",
                self.text,
                httpdate::fmt_http_date(now)
            ),
        ))
    }
}

/// Parses an RFC 1123 date in lower case, as some clients send it and all sign it; the parser of HTTP dates requires the usual case.
///
/// Clients sign all requests of a second with one date, so each thread caches the last.
fn parse_http_date(lower: &str) -> Option<SystemTime> {
    let text = <[u8; DATE_BYTES]>::try_from(lower.as_bytes()).ok()?;
    match LAST_DATE.get() {
        Some((last, time)) if last == text => Some(time),
        _ => {
            let time = parse_lower_case(text)?;
            LAST_DATE.set(Some((text, time)));
            Some(time)
        }
    }
}

/// `sun, 06 nov 1994 08:49:37 gmt`
const DATE_BYTES: usize = 29;

thread_local! {
    static LAST_DATE: Cell<Option<([u8; DATE_BYTES], SystemTime)>> = const { Cell::new(None) };
}

fn parse_lower_case(mut text: [u8; DATE_BYTES]) -> Option<SystemTime> {
    for letter in [0..1, 8..9, 26..29] {
        text[letter].make_ascii_uppercase();
    }
    if text.ends_with(b"UTC") {
        text[26..].copy_from_slice(b"GMT");
    }
    httpdate::parse_http_date(std::str::from_utf8(&text).ok()?).ok()
}

fn mismatch(verb: &str, signed: &Signed<'_>, date: &SignedDate) -> Failure {
    let (ms_date, plain_date) = date.lines();
    let link = percent::decode_lossy(signed.link);
    // Shown as by the service, so that client developers can compare it with the text that the client signed.
    let payload = format!(
        "{verb}\\n{}\\n{link}\\n{ms_date}\\n{plain_date}\\n",
        signed.resource_type
    );
    Failure::new(
        UNAUTHORIZED,
        format!(
            "The input authorization token can't serve the request. The wrong key is being used or the expected payload \
             is not built as per the protocol. Server used the following payload to sign: '{payload}'"
        ),
    )
}

/// Base64 of JWTs: without padding, and with any trailing bits.
const JWT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Whether a request shows a key itself, and not a signature or a token that was made with one.
pub(crate) fn shows_a_key(head: &Parts) -> bool {
    let token = authorization(head).ok().and_then(percent::decode);
    token.is_some_and(|token| matches!(Token::parse(&token), Ok(Token::Entra { .. })))
}

/// Accepts the token that the official emulator accepts: unsigned claims, with the account key instead of a signature.
///
/// Source: cosmos-rest §2.4. Making one requires the key, so it gives the rights of the key.
fn by_emulator_jwt(keys: &Keys, jwt: &str) -> Result<Access, Failure> {
    let refused = |why: &str| Failure::new(UNAUTHORIZED, format!("the Entra ID token is not accepted: {why}"));
    let mut parts = jwt.split('.');
    let (Some(_), Some(claims), Some(key), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(refused("it is no JWT of three parts"));
    };
    let key = JWT_BASE64
        .decode(key)
        .map_err(|_| refused("its third part is not base64url"))?;
    let access = keys.holder(&key).ok_or_else(|| {
        refused("this server knows no Entra ID tenant; only the emulator's form, which carries the account key, can be used")
    })?;
    let claims: serde_json::Value = JWT_BASE64
        .decode(claims)
        .ok()
        .and_then(|claims| serde_json::from_slice(&claims).ok())
        .ok_or_else(|| refused("its claims are no base64url of JSON"))?;
    let second = |name: &str| claims.get(name).and_then(serde_json::Value::as_f64);
    let now = wall_clock().seconds().0 as f64;
    match (second("nbf"), second("exp")) {
        (Some(from), _) if now < from => Err(refused("it is not valid yet (nbf)")),
        (_, Some(until)) if now < until => Ok(access),
        _ => Err(refused("it has expired (exp)")),
    }
}

/// Whether a request shows neither a key nor a token.
pub(crate) fn is_unsigned(head: &Parts) -> bool {
    head.headers.get(AUTHORIZATION).is_none_or(HeaderValue::is_empty)
}

#[cfg(test)]
mod tests;
