//! Who is admitted, and to what.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};

use crate::harness::{HOST, Site};

#[tokio::test]
async fn without_a_token_the_page_says_how_to_get_one() {
    let site = Site::start().await;
    let seen = site.browse("", "/?q=a").await;
    assert_eq!(seen.status, StatusCode::UNAUTHORIZED);
    assert!(
        seen.text.contains("<code>outlast gateway token</code>"),
        "{}",
        seen.text
    );
    assert!(
        seen.text.contains("value=\"/?q=a\""),
        "it returns to the page: {}",
        seen.text
    );
    let api = site.browse("", "/api/v1/events").await;
    assert_eq!(api.status, StatusCode::UNAUTHORIZED);
    assert!(
        api.text.contains("Authorization: Bearer TOKEN"),
        "{}",
        api.text
    );
}

#[tokio::test]
async fn the_token_in_the_url_is_exchanged_and_redirected_away() {
    let site = Site::start().await;
    let seen = site.browse("", "/?a=1&token=root-secret&b=2").await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
    assert_eq!(seen.headers[header::LOCATION], "/?a=1&b=2");
    assert_eq!(seen.headers[header::REFERRER_POLICY], "no-referrer");
    let cookie = seen.headers[header::SET_COOKIE].to_str().expect("ASCII");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(!cookie.contains("root-secret"), "{cookie}");
    let seen = site.browse("", "/?token=wrong").await;
    assert!(
        seen.headers[header::LOCATION]
            .to_str()
            .expect("ASCII")
            .starts_with("/sign-in?refused")
    );
    assert!(!seen.headers.contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn a_sign_in_link_works_once() {
    let site = Site::start().await;
    let link = site.console.sign_in_path();
    let seen = site.browse("", &link).await;
    let cookie = seen.headers[header::SET_COOKIE].to_str().expect("ASCII");
    let cookie = cookie.split(';').next().expect("a pair").to_owned();
    assert_eq!(site.browse(&cookie, "/").await.status, StatusCode::OK);
    let again = site.browse("", &link).await;
    assert!(!again.headers.contains_key(header::SET_COOKIE));
    let signed_in = site.browse(&cookie, &link).await;
    assert_eq!(
        signed_in.headers[header::LOCATION],
        "/",
        "no harm to a browser that is signed in"
    );
}

#[tokio::test]
async fn a_session_survives_a_restart_of_the_console() {
    let site = Site::start().await;
    let cookie = site.sign_in("ada-secret").await;
    let other = outlast_console::Console::builder(site.engine().clone())
        .authenticate(outlast::transport::http::BearerTokens::shared([
            outlast::transport::http::Token::new("ada", "ada-secret"),
        ]))
        .instance("test")
        .build();
    let site = Site {
        service: other.clone().into_service(),
        console: other,
        ..site
    };
    assert_eq!(site.browse(&cookie, "/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_revoked_token_ends_its_sessions() {
    let site = Site::start().await;
    let cookie = site.sign_in("bob-secret").await;
    assert_eq!(site.browse(&cookie, "/").await.status, StatusCode::OK);
    let without_bob = outlast_console::Console::builder(site.engine().clone())
        .authenticate(outlast::transport::http::BearerTokens::shared([]))
        .instance("test")
        .build();
    let site = Site {
        service: without_bob.into_service(),
        ..site
    };
    assert_eq!(
        site.browse(&cookie, "/").await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn two_consoles_on_one_host_have_different_cookies() {
    let site = Site::start().await;
    let first = site.sign_in("ada-secret").await;
    let tokens =
        outlast::transport::http::BearerTokens::shared([outlast::transport::http::Token::new(
            "ada",
            "ada-secret",
        )]);
    let other = outlast_console::Console::builder(site.engine().clone())
        .authenticate(tokens)
        .instance("another")
        .build();
    let site = Site {
        service: other.into_service(),
        ..site
    };
    let second = site.sign_in("ada-secret").await;
    let name = |cookie: &str| cookie.split('=').next().map(str::to_owned);
    assert_ne!(name(&first), name(&second));
}

#[tokio::test]
async fn a_change_needs_the_own_origin_and_the_csrf_token() {
    let site = Site::start().await;
    let cookie = site.sign_in("ada-secret").await;
    let csrf = site.csrf(&cookie).await;
    let change = |origin: Option<&str>, body: String| {
        let mut request = Request::post("/sign-out")
            .header(header::HOST, HOST)
            .header(header::COOKIE, &cookie)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        request.body(Body::from(body)).expect("a request")
    };
    let own = format!("http://{HOST}");
    let valid = format!("csrf={csrf}");
    for (origin, body) in [
        (None, valid.clone()),
        (Some("http://evil.example"), valid.clone()),
        (Some("http://127.0.0.1:9999"), valid.clone()),
        (Some("null"), valid.clone()),
        (Some(own.as_str()), "csrf=wrong".to_owned()),
        (Some(own.as_str()), String::new()),
    ] {
        let seen = site.send(change(origin, body)).await;
        assert_eq!(seen.status, StatusCode::FORBIDDEN, "{origin:?}");
    }
    assert_eq!(site.browse(&cookie, "/").await.status, StatusCode::OK);
    let seen = site.send(change(Some(&own), valid)).await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
    assert_eq!(
        site.browse(&cookie, "/").await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn every_response_forbids_foreign_and_inline_scripts() {
    let site = Site::start().await;
    let cookie = site.sign_in("ada-secret").await;
    for (cookie, path) in [
        (cookie.as_str(), "/"),
        ("", "/"),
        (cookie.as_str(), "/nothing"),
    ] {
        let seen = site.browse(cookie, path).await;
        let policy = seen.headers[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .expect("ASCII");
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(seen.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(seen.headers[header::CACHE_CONTROL], "no-store");
        assert!(
            !seen.text.contains("style=") && !seen.text.contains("<script>"),
            "{}",
            seen.text
        );
        assert!(!seen.text.contains("=\"http"), "{}", seen.text);
    }
}

#[tokio::test]
async fn assets_have_versioned_urls_and_are_cached() {
    let site = Site::start().await;
    let page = site.browse("", "/").await.text;
    let (_, rest) = page.split_once("href=\"/assets/").expect("a style sheet");
    let path = format!("/assets/{}", rest.split('"').next().expect("its end"));
    let seen = site.browse("", &path).await;
    assert_eq!(seen.status, StatusCode::OK);
    assert!(
        seen.headers[header::CACHE_CONTROL]
            .to_str()
            .expect("ASCII")
            .contains("immutable")
    );
    let old = site.browse("", "/assets/old/console.css").await;
    assert_eq!(old.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(
        site.browse("", "/assets/old/other.css").await.status,
        StatusCode::NOT_FOUND
    );
}
