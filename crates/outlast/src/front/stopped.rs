//! Whether the caller of a request wants it to stop, for whoever is dropped because of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set before a request that was cancelled is dropped. One that is dropped for another reason leaves its work alone.
#[derive(Clone, Default)]
pub(crate) struct Stopped(Arc<AtomicBool>);

impl Stopped {
    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
