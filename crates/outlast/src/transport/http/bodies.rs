//! Receives the bodies of requests. All unfinished bodies together have a size limit.
//!
//! The first bytes of each body do not count, so ordinary requests are served while others use up
//! the limit. The limit of connections bounds these bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use hyper::body::Body;

use super::rejection::Rejection;

/// The size of all unfinished bodies, and its limit.
pub(super) struct UnfinishedBodies {
    limit: usize,
    counted: AtomicUsize,
}

/// The counted bytes of one unfinished body, until it is complete or dropped.
struct CountedBytes<'b> {
    bodies: &'b UnfinishedBodies,
    bytes: usize,
}

impl UnfinishedBodies {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            counted: AtomicUsize::new(0),
        }
    }

    /// Receives a body of at most `limit` bytes.
    pub(super) async fn collect<B: Body<Data = Bytes>>(
        &self,
        mut body: Pin<&mut B>,
        limit: usize,
    ) -> Result<Bytes, Rejection> {
        let mut counted = CountedBytes {
            bodies: self,
            bytes: 0,
        };
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        loop {
            let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
            let data = match frame {
                None => break,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
                Some(Err(_)) => return Err(Rejection::Broken),
            };
            let received = first.len() + all.len() + data.len();
            if received > limit {
                return Err(Rejection::TooLarge(limit));
            }
            counted.grow(received.saturating_sub(UNCOUNTED_BYTES))?;
            // A body usually arrives in one piece, which is not copied.
            if first.is_empty() && all.is_empty() {
                first = data;
            } else {
                if all.is_empty() {
                    all.extend_from_slice(&std::mem::take(&mut first));
                }
                all.extend_from_slice(&data);
            }
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}

impl CountedBytes<'_> {
    /// Sets the counted bytes, or rejects the body if the limit is reached.
    fn grow(&mut self, bytes: usize) -> Result<(), Rejection> {
        let more = bytes - self.bytes;
        if more == 0 {
            return Ok(());
        }
        // Add first, and subtract in drop, so that two bodies never use the same last bytes.
        self.bytes = bytes;
        let before = self.bodies.counted.fetch_add(more, Ordering::Relaxed);
        if before + more > self.bodies.limit {
            Err(Rejection::Bodies(self.bodies.limit))
        } else {
            Ok(())
        }
    }
}

impl Drop for CountedBytes<'_> {
    fn drop(&mut self) {
        self.bodies.counted.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// How many bytes of each body do not count.
const UNCOUNTED_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_bytes_never_exceed_the_limit_and_are_released() {
        let bodies = UnfinishedBodies::new(10);
        let counted = || CountedBytes {
            bodies: &bodies,
            bytes: 0,
        };
        let (mut one, mut other) = (counted(), counted());
        one.grow(4).unwrap();
        one.grow(6).unwrap();
        other.grow(4).unwrap();
        assert!(matches!(other.grow(5), Err(Rejection::Bodies(10))));
        drop(other);
        one.grow(10).unwrap();
        drop(one);
        assert_eq!(bodies.counted.load(Ordering::Relaxed), 0);
    }
}
