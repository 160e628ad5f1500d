//! Finds the node that handles a request, and forwards the request there.
//!
//! Without other nodes every request is handled here. [`super::nodes`] says what has a home node.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use outlast_engine::store::StoreError;
use outlast_wire::envelope::{self, Id, Limits, Message};
use outlast_wire::{RawRef, object, v1};

use super::connection::InFlightGuard;
use super::guard::McpHeaders;
use super::nodes::{
    ForwardError, ForwardedRequest, Home, HomeKey, Nodes, Pass, RemoteNode, end_to_end,
};
use super::post::{check_scopes, reply_alone, session_status};
use super::rejection::Rejection;
use super::response::{HttpResponse, Payload};
use super::server::Endpoint;
use crate::server::{HttpParts, Identity, LiveSession, Response as ServerResponse};

/// A request whose caller is known.
pub(super) struct AdmittedRequest<'r> {
    pub(super) caller: Identity,
    pub(super) head: &'r Arc<HttpParts>,
    pub(super) in_flight: InFlightGuard,
    /// Whether another node has forwarded it. It is not forwarded again.
    pub(super) is_forwarded: bool,
}

/// What a node does with a request.
pub(super) enum Routed<T> {
    /// It handles the request itself.
    Here(T),
    /// Another node has answered it.
    Answered(HttpResponse),
}

impl AdmittedRequest<'_> {
    /// The request for another node.
    fn for_node(&self, body: &Bytes) -> ForwardedRequest<'_> {
        ForwardedRequest {
            head: self.head,
            body: body.clone(),
            pass: Pass {
                identity: self.caller.clone(),
                address: self.in_flight.address().0,
            },
        }
    }
}

impl Endpoint {
    /// The session of a request, or the response of the node that has it.
    pub(super) async fn session_or_forward(
        &self,
        request: &AdmittedRequest<'_>,
        body: &Bytes,
    ) -> Result<Routed<Arc<LiveSession>>, Rejection> {
        let mcp_headers = McpHeaders::read(&request.head.headers);
        let Some(nodes) = &self.nodes else {
            let session = self.session(&request.caller, mcp_headers).await?;
            return Ok(Routed::Here(session));
        };
        mcp_headers.check_version()?;
        let key = self.session_home(&request.caller, mcp_headers.session()?);
        for _ in 0..MAX_LOOKUPS {
            let home = nodes.locate(&key).await.map_err(unavailable)?;
            let node = match home {
                Some(Home::At(node)) => {
                    self.sessions.table().forget(mcp_headers.session()?);
                    node
                }
                Some(Home::Here) => {
                    let session = self.session(&request.caller, mcp_headers).await?;
                    return Ok(Routed::Here(session));
                }
                None => {
                    // Restored before the home is claimed: an id that does not exist gets no home.
                    let session = self.session(&request.caller, mcp_headers).await?;
                    match nodes.claim(&key).await.map_err(unavailable)? {
                        Home::Here => return Ok(Routed::Here(session)),
                        Home::At(node) => {
                            self.sessions.table().forget(session.session.id.as_str());
                            node
                        }
                    }
                }
            };
            if request.is_forwarded {
                return Err(Rejection::Misdirected);
            }
            if let Some(answer) = self
                .forward_in_session(nodes, &key, &node, request, body)
                .await?
            {
                return Ok(Routed::Answered(answer));
            }
        }
        Err(moving(None))
    }

    /// Forwards a request of a session; `None` if the node is no longer the home.
    async fn forward_in_session(
        &self,
        nodes: &Nodes,
        key: &HomeKey,
        node: &RemoteNode,
        request: &AdmittedRequest<'_>,
        body: &Bytes,
    ) -> Result<Option<HttpResponse>, Rejection> {
        let forwarded = request.for_node(body);
        let mut forwarding = std::pin::pin!(nodes.forward(node, &forwarded));
        let response = match tokio::time::timeout(HOME_TIMEOUT, forwarding.as_mut()).await {
            Ok(response) => response,
            Err(_) => match self.answer_without_home(request, body).await? {
                Some(answer) => return Ok(Some(answer)),
                None => forwarding.await,
            },
        };
        let failed = match response {
            Ok(response) => return Ok(Some(relay(response))),
            Err(ForwardError::Misdirected | ForwardError::Refused) => {
                nodes.forget(key);
                return Ok(None);
            }
            Err(failed) => failed,
        };
        match self.answer_without_home(request, body).await? {
            Some(answer) => Ok(Some(answer)),
            None => Err(not_forwarded(request_id(body), failed)),
        }
    }

    /// Answers a request about stored tasks of a session whose home does not answer; `None` for
    /// every other request.
    async fn answer_without_home(
        &self,
        request: &AdmittedRequest<'_>,
        body: &Bytes,
    ) -> Result<Option<HttpResponse>, Rejection> {
        let Ok(Message::Request(message)) = Message::parse(body, &Limits::default()) else {
            return Ok(None);
        };
        if ![v1::method::GET, v1::method::LIST, v1::method::CANCEL].contains(&&*message.method) {
            return Ok(None);
        }
        let name = McpHeaders::read(&request.head.headers).session()?;
        let owner = request.caller.owner();
        let session = self.sessions.stored(name, owner).await;
        let session = session
            .map_err(unavailable)?
            .ok_or(Rejection::UnknownSession)?;
        let scopes = request.caller.scopes();
        check_scopes(scopes, &Message::Request(message.clone()))?;
        let id = message.id.clone();
        let mut handling = session.handle(message, scopes, Some(request.head.clone()));
        match handling.response().await {
            ServerResponse::Immediate(reply) => Ok(Some(reply_alone(&id, &reply, session_status))),
            ServerResponse::Stream(_) => Ok(None),
        }
    }

