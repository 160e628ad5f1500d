//! Proof that a store has committed a value.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Proof that a store has committed `T`. Replies that promise durability take it as an argument, so
/// that they cannot be built earlier.
#[must_use = "a reply may only be built from a committed value"]
pub struct Committed<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Committed<T> {
    /// States that the backend of a store has confirmed the write. Only stores may call this.
    pub fn confirmed_by_backend(value: impl Into<Arc<T>>) -> Self {
        Self(value.into())
    }

    /// Derives a value from a committed one. The result is committed too.
    pub(crate) fn derive<U>(&self, derive: impl FnOnce(&T) -> Option<U>) -> Option<Committed<U>> {
        derive(&self.0).map(|value| Committed(Arc::new(value)))
    }

    /// The committed value without the proof.
    pub(crate) fn into_shared(self) -> Arc<T> {
        self.0
    }

    /// The committed value, shared.
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
