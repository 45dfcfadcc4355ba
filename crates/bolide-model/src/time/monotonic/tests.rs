use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_manual_clock_stands_still_until_it_is_moved() {
    let clock = Monotonic::manual();
    let (began, clone) = (clock.now(), clock.clone());
    assert_eq!(clone.now(), began);
    assert!(clone.advance(SECOND));
    assert_eq!(clock.now(), began + SECOND);
    assert_eq!(clock.since(began), SECOND);
    assert_eq!(clock.since(began + 5 * SECOND), Duration::ZERO, "still to come");
}

#[test]
fn the_machines_clock_is_not_moved() {
    let clock = Monotonic::system();
    let began = clock.now();
    assert!(!clock.advance(3_600 * SECOND));
    assert!(clock.now() >= began);
    assert_eq!(clock.next_wake(), None);
}

#[test]
fn a_sleeper_is_woken_when_the_clock_reaches_its_time() {
    let Monotonic(Source::Manual(manual)) = Monotonic::manual() else {
        unreachable!("it is manual");
    };
    let clock = Monotonic(Source::Manual(manual.clone()));
    let (early, late) = (clock.now() + SECOND, clock.now() + 2 * SECOND);
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(Reached::new(&manual, early));
    let mut second = Box::pin(Reached::new(&manual, late));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert!(
        second.as_mut().poll(&mut context).is_pending(),
        "asked again, it sleeps once"
    );
    assert_eq!(manual.lock().sleepers.len(), 2);
    assert_eq!(clock.next_wake(), Some(early));
    clock.advance(SECOND);
    assert!(first.as_mut().poll(&mut context).is_ready());
    assert!(second.as_mut().poll(&mut context).is_pending());
    drop(first);
    assert_eq!(clock.next_wake(), Some(late), "a sleeper that is gone is forgotten");
    drop(second);
    assert_eq!(clock.next_wake(), None);
}

#[cfg(feature = "tokio")]
mod with_tokio {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_goes_on_when_the_clock_was_moved() {
        let clock = Monotonic::manual();
        let asleep = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(3_600 * SECOND).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(clock.next_wake(), Some(clock.now() + 3_600 * SECOND));
        clock.advance(3_600 * SECOND);
        asleep.await.expect("it woke");
    }

    #[tokio::test]
    async fn late_work_is_dropped() {
        let clock = Monotonic::manual();
        let until = clock.now() + SECOND;
        assert_eq!(clock.timeout_at(until, async { 1 }).await, Some(1));
        let late = tokio::spawn({
            let clock = clock.clone();
            async move { clock.timeout_at(until, std::future::pending::<()>()).await }
        });
        tokio::task::yield_now().await;
        clock.advance(SECOND);
        assert_eq!(late.await.expect("it ended"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_machines_clock_is_paused_with_tokio() {
        let clock = Monotonic::system();
        let began = clock.now();
        clock.sleep(3_600 * SECOND).await;
        assert!(clock.since(began) >= 3_600 * SECOND);
    }
}
