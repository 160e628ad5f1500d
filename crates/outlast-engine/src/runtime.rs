//! The locks, atomics, tasks and timers of the engine. They are those of the system and of Tokio.
//! With `--cfg shuttle` they are those of a scheduler that tries many interleavings.
//!
//! All concurrency of this crate uses this module, so that the tests in `tests/races` control every
//! interleaving. A product build does not contain the shuttle scheduler.

#[cfg(not(shuttle))]
mod system {
    use std::sync::LazyLock;
    pub(crate) use std::sync::atomic;
    use std::thread::available_parallelism;

    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use tokio::task::JoinHandle;
    pub(crate) use tokio::time::{sleep, timeout};

    /// Spawns `work`. It runs even if the handle is dropped.
    pub(crate) fn spawn<T: Send + 'static>(
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::spawn(work)
    }

    /// Whether the caller is inside a runtime, so that [`spawn`] works.
    pub(crate) fn can_spawn() -> bool {
        tokio::runtime::Handle::try_current().is_ok()
    }

    /// Waits for spawned work. A panic of the work continues in the caller.
    pub(crate) async fn join<T>(work: JoinHandle<T>) -> T {
        match work.await {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only the shutdown of the runtime cancels it, and then this future is not polled
                // again.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// The number of shards of a large map, each with its own lock: enough that threads seldom
    /// contend, few enough that the locks stay in the CPU caches. A power of two.
    pub(crate) fn shards() -> usize {
        static SHARDS: LazyLock<usize> = LazyLock::new(|| {
            let threads = available_parallelism().map_or(4, usize::from);
            (threads * 8).next_power_of_two().clamp(8, 64)
        });
        *SHARDS
    }
}

#[cfg(shuttle)]
mod scheduled {
    use std::sync::PoisonError;
    use std::time::Duration;

    use shuttle::future::yield_now;
    pub(crate) use shuttle::future::{JoinHandle, spawn};
    use shuttle::rand::Rng;
    pub(crate) use shuttle::sync::{MutexGuard, atomic};

    /// A mutex without poisoning, as `parking_lot` has it.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    pub(crate) fn can_spawn() -> bool {
        !std::thread::panicking()
    }

    pub(crate) async fn join<T>(work: JoinHandle<T>) -> T {
        match work.await {
            Ok(done) => done,
            Err(_) => std::future::pending().await,
        }
    }

    /// At a yield the scheduler may run any number of steps of other tasks, so one yield simulates
    /// a sleep of any length.
    pub(crate) async fn sleep(_: Duration) {
        yield_now().await;
    }

    pub(crate) struct Elapsed;

    pub(crate) async fn timeout<T>(
        _: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let steps = shuttle::rand::thread_rng().gen_range(0..40);
        let expiry = async {
            for _ in 0..steps {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = expiry => Err(Elapsed),
        }
    }

    /// Some operations lock every shard, and each lock is a scheduling step. Two shards keep the
    /// runs short, so that a test tries more interleavings.
    pub(crate) fn shards() -> usize {
        2
    }
}

#[cfg(shuttle)]
pub(crate) use scheduled::*;
#[cfg(not(shuttle))]
pub(crate) use system::*;

/// Runs `work` to completion even if the returned future is dropped: the effects of a store write
/// must follow the write.
pub(crate) async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    join(spawn(work)).await
}
