//! Calls that their server starts before their task is stored.

use std::sync::Arc;

use outlast_engine::Outcome;
use outlast_engine::engine::NewCall;

use super::{McpServer, Reservation};

impl McpServer {
    /// Starts a prepared call; returns the text for the model if the server has one. How long the server keeps its own task
    /// does not matter: the outcome is stored here, and kept for as long as our task is (BR-TTL-3).
    pub(super) async fn prestart(
        &self,
        reservation: &Reservation,
        call: &mut NewCall,
    ) -> Result<Option<Arc<str>>, Outcome> {
        let policy = self.engine.policy();
        let ttl = call.ttl.unwrap_or(policy.ttl_default).min(policy.ttl_cap);
        let started = self
            .backend
            .prestart(reservation, &call.origin, ttl)
            .await?;
        call.message = started.message;
        // Stored with the task, so that a restart right after the reply finds the server's task.
        call.handle = started.handle;
        Ok(started.immediate)
    }
}
