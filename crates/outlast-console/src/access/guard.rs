//! The check before every handler: a viewer, and for changes the origin and the CSRF token.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderMap, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use outlast::server::Scopes;
use outlast_wire::codes;
use serde_json::json;
use subtle::ConstantTimeEq as _;
use url::form_urlencoded;

use super::session::SessionId;
use super::sign_in::{set_cookie, sign_in_response};
use super::{Access, Viewer};
use crate::console::App;
use crate::error::ConsoleError;
use crate::layout::Layout;

/// Admits a request, and renders the errors of its handler.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let is_api = path.starts_with(API_PATH);
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_known = path != "/" && request.extensions().get::<MatchedPath>().is_some();
    if is_change && !is_known {
        return no_such_endpoint();
    }
    let mut viewer = None;
    let response = match admit(&app, request, &mut viewer).await {
        Ok(Admitted::Handle(request)) => next.run(request).await,
        Ok(Admitted::Answer(response)) => response,
        Err(error) => error.into_response(),
    };
    let Some(error) = response.extensions().get::<ConsoleError>() else {
        return response;
    };
    if is_api {
        return error.as_json();
    }
    let layout = match &viewer {
        Some(viewer) => Layout::of_error(&app, viewer),
        None => Layout::bare(&app, "Error"),
    };
    error.as_page(layout)
}

/// The answer to an MCP client whose URL has a wrong path: no page sends a change there.
fn no_such_endpoint() -> Response {
    let error = json!({ "code": codes::INVALID_REQUEST, "message": "this path does not exist" });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

enum Admitted {
    Handle(Request),
    Answer(Response),
}

async fn admit(
    app: &App,
    request: Request,
    seen: &mut Option<Viewer>,
) -> Result<Admitted, ConsoleError> {
    let access = app.access();
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let (mut head, body) = request.into_parts();
    if !is_change && let Some(response) = exchange_token(access, &head).await? {
        return Ok(Admitted::Answer(response));
    }
    let is_sign_in = head.uri.path() == SIGN_IN_PATH;
    let viewer = if head.headers.contains_key(AUTHORIZATION) {
        let identity = access.identify_request(&head).await?;
        let token = head
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = token
            .and_then(|value| value.split_once(' '))
            .map(|(_, token)| token);
        let viewer = identity.and_then(Viewer::of);
        viewer.map(|viewer| viewer.with_token(token.unwrap_or_default().trim()))
    } else {
        match access.session_cookie(&head.headers) {
            Some(id) => access.viewer_of(&id).await?,
            None => None,
        }
    };
    if is_change {
        check_origin(&head.headers, viewer.as_ref())?;
    }
    if is_sign_in {
        return Ok(Admitted::Handle(Request::from_parts(head, body)));
    }
    let Some(viewer) = viewer else {
        if head.uri.path().starts_with(API_PATH) {
            return Err(ConsoleError::new(
                StatusCode::UNAUTHORIZED,
                "no valid session and no valid bearer token",
            )
            .next("sign in, or send `Authorization: Bearer TOKEN`"));
        }
        let wanted = head.uri.path_and_query().map_or("/", |path| path.as_str());
        return sign_in_response(app, wanted, false).map(Admitted::Answer);
    };
    *seen = Some(viewer.clone());
    viewer.require(Scopes::READ)?;
    let body = if is_change && viewer.session().is_some() {
        check_csrf(&head.headers, body, &viewer).await?
    } else {
        body
    };
    head.extensions.insert(viewer);
    Ok(Admitted::Handle(Request::from_parts(head, body)))
}

/// Exchanges the token in the URL for a session, and redirects to the URL without the token.
async fn exchange_token(access: &Access, head: &Parts) -> Result<Option<Response>, ConsoleError> {
    let uri = &head.uri;
    let query = uri.query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let Some((_, token)) = pairs.find(|(name, _)| name == "token") else {
        return Ok(None);
    };
    let rest = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "token");
    let rest = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(rest)
        .finish();
    // A path that starts with two slashes would name another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    let path = format!("{}{path}", access.base());
    let target = if rest.is_empty() {
        path
    } else {
        format!("{path}?{rest}")
    };
    let mut response = match access.open_session(&token).await? {
        Some(id) => {
            let mut response = Redirect::to(&target).into_response();
            set_cookie(access, &mut response, Some(&id));
            response
        }
        None if access.session_is_valid(&head.headers).await? => {
            // A used link that is opened again by a browser that is signed in.
            Redirect::to(&target).into_response()
        }
        None => {
            let next = form_urlencoded::Serializer::new(String::new())
                .append_pair("refused", "1")
                .append_pair("next", target.strip_prefix(access.base()).unwrap_or("/"))
                .finish();
            Redirect::to(&format!("{}{SIGN_IN_PATH}?{next}", access.base())).into_response()
        }
    };
    // The token is in the URL of this request.
    let headers = response.headers_mut();
    headers.insert("referrer-policy", "no-referrer".parse().expect("a literal"));
    Ok(Some(response))
}

