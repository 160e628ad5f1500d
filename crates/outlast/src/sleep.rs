//! Sleeping with an optional deadline.

use tokio::time::Instant;

/// Waits until `moment`; without one, it never resolves.
pub(crate) async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
