//! The sign-in page, the exchange of a token, and the end of a session.

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::header::{HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::Access;
use super::session::{SESSION_TTL_MS, SessionId, SignInSession};
use crate::console::App;
use crate::error::ConsoleError;
use crate::layout::{Layout, render};

#[derive(Template)]
#[template(path = "sign-in.html")]
struct SignInPage {
    layout: Layout,
    /// Where to go after the sign-in.
    next: String,
    is_refused: bool,
    /// How to get a token: texts and commands, alternating.
    hint: Vec<HintPart>,
}

struct HintPart {
    text: String,
    is_command: bool,
}

/// The query of the sign-in page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SignInQuery {
    #[serde(default)]
    next: String,
    #[serde(default)]
    refused: String,
}

/// The form of the sign-in page.
#[derive(Deserialize)]
pub(crate) struct SignInForm {
    token: String,
    #[serde(default)]
    next: String,
}

/// `GET /sign-in`.
pub(crate) async fn sign_in_page(
    State(app): State<App>,
    Query(query): Query<SignInQuery>,
) -> Result<Response, ConsoleError> {
    sign_in_response(&app, &query.next, !query.refused.is_empty())
}

/// `POST /sign-in`: exchanges a token for a session.
pub(crate) async fn sign_in(
    State(app): State<App>,
    Form(form): Form<SignInForm>,
) -> Result<Response, ConsoleError> {
    let access = app.access();
    match access.open_session(form.token.trim()).await? {
        Some(id) => {
            let target = format!("{}{}", app.base(), local_path(&form.next));
            let mut response = Redirect::to(&target).into_response();
            set_cookie(access, &mut response, Some(&id));
            Ok(response)
        }
        None => sign_in_response(&app, &form.next, true),
    }
}

/// `POST /sign-out`: ends the session.
pub(crate) async fn sign_out(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, ConsoleError> {
    let access = app.access();
    if let Some(id) = access.session_cookie(&headers) {
        SignInSession::end(&access.engine, &id).await?;
    }
    let mut response = Redirect::to(&format!("{}/", app.base())).into_response();
    set_cookie(access, &mut response, None);
    Ok(response)
}

/// The sign-in page, with status 401.
pub(super) fn sign_in_response(
    app: &App,
    next: &str,
    is_refused: bool,
) -> Result<Response, ConsoleError> {
    let hint = app.token_hint().split('`').enumerate();
    let hint = hint.map(|(at, text)| HintPart {
        text: text.to_owned(),
        is_command: at % 2 == 1,
    });
    let page = SignInPage {
        layout: Layout::bare(app, "Sign in"),
        next: local_path(next).to_owned(),
        is_refused,
        hint: hint.collect(),
    };
    Ok((StatusCode::UNAUTHORIZED, render(&page)?).into_response())
}

/// Sets the cookie, or removes it.
pub(super) fn set_cookie(access: &Access, response: &mut Response, id: Option<&SessionId>) {
    let (value, seconds) = match id {
        Some(id) => (id.as_str(), SESSION_TTL_MS / 1_000),
        None => ("", 0),
    };
    let path = match access.base() {
        "" => "/",
        base => base,
    };
    let cookie = format!(
        "{}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict",
        access.cookie
    );
    if let Ok(mut cookie) = HeaderValue::from_str(&cookie) {
        cookie.set_sensitive(true);
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// `path` if it is a path of this console, else its first page.
fn local_path(path: &str) -> &str {
    // Browsers read a backslash as a slash, and two slashes as the start of a host.
    let is_local = path.starts_with('/')
        && !path[1..].starts_with(['/', '\\'])
        && !path.starts_with("/sign-in")
        && !path.chars().any(char::is_control);
    if is_local { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_this_console_only() {
        for (given, expected) in [
            ("/tasks?q=a", "/tasks?q=a"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
            ("", "/"),
        ] {
            assert_eq!(local_path(given), expected, "{given:?}");
        }
    }
}
