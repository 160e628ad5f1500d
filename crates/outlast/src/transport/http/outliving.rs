//! Work that is done where somebody waits for it, and goes on by itself when nobody does any more.
//!
//! Most requests are answered before anybody could lose interest: a task of the runtime for each would cost more
//! than many of them do.

use std::future::poll_fn;
use std::pin::pin;

use tokio::runtime::Handle;

use crate::front::Work;

/// Work that must come to its end. Dropping this lets go of it, and the runtime does the rest.
pub(super) struct Outliving(Option<Work>);

impl Outliving {
    pub(super) fn new(work: Option<Work>) -> Self {
        Self(work)
    }

    /// Does the work until `first` is there.
    pub(super) async fn beside<T>(&mut self, first: impl Future<Output = T>) -> T {
        let mut first = pin!(first);
        poll_fn(|cx| {
            if let Some(work) = &mut self.0
                && work.as_mut().poll(cx).is_ready()
            {
                self.0 = None;
            }
            first.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for Outliving {
    fn drop(&mut self) {
        // Without a runtime everything ends.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_comes_to_its_end() {
        // V1-SSE-6: a connection that breaks off cancels nothing.
        let (go, wait) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let mut work = Outliving::new(Some(Box::pin(async {
            let _ = wait.await;
            let _ = tell.send("done");
        })));
        assert_eq!(work.beside(std::future::ready(1)).await, 1);
        drop(work);
        go.send(()).unwrap();
        assert_eq!(told.await, Ok("done"));
    }

    #[tokio::test]
    async fn work_is_done_where_somebody_waits_for_it() {
        let (tell, told) = oneshot::channel();
        let mut work = Outliving::new(Some(Box::pin(async {
            let _ = tell.send("done");
        })));
        assert_eq!(work.beside(told).await, Ok("done"));
        assert!(work.0.is_none());
    }
}
