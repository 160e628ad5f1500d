//! Many callers at once, each living through tasks one after the other.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::machine::processor;

/// Something that lives through a task: created, run, ended, looked at.
pub(crate) trait Life: Clone + Send + Sync + 'static {
    fn live(&self) -> impl Future<Output = ()> + Send;
}

/// What callers see of lives, and what lives cost.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) per_second: f64,
    /// Processor time of one, in microseconds.
    pub(crate) processor: f64,
}

/// Lets `callers` callers live through tasks for about `turn`.
///
/// Each batch is `batch` lives on a fresh result of `subject`; making and dropping one is not timed,
/// but the processor time of it counts.
pub(crate) fn pace<L: Life>(
    runtime: &Runtime,
    callers: usize,
    batch: usize,
    turn: Duration,
    mut subject: impl FnMut() -> L,
) -> Pace {
    let (mut lives, mut spent) = (0, Duration::ZERO);
    let before = processor();
    while spent < turn {
        let subject = subject();
        let each = batch.div_ceil(callers);
        spent += runtime.block_on(batch_of(&subject, callers, each));
        lives += each * callers;
    }
    let lives = lives as f64;
    Pace {
        per_second: lives / spent.as_secs_f64(),
        processor: (processor() - before) * 1e6 / lives,
    }
}

async fn batch_of<L: Life>(subject: &L, callers: usize, each: usize) -> Duration {
    let began = Instant::now();
    let callers: Vec<_> = (0..callers)
        .map(|_| {
            let subject = subject.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    subject.live().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("a caller does not panic");
    }
    began.elapsed()
}

/// Lives through `lives` tasks with many callers, to fill a store.
pub(crate) fn fill<L: Life>(runtime: &Runtime, subject: &L, lives: usize, callers: usize) {
    let callers = callers.min(lives).max(1);
    runtime.block_on(batch_of(subject, callers, lives / callers));
    runtime.block_on(batch_of(subject, 1, lives % callers));
}