/// Checks that a change comes from a page of this console: its origin is the host of the request.
/// A program with a bearer token has no origin.
fn check_origin(headers: &HeaderMap, viewer: Option<&Viewer>) -> Result<(), ConsoleError> {
    let refused = || {
        Err(ConsoleError::new(
            StatusCode::FORBIDDEN,
            "the request comes from a page of another origin",
        ))
    };
    let is_program = viewer.is_some_and(|viewer| viewer.session().is_none());
    let Some(origin) = headers.get(ORIGIN) else {
        return if is_program { Ok(()) } else { refused() };
    };
    let origin = origin.to_str().unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    match (authority, host) {
        (Some(authority), Some(host)) if authority.eq_ignore_ascii_case(host) => Ok(()),
        _ => refused(),
    }
}

/// Checks the CSRF token, in the header or in the form, and returns the body.
async fn check_csrf(
    headers: &HeaderMap,
    body: Body,
    viewer: &Viewer,
) -> Result<Body, ConsoleError> {
    let matches = |given: &[u8]| bool::from(given.ct_eq(viewer.csrf().as_bytes()));
    let refused = || {
        ConsoleError::new(StatusCode::FORBIDDEN, "the page is out of date")
            .next("reload the page and try again")
    };
    if let Some(given) = headers.get(CSRF_HEADER) {
        return matches(given.as_bytes())
            .then_some(body)
            .ok_or_else(refused);
    }
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(|name| name.starts_with("application/x-www-form-urlencoded")) {
        return Err(refused());
    }
    let bytes = to_bytes(body, MAX_FORM_BYTES)
        .await
        .map_err(|_| ConsoleError::new(StatusCode::PAYLOAD_TOO_LARGE, "the form is too large"))?;
    let is_valid = form_urlencoded::parse(&bytes)
        .any(|(name, value)| name == "csrf" && matches(value.as_bytes()));
    if is_valid {
        Ok(bytes.into())
    } else {
        Err(refused())
    }
}

impl Access {
    /// The session id in the cookie.
    pub(super) fn session_cookie(&self, headers: &HeaderMap) -> Option<SessionId> {
        let cookies = headers.get_all(COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == self.cookie)?;
        SessionId::read(value)
    }

    /// A name for a browser that is signed in. It reveals nothing about its cookie.
    pub(crate) async fn browser(&self, headers: &HeaderMap) -> Option<String> {
        let id = self.session_cookie(headers)?;
        let known = self.viewer_of(&id).await.ok()?;
        known.map(|_| id.public_name())
    }

    async fn session_is_valid(&self, headers: &HeaderMap) -> Result<bool, ConsoleError> {
        match self.session_cookie(headers) {
            Some(id) => Ok(self.viewer_of(&id).await?.is_some()),
            None => Ok(false),
        }
    }
}

/// Where the requests of scripts and programs are.
const API_PATH: &str = "/api/";

pub(super) const SIGN_IN_PATH: &str = "/sign-in";

/// The header with the CSRF token. Another origin cannot send it without permission.
const CSRF_HEADER: &str = "x-outlast-csrf";

/// The maximum size of a form. The body of a script is limited by its handler.
const MAX_FORM_BYTES: usize = 4 << 20;
