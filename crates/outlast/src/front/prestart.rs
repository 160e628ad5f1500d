//! Calls that their server starts before their task is stored.

use std::sync::Arc;

use outlast_engine::Outcome;
use outlast_engine::engine::NewCall;

use super::{Front, Reservation};

impl Front {
    /// Starts a prepared call; returns the text for the model if the server has one. The task is not kept for longer than
    /// the server keeps its own (BR-TTL-1, BR-TTL-2).
    pub(super) async fn prestart(
        &self,
        reservation: &Reservation,
        call: &mut NewCall,
    ) -> Result<Option<Arc<str>>, Outcome> {
        let policy = self.engine.policy();
        let ttl = call.ttl.unwrap_or(policy.ttl_default).min(policy.ttl_cap);
        let started = self
            .service
            .prestart(reservation, &call.origin, ttl)
            .await?;
        if let Some(granted) = started.ttl {
            call.ttl = Some(ttl.min(granted));
        }
        Ok(started.immediate)
    }
}
