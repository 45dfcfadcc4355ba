use std::cell::Cell;
use std::pin::pin;

use futures_util::FutureExt as _;
use tokio::sync::Notify;

use super::*;

/// Counts how often it was woken.
#[derive(Default)]
struct Task(std::sync::atomic::AtomicUsize);

impl Task {
    fn wakes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_source_is_polled_only_when_it_has_woken_its_task() {
    let (notify, polls) = (Notify::new(), Cell::new(0));
    let mut notified = pin!(notify.notified());
    let mut rare = Rare::new(|cx| {
        polls.set(polls.get() + 1);
        notified.as_mut().poll(cx)
    });
    let task = Arc::new(Task::default());
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    for _ in 0..3 {
        assert!(rare.poll(&mut cx).is_pending());
    }
    assert_eq!((polls.get(), task.wakes()), (1, 0));
    notify.notify_one();
    assert_eq!(task.wakes(), 1);
    assert!(rare.poll(&mut cx).is_ready());
    assert_eq!(polls.get(), 2);
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let notify = Notify::new();
    let mut notified = pin!(notify.notified());
    let mut rare = Rare::new(|cx| notified.as_mut().poll(cx));
    let tasks = [Arc::new(Task::default()), Arc::new(Task::default())];
    for task in &tasks {
        let waker = Waker::from(task.clone());
        assert!(rare.poll(&mut Context::from_waker(&waker)).is_pending());
    }
    notify.notify_one();
    assert_eq!((tasks[0].wakes(), tasks[1].wakes()), (0, 1));
    assert!(rare.happens().now_or_never().is_some());
}

#[test]
fn what_has_happened_is_asked_for_again() {
    let mut rare = Rare::new(|_| Poll::Ready(()));
    assert!(rare.happens().now_or_never().is_some());
    assert!(rare.happens().now_or_never().is_some());
}

#[test]
fn each_signal_wakes_the_task() {
    let last = Cell::new(None);
    let mut rare = Rare::new(|cx| {
        last.set(Some(cx.waker().clone()));
        Poll::<()>::Pending
    });
    let task = Arc::new(Task::default());
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    for signals in 0..3 {
        assert!(rare.poll(&mut cx).is_pending());
        assert_eq!(task.wakes(), signals);
        last.take().expect("the source was polled").wake();
    }
}
