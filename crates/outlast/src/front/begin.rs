//! Calls that their service begins before there is a task.

use std::sync::Arc;

use outlast_engine::Outcome;
use outlast_engine::engine::NewCall;

use super::{Arrival, Client, Front};

impl Front {
    /// Lets the service begin a call that may become a task; the text for the model if it has one. A task is not kept for
    /// longer than the server keeps its own (BR-TTL-1, BR-TTL-2).
    pub(super) async fn begin(
        &self,
        client: &Arc<Client>,
        call: &mut NewCall,
    ) -> Result<Option<Arc<str>>, Outcome> {
        let policy = self.engine.policy();
        let ttl = call.ttl.unwrap_or(policy.ttl_default).min(policy.ttl_cap);
        let Some(begun) = self.service.begin(client, &call.origin, ttl).await? else {
            return Ok(None);
        };
        let parts = call.parts.take();
        let arrival = parts.and_then(|parts| parts.downcast::<Arrival>().ok());
        call.parts = arrival.map(|arrival| {
            let mut arrival = Arrival::clone(&arrival);
            arrival.begun = Some(begun.work);
            Arc::new(arrival) as _
        });
        if let Some(granted) = begun.ttl {
            call.ttl = Some(ttl.min(granted));
        }
        Ok(begun.immediate)
    }
}
