use std::time::Duration;

use super::*;

#[test]
fn throttling_names_the_time_to_wait() {
    let retry_after = Duration::from_millis(34);
    let throttled = bolide_model::Error::new(ErrorKind::Throttled { retry_after }, "Request rate is large");
    let error = error(&throttled);
    assert_eq!(error.code, Code(16500));
    assert_eq!(
        error.message,
        "Error=16500, RetryAfterMs=34, Details='Request rate is large'"
    );
}
