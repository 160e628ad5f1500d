//! Calls that the upstream starts before their task is stored.

use std::sync::Arc;

use outlast_engine::Outcome;
use outlast_engine::engine::NewCall;

use super::{McpServer, Reservation};

impl McpServer {
    /// Starts a prepared call; returns the upstream's text for the model, if there is one. The TTL
    /// of the upstream's own task does not matter: the outcome is stored here and kept for the TTL
    /// of our task (BR-TTL-3).
    pub(super) async fn prestart(
        &self,
        reservation: &Reservation,
        call: &mut NewCall,
    ) -> Result<Option<Arc<str>>, Outcome> {
        let requested = call.ttl.map(|ttl| ttl.as_millis() as u64);
        let ttl = self.engine.policy().granted_ttl_ms(requested);
        let started = self
            .backend
            .prestart(reservation, &call.origin, ttl)
            .await?;
        call.message = started.message;
        // Stored with the task, so that a restart after the reply finds the upstream's task.
        call.resume_state = started.resume_state;
        Ok(started.immediate)
    }
}
