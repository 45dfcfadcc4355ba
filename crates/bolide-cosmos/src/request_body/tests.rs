use http::{HeaderName, HeaderValue};

use super::*;
use crate::wire::hybrid_row::batch_of;

#[test]
fn many_small_values_count_for_more_than_their_text() {
    let decoded_bytes = |body: &[u8]| decoded_bytes(&Bytes::copy_from_slice(body));
    let numbers = format!("[{}0]", "0,".repeat(999));
    assert!(decoded_bytes(numbers.as_bytes()) >= 1000 * VALUE_BYTES);
    let text = format!("[\"{}\"]", "x".repeat(numbers.len()));
    assert!(decoded_bytes(text.as_bytes()) < 2 * numbers.len());
    assert_eq!(decoded_bytes(b""), 0);
    let binary = [&[0x80, 0xE3, 0xE8, 0x03][..], &[0x01; 1000]].concat();
    assert!(decoded_bytes(&binary) >= 1000 * VALUE_BYTES);
    let rows = batch_of(&[&binary, numbers.as_bytes()]);
    assert!(decoded_bytes(&rows) >= 2000 * VALUE_BYTES);
    let binary = [&[0x80, 0xC1, 0xE8, 0x03][..], &[b'x'; 1000]].concat();
    assert!(decoded_bytes(&binary) < 3 * binary.len());
}

#[test]
fn references_in_the_rows_of_a_batch_count_with_their_text() {
    // {"id": a string of 2,000 bytes, "a": [that string, 900 times]}
    let mut item = [&[0x80, 0xEB, 0, 0, 0x2C, 0xC1, 0xD0, 0x07][..], &[b'x'; 2_000]].concat();
    item.extend([0x81, b'a', 0xE3, 0x08, 0x07]);
    item.extend([0xC3, 0x05].repeat(900));
    let length = u16::try_from(item.len() - 4).expect("short");
    item[2..4].copy_from_slice(&length.to_le_bytes());
    let item = Bytes::from(item);
    let text_bytes = binary_json::to_text(&item).expect("well formed").len();
    assert!(text_bytes > 1_800_000);
    let two = decoded_bytes(&batch_of(&[&item, &item]));
    assert!(two >= 2 * text_bytes, "{two} of {text_bytes} each");
    // Operations beyond the limit are not decoded, so they do not count, and checking takes no longer.
    let many = batch_of(&vec![&item[..]; BATCH_OPERATIONS]);
    assert!(decoded_bytes(&many) < 25 * text_bytes);
    let sent = crate::operations::batch::decodable(&many);
    assert!(sent > 5 && sent < 10, "{sent} of {}", BATCH_OPERATIONS);
}

#[tokio::test]
async fn an_answer_holds_its_share_until_its_last_part_is_gone() {
    let memory = MemoryBudget::new(1024 * 1024);
    let counted = Counted::new(&memory, Version::HTTP_11);
    let answer = Bytes::from(vec![b'x'; 100 * 1024]);
    let mut answer = counted.bind(answer, None, None).await.expect("there is enough");
    assert_eq!(memory.used_bytes(), 100 * 1024);
    let part = answer.split_to(10);
    drop(answer);
    assert_eq!(memory.used_bytes(), 100 * 1024);
    drop(part);
    assert_eq!(memory.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_memory_is_refused() {
    let memory = MemoryBudget::new(1024 * 1024);
    let counted = Counted::new(&memory, Version::HTTP_11);
    let _all = memory.try_take(memory.longest_share()).expect("all but what is kept");
    let refusal = async |operation| {
        let answer = Bytes::from(vec![0; 100 * 1024]);
        counted.bind(answer, None, operation).await.map_err(|error| error.kind)
    };
    assert!(matches!(
        refusal(Some(Operation::ReadItem)).await,
        Err(ErrorKind::Throttled { .. })
    ));
    assert_eq!(refusal(Some(Operation::Batch)).await, Err(ErrorKind::Timeout));
    let small = counted.bind(Bytes::from(vec![0; 5_000]), None, None).await;
    assert!(small.is_ok(), "something is kept for small answers");
}

#[test]
fn a_coded_body_is_refused_with_the_name_of_its_coding() {
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
