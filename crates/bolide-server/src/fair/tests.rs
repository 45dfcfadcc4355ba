use super::*;

#[tokio::test]
async fn other_tasks_run_between_full_reads() {
    let sent = vec![7; 3 * READ_BYTES];
    let mut stream = Fair::new(&sent[..]);
    let (mut others, mut received) = (0, 0);
    while received < sent.len() {
        let mut buffer = [0; 2 * READ_BYTES];
        let mut reading = std::pin::pin!(stream.read(&mut buffer));
        received += std::future::poll_fn(|cx| {
            let polled = reading.as_mut().poll(cx);
            others += u32::from(polled.is_pending());
            polled
        })
        .await
        .expect("bytes in memory can be read");
    }
    assert_eq!(others, 2, "between three reads");
}

#[tokio::test]
async fn a_client_that_sends_less_is_not_delayed() {
    let sent = vec![7; READ_BYTES - 1];
    let mut stream = Fair::new(&sent[..]);
    let mut received = Vec::new();
    let mut reading = std::pin::pin!(stream.read_to_end(&mut received));
    let polled = std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_ready())).await;
    assert!(polled);
}
