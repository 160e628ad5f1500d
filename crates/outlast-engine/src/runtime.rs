//! Locks, atomics, tasks and time as the engine uses them: those of the machine, or, with
//! `--cfg shuttle`, those of a scheduler that tries one order of events after the other.
//!
//! Whatever two tasks may do at once in this crate goes through here, so that the tests in
//! `tests/races` see every order of it. A product build knows nothing of the other scheduler.

#[cfg(not(shuttle))]
mod machine {
    use std::sync::LazyLock;
    pub(crate) use std::sync::atomic;
    use std::thread::available_parallelism;

    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use tokio::task::JoinHandle;
    pub(crate) use tokio::time::{sleep, timeout};

    /// Starts `work`, which goes on whether or not anybody waits for it.
    pub(crate) fn spawn<T: Send + 'static>(
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::spawn(work)
    }

    /// Whether work can be started from where this is called.
    pub(crate) fn can_spawn() -> bool {
        tokio::runtime::Handle::try_current().is_ok()
    }

    /// Waits for work that was started. Its panic goes on here.
    pub(crate) async fn joined<T>(work: JoinHandle<T>) -> T {
        match work.await {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that shuts down cancels it, and then nobody polls this again.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Into how many parts a large map is divided, a lock each: enough that threads seldom meet, few enough that they
    /// stay in the caches. A power of two.
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

    /// A lock as that of the machine: a panic of one holder is not passed on to the next.
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

    pub(crate) async fn joined<T>(work: JoinHandle<T>) -> T {
        match work.await {
            Ok(done) => done,
            Err(_) => std::future::pending().await,
        }
    }

    /// Any length of time may pass between two steps of others: there is no telling how long it was.
    pub(crate) async fn sleep(_: Duration) {
        yield_now().await;
    }

    pub(crate) struct Elapsed;

    pub(crate) async fn timeout<T>(
        _: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let steps = shuttle::rand::thread_rng().gen_range(0..40);
        let patience = async {
            for _ in 0..steps {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = patience => Err(Elapsed),
        }
    }

    /// A look into every part is a step each: few parts, more orders tried.
    pub(crate) fn shards() -> usize {
        2
    }
}

#[cfg(not(shuttle))]
pub(crate) use machine::*;
#[cfg(shuttle)]
pub(crate) use scheduled::*;

/// Runs `work` to its end even if the caller loses interest: what was given to the store must be
/// followed by its effects.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    joined(spawn(work)).await
}
