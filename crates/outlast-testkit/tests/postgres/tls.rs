//! TLS to the database, in the modes of `libpq`. The certificate is for `localhost` and 127.0.0.1.

use std::path::PathBuf;

use outlast_engine::{Owner, Store};
use outlast_store::{Postgres, PostgresUrl};
use outlast_testkit::{PostgresServer, PostgresSync, within};

use crate::connected;

#[tokio::test]
async fn certificates_are_verified_as_the_mode_says() {
    let server = PostgresServer::start(PostgresSync::Off, "");
    let port = server.port();
    let plain = format!("postgres://outlast@127.0.0.1:{port}/postgres");
    let refused = open(&format!("{plain}?sslmode=require")).await;
    assert!(refused.is_err(), "the server has no certificate yet");
    open(&plain).await.expect("`prefer` needs no TLS");
    enable_tls(&server).await;
    let roots = fixture("authority.pem");
    let roots = format!("sslrootcert={}", roots.display());
    for (host, options, accepted) in [
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("127.0.0.1", format!("sslmode=verify-ca&{roots}"), true),
        ("localhost", format!("sslmode=verify-full&{roots}"), true),
        // The certificate is for another name.
        ("other.test", format!("sslmode=verify-ca&{roots}"), true),
        ("other.test", format!("sslmode=verify-full&{roots}"), false),
        // The roots of the system did not sign it.
        ("localhost", "sslmode=verify-full".to_owned(), false),
        ("localhost", "sslmode=verify-ca".to_owned(), false),
        (
            "localhost",
            "sslmode=verify-ca&sslrootcert=/nowhere.pem".to_owned(),
            false,
        ),
    ] {
        let url = format!("postgres://outlast@{host}:{port}/postgres?hostaddr=127.0.0.1&{options}");
        let opened = open(&url).await;
        assert_eq!(opened.is_ok(), accepted, "{url}: {:?}", opened.err());
        if let Ok(store) = opened {
            store.usage(&Owner::Local).await.expect("the database runs");
            let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                             WHERE ssl AND application_name = 'outlast'";
            let count = connected(&server)
                .await
                .query_one(encrypted, &[])
                .await
                .unwrap();
            assert!(
                count.get::<_, i64>(0) > 0,
                "{url}: no connection is encrypted"
            );
            store.close().await.unwrap();
        }
    }
}

async fn open(url: &str) -> Result<Postgres, String> {
    let url = PostgresUrl::new(url);
    let opened = within("the store opens", Postgres::open(&url)).await;
    opened.map_err(|error| error.to_string())
}

/// Gives the server the certificate, and waits until new connections use it.
async fn enable_tls(server: &PostgresServer) {
    let [certificate, key] = ["server.pem", "server.key"].map(|name| {
        let text = std::fs::read_to_string(fixture(name)).expect("the fixture exists");
        server.write_file(name, &text)
    });
    let client = connected(server).await;
    for statement in [
        &format!(
            "ALTER SYSTEM SET ssl_cert_file = '{}'",
            certificate.display()
        )[..],
        &format!("ALTER SYSTEM SET ssl_key_file = '{}'", key.display()),
        "ALTER SYSTEM SET ssl = on",
        "SELECT pg_reload_conf()",
    ] {
        client
            .batch_execute(statement)
            .await
            .expect("the database runs");
    }
    let port = server.port();
    let url = format!("postgres://outlast@127.0.0.1:{port}/postgres?sslmode=require");
    let enabled = async {
        while Postgres::open(&PostgresUrl::new(&url)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    within("the server offers TLS", enabled).await;
}

fn fixture(name: &str) -> PathBuf {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../outlast/tests/client/tls");
    PathBuf::from(tests).join(name)
}
