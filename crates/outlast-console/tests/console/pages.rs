//! What the pages show, and to whom.

use axum::http::StatusCode;

use crate::harness::Site;

#[tokio::test]
async fn an_owner_sees_only_its_own_tasks() {
    let site = Site::start().await;
    let of_ada = site.create_ended_task("ada", "echo", "{}").await;
    let of_bob = site.create_ended_task("bob", "echo", "{}").await;
    let list = site.get("ada-secret", "/tasks").await.text;
    assert!(list.contains(&of_ada.to_string()) && !list.contains(&of_bob.to_string()));
    let all = site.get("root-secret", "/tasks").await.text;
    assert!(all.contains(&of_ada.to_string()) && all.contains(&of_bob.to_string()));
    for path in ["", "/tree?part=outcome", "/content/0"] {
        let path = format!("/tasks/{of_bob}{path}");
        let seen = site.get("ada-secret", &path).await;
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{path}");
    }
    let page = site.get("bob-secret", &format!("/tasks/{of_bob}")).await;
    assert_eq!(page.status, StatusCode::OK);
    let overview = site.get("ada-secret", "/").await.text;
    assert!(
        overview.contains("data-count=\"completed\">1<"),
        "{overview}"
    );
}

#[tokio::test]
async fn the_search_language_selects_tasks() {
    let site = Site::start().await;
    let echo = site
        .create_ended_task("ada", "echo", "{}")
        .await
        .to_string();
    let broken = site
        .create_ended_task("ada", "broken", "{}")
        .await
        .to_string();
    for (query, shows_echo, shows_broken) in [
        ("", true, true),
        ("status:failed", false, true),
        ("status:completed,failed", true, true),
        ("tool:echo", true, false),
        ("it+broke", false, true),
        ("age:%3C1h+tool:broken", false, true),
        ("owner:me", false, false),
        ("owner:ada", true, true),
        (&echo[..12], true, false),
    ] {
        let page = site
            .get("root-secret", &format!("/tasks?q={query}"))
            .await
            .text;
        let key = |id: &str| page.contains(&format!("data-key=\"{id}\""));
        assert_eq!(
            (key(&echo), key(&broken)),
            (shows_echo, shows_broken),
            "{query}"
        );
    }
    let wrong = site.get("root-secret", "/tasks?q=colour:red").await.text;
    assert!(
        wrong.contains("data-problem") && wrong.contains("colour:"),
        "{wrong}"
    );
}

#[tokio::test]
async fn older_tasks_are_on_the_next_page() {
    let site = Site::start().await;
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(
            site.create_ended_task("ada", "echo", "{}")
                .await
                .to_string(),
        );
    }
    let first = site.get("ada-secret", "/tasks").await.text;
    let (_, link) = first
        .split_once("id=\"older\" rel=\"next\" href=\"")
        .expect("a next page");
    let link = link
        .split('"')
        .next()
        .expect("its end")
        .replace("&#38;", "&")
        .replace("&amp;", "&");
    let second = site.get("ada-secret", &link).await.text;
    for (at, id) in ids.iter().rev().enumerate() {
        let key = format!("data-key=\"{id}\"");
        assert_eq!(
            (first.contains(&key), second.contains(&key)),
            (at < 50, at >= 50),
            "{at}"
        );
    }
    assert!(first.contains("60 tasks"), "the number of all");
    // What the live page asks for: rows that it shows although they are on another page.
    let also = site
        .get("ada-secret", &format!("/tasks?also={}", ids[0]))
        .await
        .text;
    assert!(also.contains(&ids[0]));
}

#[tokio::test]
async fn hostile_strings_are_text() {
    let site = Site::start().await;
    let hostile = r#"{"text":"<script>alert(1)</script><img src=x onerror=alert(2)>"}"#;
    let id = site.create_ended_task("ada", "echo", hostile).await;
    let named = site
        .create_ended_task("ada", "\"><script>alert(3)</script>", "{}")
        .await;
    for path in [
        format!("/tasks/{id}"),
        format!("/tasks/{named}"),
        "/tasks".to_owned(),
        "/".to_owned(),
    ] {
        let page = site.get("ada-secret", &path).await.text;
        assert!(
            !page.contains("<script>alert") && !page.contains("<img src=x"),
            "{path}: {page}"
        );
    }
    let page = site.get("ada-secret", &format!("/tasks/{id}")).await.text;
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
    let search = site
        .get("ada-secret", "/tasks?q=%22%3E%3Cscript%3Ealert(4)")
        .await
        .text;
    assert!(!search.contains("<script>alert"), "{search}");
}

