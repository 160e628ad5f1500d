//! Waits that may have no end.

use tokio::time::Instant;

/// Waits until `moment`, or for ever if there is none.
pub(crate) async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
