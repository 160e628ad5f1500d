//! Proof before promise: a value that a store has confirmed.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Proof that `T` is as durable as its store makes things. Replies that promise something take it as
/// an argument, so that they cannot be built earlier.
#[must_use = "a reply may only be built from a committed value"]
pub struct Committed<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Committed<T> {
    /// States that the backend has confirmed the write. Called by stores and by nobody else.
    pub fn confirmed_by_backend(value: impl Into<Arc<T>>) -> Self {
        Self(value.into())
    }

    /// What follows from a committed value alone is as certain as it.
    pub(crate) fn derive<U>(&self, derive: impl FnOnce(&T) -> Option<U>) -> Option<Committed<U>> {
        derive(&self.0).map(|value| Committed(Arc::new(value)))
    }

    /// The stored value, which is proof of nothing from here on.
    pub(crate) fn into_shared(self) -> Arc<T> {
        self.0
    }

    /// The stored value, shared.
    pub fn shared(&self) -> Arc<T> {
        self.0.clone()
    }
}

impl<T: ?Sized> Clone for Committed<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Deref for Committed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Committed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Committed").field(&&self.0).finish()
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Committed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
