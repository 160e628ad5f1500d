//! The limit of every wait in a test: a broken server makes a test fail, not hang.
//!
//! It is real time. So it also limits tests whose tokio clock is paused, and does not advance that
//! clock.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Waits for `work`, for two minutes at most.
///
/// # Panics
///
/// If it takes longer. `what` says what was expected.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        () = limit() => panic!("{what}: did not happen within {} s", WAIT_LIMIT.as_secs()),
    }
}

/// Calls `found` repeatedly until it returns true, for two minutes at most.
///
/// # Panics
///
/// If it takes longer.
pub async fn eventually(what: &str, mut found: impl AsyncFnMut() -> bool) {
    wait_for(what, async || found().await.then_some(())).await;
}

/// Calls `find` repeatedly until it returns a value, for two minutes at most.
///
/// # Panics
///
/// If it takes longer.
pub async fn wait_for<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    within(what, looking).await
}

/// Resolves when the limit is over.
async fn limit() {
    // The thread that holds the other end never ends.
    let _ = register().await;
}

fn register() -> oneshot::Receiver<()> {
    let (over, wait) = oneshot::channel();
    let waits = WAITS.get_or_init(|| {
        thread::spawn(watch);
        Mutex::default()
    });
    let mut all = waits.lock();
    all.push((Instant::now() + WAIT_LIMIT, over));
    wait
}

fn watch() {
    loop {
        thread::sleep(Duration::from_secs(1));
        let waits = WAITS.wait();
        let mut all = waits.lock();
        let now = Instant::now();
        all.retain(|(_, over)| !over.is_closed());
        for (_, over) in all.extract_if(.., |(until, _)| *until <= now) {
            // The wait may have ended in this moment.
            let _ = over.send(());
        }
    }
}

/// When a wait is over, and how that is reported.
type Wait = (Instant, oneshot::Sender<()>);

static WAITS: OnceLock<Mutex<Vec<Wait>>> = OnceLock::new();

/// How often a state is read that sends no event.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Longer than any step takes on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(120);