    /// The response of another node to a request without a session; `None` if this node handles the
    /// request.
    pub(super) async fn forward_without_session(
        &self,
        request: &AdmittedRequest<'_>,
        message: &envelope::Request<'_>,
        body: &Bytes,
    ) -> Result<Option<HttpResponse>, Rejection> {
        let Some(nodes) = &self.nodes else {
            return Ok(None);
        };
        for _ in 0..MAX_LOOKUPS {
            let home = self.home_without_session(nodes, request, message).await;
            let Some((key, node)) = home.map_err(unavailable)? else {
                return Ok(None);
            };
            if request.is_forwarded {
                return Err(Rejection::Misdirected);
            }
            match nodes.forward(&node, &request.for_node(body)).await {
                Ok(response) => return Ok(Some(relay(response))),
                Err(ForwardError::Misdirected | ForwardError::Refused) => match key {
                    Some(key) => nodes.forget(&key),
                    // The call has ended, so this node rejects the state.
                    None => return Ok(None),
                },
                Err(failed) => return Err(not_forwarded(Some(message.id.clone()), failed)),
            }
        }
        Err(moving(Some(message.id.clone())))
    }

    /// The other node that handles a request without a session, and by which record.
    async fn home_without_session(
        &self,
        nodes: &Nodes,
        request: &AdmittedRequest<'_>,
        message: &envelope::Request<'_>,
    ) -> Result<Option<(Option<HomeKey>, RemoteNode)>, StoreError> {
        // Tasks are stored, and every node answers for them.
        if message.method.starts_with("tasks/") {
            return Ok(None);
        }
        let server = self.sessions.server();
        let state = message
            .params
            .and_then(|params| object::find(params, &["requestState"]));
        if let Some(state) = state.and_then(RawRef::text) {
            let node = match server.node_of_state(&state).await? {
                Some(node) => nodes.remote(node).await?,
                None => None,
            };
            return Ok(node.map(|node| (None, node)));
        }
        if !server.backend.is_stateful() {
            return Ok(None);
        }
        // An anonymous session is an owner of its own, so it opens its own connection.
        let visitor = request.in_flight.caller();
        let owner = match request.caller.owner() {
            Some(owner) => owner,
            None if message.method == v1::method::INITIALIZE => return Ok(None),
            None => visitor.owner(),
        };
        let key = HomeKey::connection(&self.runner(), owner);
        Ok(match nodes.claim(&key).await? {
            Home::Here => None,
            Home::At(node) => Some((Some(key), node)),
        })
    }

    /// What has the home of a session of this caller: its connection to a server with state, else
    /// the session.
    fn session_home(&self, caller: &Identity, session: &str) -> HomeKey {
        match caller.owner() {
            Some(owner) if self.sessions.server().backend.is_stateful() => {
                HomeKey::connection(&self.runner(), owner)
            }
            _ => HomeKey::session(session),
        }
    }

    /// Makes this node the home of a new session.
    pub(super) async fn claim_session(
        &self,
        caller: &Identity,
        session: &str,
    ) -> Result<(), StoreError> {
        if let Some(nodes) = &self.nodes {
            let _ = nodes.claim(&self.session_home(caller, session)).await?;
        }
        Ok(())
    }

    fn runner(&self) -> Arc<str> {
        let server = self.sessions.server();
        server.backend.only_runner().unwrap_or_default()
    }
}

/// The response of another node, without the headers of its connection.
pub(super) fn relay(mut response: Response<Incoming>) -> HttpResponse {
    let headers = end_to_end(response.headers());
    *response.headers_mut() = headers;
    response.map(Payload::other)
}

fn request_id(body: &Bytes) -> Option<Id> {
    match Message::parse(body, &Limits::default()) {
        Ok(Message::Request(request)) => Some(request.id),
        _ => None,
    }
}

fn unavailable(error: StoreError) -> Rejection {
    Rejection::Unavailable(None, error.to_string())
}

pub(super) fn not_forwarded(id: Option<Id>, failed: ForwardError) -> Rejection {
    let why = match failed {
        ForwardError::NotReached => {
            "the node that has this session or connection cannot be reached, and nothing was done; \
             retry in some seconds"
                .to_owned()
        }
        ForwardError::NoResponse => {
            "the node that has this session or connection did not answer: the outcome is unknown"
                .to_owned()
        }
        ForwardError::Misdirected | ForwardError::Refused => return moving(id),
        ForwardError::Store(error) => error.to_string(),
    };
    Rejection::Unavailable(id, why)
}

fn moving(id: Option<Id>) -> Rejection {
    let why = "the session or connection is moving between nodes; retry in a second".to_owned();
    Rejection::Unavailable(id, why)
}

/// How often a node looks for the home of a request that another node refused.
const MAX_LOOKUPS: usize = 3;

/// How long the home of a session may take before this node answers for its stored tasks.
const HOME_TIMEOUT: Duration = Duration::from_secs(2);
