use http::HeaderValue;
use serde_json::json;

use super::*;

fn page(resources: &[u32], continuation: Option<&str>) -> Result<(String, Option<String>), Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(headers::MAX_ITEM_COUNT.clone(), HeaderValue::from_static("2"));
    if let Some(continuation) = continuation {
        headers.insert(
            headers::CONTINUATION.clone(),
            HeaderValue::from_str(continuation).expect("ASCII"),
        );
    }
    let resources = resources.iter().map(|rid| (*rid, move || json!(rid)));
    let reply = Feed {
        array: "Things",
        parent: "",
    }
    .page(&headers, |text| text.parse::<u32>().ok(), resources)?;
    let response = reply.into_response();
    let next = response
        .headers()
        .get(&headers::CONTINUATION)
        .map(|next| next.to_str().expect("ASCII").to_owned());
    let crate::wire::Payload::Whole(body) = response.into_body() else {
        panic!("a page is whole")
    };
    Ok((String::from_utf8(body.to_vec()).expect("JSON"), next))
}

#[test]
fn deleting_what_was_listed_skips_nothing() {
    let (first, next) = page(&[3, 1, 2, 4], None).expect("a page");
    assert_eq!(first, r#"{"_rid":"","Things":[1,2],"_count":2}"#);
    let (second, next) = page(&[3, 4], next.as_deref()).expect("a page");
    assert_eq!(second, r#"{"_rid":"","Things":[3,4],"_count":2}"#);
    assert_eq!(next, None);
}

#[test]
fn only_what_is_on_the_page_is_written() {
    let mut headers = HeaderMap::new();
    headers.insert(headers::MAX_ITEM_COUNT.clone(), HeaderValue::from_static("1"));
    let resources = [1_u32, 2].map(|rid| (rid, move || if rid == 1 { json!(rid) } else { panic!("written") }));
    let feed = Feed {
        array: "Things",
        parent: "",
    };
    let page = feed.page(&headers, |text| text.parse::<u32>().ok(), resources.into_iter());
    assert!(page.is_ok());
}

#[test]
fn a_page_ends_by_its_bytes_too() {
    let large = json!("x".repeat(limits::PAGE_BYTES));
    let resources = [1_u32, 2].map(|rid| (rid, || large.clone()));
    let feed = Feed {
        array: "Things",
        parent: "",
    };
    let page = feed.page(
        &HeaderMap::new(),
        |text| text.parse::<u32>().ok(),
        resources.into_iter(),
    );
    let next = page
        .expect("a page")
        .into_response()
        .headers()
        .get(&headers::CONTINUATION)
        .cloned();
    assert_eq!(next, Some(HeaderValue::from_static("M1:1")));
}

#[test]
fn foreign_continuations_are_refused() {
    for continuation in ["x", "M1:x", "M2:1", "Q1:1", "M1:"] {
        assert!(page(&[1, 2, 3], Some(continuation)).is_err(), "{continuation}");
    }
}
