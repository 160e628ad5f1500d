//! `forward_store!`: methods of a store that call another store.
//!
//! The other public items are for the macro.

pub use outlast_wire::{Raw, Timestamp};
pub use tokio::sync::watch::Receiver;

use super::StoreError;

/// The store that a call is forwarded to.
pub fn target<S>(store: impl FnOnce() -> Result<S, StoreError>) -> Result<S, StoreError> {
    store()
}

/// Writes methods of an `impl Store` that forward to another store.
///
/// `forward_store!(self => STORE; METHOD, …)` forwards the named methods to the store that the
/// expression returns. The expression may use `?` with a [`StoreError`](crate::StoreError).
/// `forward_store!(self => STORE, around FUNCTION; METHOD, …)` passes the future of each call to a
/// method of the wrapper first: `async fn around<T>(&self, call: impl Future<Output = T>) -> T`. It
/// can be used for every method that does not return a [`StoreFuture`](crate::store::StoreFuture).
///
/// The methods are named one by one, so a wrapper that omits one does not compile.
#[macro_export]
macro_rules! forward_store {
    ($self:ident => $store:expr; $($method:ident),+ $(,)?) => {
        $($crate::forward_store!(@$method $self, $store);)+
    };
    ($self:ident => $store:expr, around $around:ident; $($method:ident),+ $(,)?) => {
        $($crate::forward_store!(@$method $self, $store, $around);)+
    };

    (@insert $self:ident, $store:expr) => {
        fn insert(
            &$self,
            insert: $crate::store::Insert,
        ) -> $crate::store::StoreFuture<'static, $crate::store::InsertResult> {
            match $crate::store::forward::target(|| Ok($store)) {
                Ok(store) => store.insert(insert),
                Err(error) => $crate::store::StoreFuture::ready(Err(error)),
            }
        }
    };
    (@replace $self:ident, $store:expr) => {
        fn replace(
            &$self,
            replace: $crate::store::Replace,
        ) -> $crate::store::StoreFuture<'static, $crate::Committed<$crate::Task>> {
            match $crate::store::forward::target(|| Ok($store)) {
                Ok(store) => store.replace(replace),
                Err(error) => $crate::store::StoreFuture::ready(Err(error)),
            }
        }
    };
    (@get $self:ident, $store:expr) => {
        fn get<'a>(
            &'a $self,
            scope: &'a $crate::Scope,
            id: $crate::TaskId,
        ) -> $crate::store::StoreFuture<'a, Option<$crate::store::Snapshot>> {
            match $crate::store::forward::target(|| Ok($store)) {
                Ok(store) => store.get(scope, id),
                Err(error) => $crate::store::StoreFuture::ready(Err(error)),
            }
        }
    };
    (@body $self:ident, $store:expr) => {
        fn body<'a>(
            &'a $self,
            scope: &'a $crate::Scope,
            id: $crate::TaskId,
        ) -> $crate::store::StoreFuture<'a, Option<$crate::store::forward::Raw>> {
            match $crate::store::forward::target(|| Ok($store)) {
                Ok(store) => store.body(scope, id),
                Err(error) => $crate::store::StoreFuture::ready(Err(error)),
            }
        }
    };
    (@publish_progress $self:ident, $store:expr) => {
        fn publish_progress(
            &$self,
            node: $crate::NodeId,
            id: $crate::TaskId,
            progress: &$crate::engine::Progress,
        ) {
            if let Ok(store) = $crate::store::forward::target(|| Ok($store)) {
                store.publish_progress(node, id, progress);
            }
        }
    };
    (@health $self:ident, $store:expr) => {
        fn health(&$self) -> $crate::store::forward::Receiver<$crate::store::Health> {
            $store.health()
        }
    };

    (@remove $($how:tt)+) => {
        $crate::forward_store!(@call remove['a](
            node: $crate::NodeId,
            tasks: Vec<($crate::TaskId, $crate::Revision)>,
        ) -> Vec<$crate::TaskId>; $($how)+);
    };
    (@load $($how:tt)+) => {
        $crate::forward_store!(@call load['a, 'b](
            scope: &'b $crate::Scope,
            id: $crate::TaskId,
        ) -> Option<$crate::Committed<$crate::Task>>; $($how)+);
    };
    (@page $($how:tt)+) => {
        $crate::forward_store!(@call page['a, 'b](
            owner: &'b $crate::Owner,
            after: Option<$crate::store::Position>,
            limit: usize,
        ) -> $crate::store::Page; $($how)+);
    };
    (@search $($how:tt)+) => {
        $crate::forward_store!(@call search['a, 'b](
            filter: &'b $crate::store::Filter,
            after: Option<$crate::store::Position>,
            limit: usize,
        ) -> $crate::store::Page; $($how)+);
    };
    (@due $($how:tt)+) => {
        $crate::forward_store!(@call due['a](
            now: $crate::store::forward::Timestamp,
            limit: usize,
        ) -> $crate::store::DueTasks; $($how)+);
    };
    (@claim $($how:tt)+) => {
        $crate::forward_store!(@call claim['a](
            node: $crate::NodeId,
            limit: usize,
        ) -> Vec<$crate::Committed<$crate::Task>>; $($how)+);
    };
    (@usage $($how:tt)+) => {
        $crate::forward_store!(@call usage['a, 'b](
            owner: &'b $crate::Owner,
        ) -> $crate::store::Usage; $($how)+);
    };
    (@write_records $($how:tt)+) => {
        $crate::forward_store!(@call write_records['a](
            records: Vec<$crate::store::RecordWrite>,
        ) -> (); $($how)+);
    };
    (@swap_record $($how:tt)+) => {
        $crate::forward_store!(@call swap_record['a](
            swap: $crate::store::RecordSwap,
            now: $crate::store::forward::Timestamp,
        ) -> bool; $($how)+);
    };
    (@record $($how:tt)+) => {
        $crate::forward_store!(@call record['a, 'b](
            key: &'b $crate::store::RecordKey,
            now: $crate::store::forward::Timestamp,
        ) -> Option<$crate::store::Record>; $($how)+);
    };
    (@records $($how:tt)+) => {
        $crate::forward_store!(@call records['a, 'b, 'c](
            kind: &'b str,
            owner: Option<&'c $crate::Owner>,
            now: $crate::store::forward::Timestamp,
        ) -> Vec<$crate::store::Record>; $($how)+);
    };
    (@join $($how:tt)+) => {
        $crate::forward_store!(@call join['a](node: $crate::NodeId,) -> $crate::store::StoreEvents; $($how)+);
    };
    (@leave $($how:tt)+) => {
        $crate::forward_store!(@call leave['a](node: $crate::NodeId,) -> (); $($how)+);
    };
    (@publish_address $($how:tt)+) => {
        $crate::forward_store!(@call publish_address['a, 'b](
            node: $crate::NodeId,
            address: &'b str,
        ) -> (); $($how)+);
    };
    (@nodes $($how:tt)+) => {
        $crate::forward_store!(@call nodes['a]() -> Vec<$crate::store::NodeStatus>; $($how)+);
    };
    (@close $($how:tt)+) => {
        $crate::forward_store!(@call close['a]() -> (); $($how)+);
    };

    // The form that `async_trait` gives the methods of the trait.
    (@call $method:ident[$self_life:lifetime $(, $life:lifetime)*](
        $($arg:ident: $kind:ty,)*
    ) -> $reply:ty; $self:ident, $store:expr $(, $around:ident)?) => {
        fn $method<$self_life $(, $life)*, 'async_trait>(
            &$self_life $self,
            $($arg: $kind,)*
        ) -> ::std::pin::Pin<Box<
            dyn Future<Output = Result<$reply, $crate::StoreError>> + Send + 'async_trait,
        >>
        where
            $self_life: 'async_trait,
            $($life: 'async_trait,)*
            Self: 'async_trait,
        {
            Box::pin(async move {
                let store = $store;
                let call = store.$method($($arg),*);
                $(let call = $self.$around(call);)?
                call.await
            })
        }
    };
}