#[tokio::test]
async fn a_tree_keeps_large_integers_exact() {
    let site = Site::start().await;
    let arguments = r#"{"text":"a","ids":[12345678901234567890123,1.0]}"#;
    let id = site.create_ended_task("ada", "echo", arguments).await;
    let tree = site
        .get(
            "ada-secret",
            &format!("/tasks/{id}/tree?part=arguments&path=/ids"),
        )
        .await;
    assert!(tree.text.contains("12345678901234567890123") && tree.text.contains(">1.0<"));
    let none = site
        .get(
            "ada-secret",
            &format!("/tasks/{id}/tree?part=arguments&path=/x"),
        )
        .await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_large_result_makes_a_small_page() {
    let site = Site::start().await;
    let id = site.create_ended_task("ada", "large", "{}").await;
    let page = site.get("ada-secret", &format!("/tasks/{id}")).await.text;
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("12.0 MiB") && page.contains("The text is longer"));
    let all = site
        .get("ada-secret", &format!("/api/v1/tasks/{id}/result"))
        .await
        .text;
    assert!(all.len() > 12 << 20);
}

#[tokio::test]
async fn an_outcome_is_rendered_by_its_kinds() {
    let site = Site::start().await;
    let result = r#"{\"content\":[{\"type\":\"text\",\"text\":\"hello\"},{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"iVBORw==\"},{\"type\":\"resource_link\",\"name\":\"doc\",\"uri\":\"javascript:alert(1)\"}],\"structuredContent\":{\"n\":7}}"#;
    let id = site
        .create_ended_task("ada", "raw", &format!("{{\"result\":\"{result}\"}}"))
        .await;
    let page = site.get("ada-secret", &format!("/tasks/{id}")).await.text;
    assert!(page.contains("data-block=\"text\">hello<"), "{page}");
    assert!(
        page.contains(&format!("src=\"/tasks/{id}/content/1\"")),
        "{page}"
    );
    assert!(
        page.contains("<code>javascript:alert(1)</code>"),
        "no link: {page}"
    );
    assert!(page.contains("id=\"structured\"") && page.contains(">7<"));
    let image = site
        .get("ada-secret", &format!("/tasks/{id}/content/1"))
        .await;
    assert_eq!(image.headers["content-type"], "image/png");
    let failed = site.create_ended_task("ada", "broken", "{}").await;
    let page = site
        .get("ada-secret", &format!("/tasks/{failed}"))
        .await
        .text;
    assert!(
        page.contains("it broke") && page.contains("data-kind=\"failed\""),
        "{page}"
    );
}

#[tokio::test]
async fn a_waiting_task_shows_its_question() {
    let site = Site::start().await;
    let id = site.task("ada", "ask", "{}").await;
    let path = format!("/tasks/{id}");
    let page = outlast_testkit::wait_for("the question", async || {
        let page = site.get("ada-secret", &path).await.text;
        page.contains("data-request=").then_some(page)
    });
    let page = page.await;
    assert!(page.contains("What is &#60;your&#62; name?"), "{page}");
    assert!(page.contains("name=\"/name\"") && page.contains("value=\"accept\""));
    let read_only = site.get("ada-reads", &path).await.text;
    assert!(!read_only.contains("value=\"accept\"") && read_only.contains("readonly"));
}

#[tokio::test]
async fn an_empty_console_says_how_to_begin() {
    let site = Site::start().await;
    let page = site.get("ada-secret", "/").await.text;
    assert!(
        page.contains("outlast call http://127.0.0.1:8040/mcp TOOL"),
        "{page}"
    );
}
