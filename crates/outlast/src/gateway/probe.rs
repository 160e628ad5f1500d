//! Whether an upstream can be reached at all, found out before any client wants something of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use outlast_engine::{Accepts, Owner};

use super::Upstream;
use super::connection::{Connection, Resumption};
use crate::server::ClientHandle;

impl Upstream {
    /// Connects once, for nobody, and leaves again. If that fails: why, and what may help.
    pub async fn probe(&self) -> Result<(), String> {
        let nobody = Arc::new(ClientHandle::absent(Owner::Local, Accepts::NONE));
        match Connection::open(
            &self.way(self.settings.era),
            &nobody,
            Resumption::default(),
            None,
        )
        .await
        {
            Ok(connection) => {
                connection.back.close().await;
                Ok(())
            }
            Err(error) => {
                self.unmet.store(true, Ordering::Relaxed);
                Err(error.message)
            }
        }
    }
}
