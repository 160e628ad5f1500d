//! Any request that may take its time: the server can ask while it works, and say how far it is.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::notice::Progress;
use outlast_wire::{Raw, meta};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client::Core;
use super::ears::empty;
use super::exchange::{GiveUp, Ticket};
use super::fault::Fault;
use super::routes::{LAG, Told};
use crate::transport::link::LinkError;

/// A request to be made: set it up, then `.await` it for its result. Dropping the future cancels it.
#[must_use = "a request is made when it is awaited"]
pub struct Request {
    core: Arc<Core>,
    method: String,
    params: Option<Raw>,
    name: Option<Arc<str>>,
    progress: Option<Hear>,
}

/// Hears how far a request has come.
type Hear = Box<dyn Fn(Progress) + Send + Sync>;

impl Request {
    pub(crate) fn new(core: Arc<Core>, method: &str, params: Option<Raw>) -> Self {
        Self {
            core,
            method: method.to_owned(),
            params,
            name: None,
            progress: None,
        }
    }

    /// Gives it a name, as [`Call::named`](super::Call::named).
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Lets `hear` hear how far it has come.
    pub fn progress(mut self, hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(hear));
        self
    }

    async fn answer(self) -> Result<Raw, Fault> {
        let core = &self.core;
        let (ear, mut told) = mpsc::channel(LAG);
        let token = core.fresh_token();
        let params = match &self.progress {
            Some(_) => {
                let params = self.params.clone().unwrap_or_else(empty);
                let odd = |_| Fault::Malformed("params must be an object".into());
                let value = token.to_raw();
                let marked = meta::set(params.borrow(), meta::PROGRESS_TOKEN, value.borrow());
                Some(marked.map_err(odd)?)
            }
            None => self.params.clone(),
        };
        let routes = &core.ears.routes;
        let _progress = routes.hear_progress(token, ear);
        let mut attempt = 0;
        loop {
            let up = core.up().await?;
            let id = up.exchange.fresh_id();
            let name = self.name.clone();
            let _named = name.map(|name| routes.name_request(id.clone(), name));
            let params = params.as_ref().map(Raw::borrow);
            let sent = up
                .exchange
                .send_as(id, &self.method, params, GiveUp::Cancel);
            let answer = match sent.await {
                Ok(ticket) => self.wait(ticket, &mut told).await,
                Err(fault) => Err(fault),
            };
            // The server has not seen it: another session may.
            match answer {
                Err(Fault::Link(LinkError::SessionGone)) if attempt < REPEATS => attempt += 1,
                answer => return answer,
            }
        }
    }

    async fn wait(
        &self,
        mut ticket: Ticket,
        told: &mut mpsc::Receiver<Told>,
    ) -> Result<Raw, Fault> {
        let options = &self.core.options;
        let limit = Instant::now() + options.longest_call;
        let mut patient_until = Instant::now() + options.silence;
        loop {
            tokio::select! {
                biased;
                answer = ticket.wait() => return answer,
                Some(told) = told.recv() => {
                    // V1-INIT-9: progress shows that it lives, up to a limit.
                    patient_until = Instant::now() + options.silence;
                    if let (Told::Progress(progress), Some(hear)) = (told, &self.progress) {
                        hear(progress);
                    }
                }
                () = tokio::time::sleep_until(patient_until.min(limit)) => {
                    return Err(Fault::TimedOut(options.silence));
                }
            }
        }
    }
}

impl IntoFuture for Request {
    type Output = Result<Raw, Fault>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

/// How often a request is sent again to a server that has not seen it.
const REPEATS: u32 = 3;
