//! A connection to the server that is meant.

use std::sync::Arc;

use async_trait::async_trait;
use outlast::back::{Client, ClientOptions, Host, HostRequest, NoHost};
use outlast::engine::{Accepts, Answer};
use outlast::transport::http_client::Session;

use crate::call::Waiting;
use crate::exit::Failure;
use crate::person::Person;
use crate::sessions;
use crate::target::Named;

/// A connection, and the session it has if that can outlive it.
pub(crate) struct Connected {
    pub(crate) client: Client,
    session: Option<(String, Session)>,
}

/// Connects; the server's questions go to `person`.
pub(crate) async fn connect(server: Named, person: &Person) -> Result<Connected, Failure> {
    let session = server.session.as_ref();
    let comes_back = session.is_some_and(|(_, session)| session.is_kept());
    let host = match (person.host(), comes_back) {
        (Some(host), _) => host,
        (None, true) => Arc::new(Later),
        (None, false) => Arc::new(NoHost),
    };
    let options = ClientOptions {
        server: Some(server.name.as_str().into()),
        era: server.era,
        host,
        receiver_tasks: person.receiver(),
        ..ClientOptions::default()
    };
    let waiting = Waiting::on(format!("Connecting to {}", server.name));
    let client = Client::connect(server.target, options).await?;
    if comes_back {
        // If it is gone, this is how we hear of it, and another is opened.
        let _ = client.ping().await;
    }
    drop(waiting);
    Ok(Connected {
        client,
        session: server.session,
    })
}

/// Leaves every question for whoever comes next: in a session that goes on, they are asked again.
struct Later;

#[async_trait]
impl Host for Later {
    fn accepts(&self) -> Accepts {
        Accepts::all()
    }

    async fn ask(&self, _: HostRequest) -> Answer {
        std::future::pending().await
    }
}

impl Connected {
    /// Says that something is left at the server that will be asked for.
    pub(crate) fn come_back_later(&self) {
        if let Some((_, session)) = &self.session {
            session.keep();
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(self) {
        if let Some((url, session)) = &self.session {
            sessions::remember(url, session);
        }
        self.client.close().await;
    }
}
