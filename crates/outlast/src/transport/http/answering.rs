//! The answer to a modern request on its way: notifications as events, then the answer itself, then nothing.
//!
//! There is no coming back for what was missed (V2-HTTP-7), so events have no ids.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use outlast_wire::envelope::{Id, write};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::connection::Busy;
use crate::front::Reply;

/// The answer to a request, with the work that leads to it. Dropping it stops the work.
pub(super) struct Answering {
    id: Id,
    work: Option<Work>,
    told: Option<mpsc::Receiver<Arc<str>>>,
    /// The answer, when the work is done.
    done: Option<Reply>,
    /// What goes out before anything else.
    opening: Option<Bytes>,
    /// How often there is a sign of life, and when the next is due once somebody reads a stream.
    keep_alive: Option<Duration>,
    tick: Option<Interval>,
    ended: bool,
    _busy: Busy,
}

/// The next thing to say.
pub(super) enum Step {
    /// A notification.
    Told(Arc<str>),
    /// The answer.
    Done(Reply),
}

type Work = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl Answering {
    /// The answer that `work` leads to, after what is `told` meanwhile, with a sign of life every `keep_alive`.
    pub(super) fn new(
        id: Id,
        work: Work,
        told: mpsc::Receiver<Arc<str>>,
        keep_alive: Duration,
        busy: Busy,
    ) -> Self {
        Self {
            id,
            work: Some(work),
            told: Some(told),
            done: None,
            opening: Some(Bytes::from_static(COMMENT)),
            keep_alive: Some(keep_alive),
            tick: None,
            ended: false,
            _busy: busy,
        }
    }

    /// An answer that is there.
    pub(super) fn over(id: Id, reply: Reply, busy: Busy) -> Self {
        Self {
            id,
            work: None,
            told: None,
            done: Some(reply),
            opening: None,
            keep_alive: None,
            tick: None,
            ended: false,
            _busy: busy,
        }
    }

    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    /// The same, with its first step taken.
    pub(super) fn beginning_with(mut self, step: Step) -> Self {
        self.opening = self.bytes(step);
        self
    }

    /// The next thing to say.
    pub(super) async fn step(&mut self) -> Step {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }

    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(step) = self.poll_step(cx) {
            return Poll::Ready(self.bytes(step));
        }
        let Some(keep_alive) = self.keep_alive else {
            return Poll::Pending;
        };
        let tick = self.tick.get_or_insert_with(|| {
            let mut tick = interval_at(Instant::now() + keep_alive, keep_alive);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            tick
        });
        let sign = Bytes::from_static(COMMENT);
        tick.poll_tick(cx).map(|_| Some(sign))
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            // What was told before the work was done is said before the answer.
            if let Some(told) = &mut self.told
                && let Poll::Ready(Some(line)) = told.poll_recv(cx)
            {
                return Poll::Ready(Step::Told(line));
            }
            if let Some(reply) = self.done.take() {
                return Poll::Ready(Step::Done(reply));
            }
            let Some(work) = &mut self.work else {
                return Poll::Pending;
            };
            match work.as_mut().poll(cx) {
                Poll::Ready(reply) => (self.done, self.work) = (Some(reply), None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// A step as bytes; none where there is nothing to say.
    fn bytes(&mut self, step: Step) -> Option<Bytes> {
        let line = match step {
            Step::Told(line) => return Some(event(&line)),
            Step::Done(Reply::Result(result)) => write::result(&self.id, result.borrow()),
            Step::Done(Reply::Error(error)) => write::error(Some(&self.id), error.borrow()),
            Step::Done(Reply::Nothing) => {
                self.ended = true;
                return None;
            }
        };
        self.ended = true;
        Some(event(&line))
    }
}

fn event(line: &str) -> Bytes {
    format!("event: message\ndata: {line}\n\n").into()
}

const COMMENT: &[u8] = b":\n\n";
