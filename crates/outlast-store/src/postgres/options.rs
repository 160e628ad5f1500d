//! The URL of a database, completed by the `PG…` variables that `libpq` reads.
//!
//! `tokio-postgres` parses the URL. Options that it does not know are taken out first: the TLS modes
//! that verify, the file of root certificates, and our own `schema`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr as IpPort, ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::error::PostgresError;
use super::tls::Verification;

/// A URL such as `postgres://user:password@host/database?schema=outlast`. The password is not shown
/// by `Debug` and `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// The parameters of connections and the schema with the tables.
pub(super) struct Options {
    pub(super) config: Config,
    pub(super) verification: Verification,
    pub(super) schema: String,
}

impl PostgresUrl {
    /// The URL in `text`, which is checked when the store is opened.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole text, with the password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The address of this machine from which the first host of the URL is reached; loopback for a
    /// Unix socket. Nothing is sent.
    pub fn local_address(&self) -> Result<IpAddr, PostgresError> {
        let options = self.options(|name| std::env::var(name).ok())?;
        let port = options.config.get_ports().first().copied();
        let port = port.unwrap_or(DEFAULT_PORT);
        let url = |error: std::io::Error| PostgresError::Url(error.to_string());
        let (local, remote): (IpAddr, _) = match options.config.get_hosts().first() {
            Some(Host::Tcp(host)) => {
                let mut addresses = (host.as_str(), port).to_socket_addrs().map_err(url)?;
                match addresses.next() {
                    Some(IpPort::V4(remote)) => (Ipv4Addr::UNSPECIFIED.into(), IpPort::V4(remote)),
                    Some(IpPort::V6(remote)) => (Ipv6Addr::UNSPECIFIED.into(), IpPort::V6(remote)),
                    None => return Err(PostgresError::Url(format!("{host} has no address"))),
                }
            }
            _ => return Ok(Ipv4Addr::LOCALHOST.into()),
        };
        let socket = UdpSocket::bind((local, 0)).map_err(url)?;
        socket.connect(remote).map_err(url)?;
        Ok(socket.local_addr().map_err(url)?.ip())
    }

    /// Reads the URL. `variable` returns the value of an environment variable.
    pub(super) fn options(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Options, PostgresError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let (base, query) = self.0.split_once('?').unwrap_or((&self.0, ""));
        let (mut mode, mut roots, mut schema) = (None, None, None);
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sslmode" => mode = Some(decoded(value)?),
                "sslrootcert" => roots = Some(decoded(value)?),
                "schema" => schema = Some(decoded(value)?),
                _ => others.push(pair),
            }
        }
        let rest = if others.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", others.join("&"))
        };
        let invalid =
            |error: tokio_postgres::Error| PostgresError::Url(super::error::describe(&error));
        let mut config: Config = rest.parse().map_err(invalid)?;
        complete(&mut config, &variable)?;
        let mode = mode.or_else(|| variable("PGSSLMODE"));
        let roots = roots
            .or_else(|| variable("PGSSLROOTCERT"))
            .map(PathBuf::from);
        let (ssl_mode, verification) = tls(mode.as_deref().unwrap_or("prefer"), roots)?;
        config.ssl_mode(ssl_mode);
        let schema = schema.unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());
        // PostgreSQL cuts longer names silently.
        if schema.is_empty() || schema.len() > MAX_NAME_BYTES || schema.contains('\0') {
            let why = format!("`schema` has to have 1 to {MAX_NAME_BYTES} bytes");
            return Err(PostgresError::Url(why));
        }
        Ok(Options {
            config,
            verification,
            schema,
        })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", &self.0));
        let (authority, tail) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        write!(f, "{scheme}://")?;
        if let Some(user) = user {
            write!(f, "{}@", user.split(':').next().unwrap_or(user))?;
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        write!(f, "{host}{path}")?;
        let shown = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.starts_with("password="));
        for (number, pair) in shown.enumerate() {
            write!(f, "{}{pair}", if number == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

/// Adds what the URL does not say.
fn complete(
    config: &mut Config,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<(), PostgresError> {
    let number = |name: &str, value: &str| {
        let wrong = || PostgresError::Url(format!("{name}={value} is not a number"));
        value.trim().parse::<u16>().map_err(|_| wrong())
    };
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        match variable("PGHOST") {
            Some(hosts) => {
                for host in hosts.split(',') {
                    config.host(host);
                }
            }
            None if Path::new(SOCKET_FOLDER).exists() => {
                config.host(SOCKET_FOLDER);
            }
            None => {
                config.host("localhost");
            }
        }
    }
    if config.get_ports().is_empty()
        && let Some(ports) = variable("PGPORT")
    {
        for port in ports.split(',') {
            config.port(number("PGPORT", port)?);
        }
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        config.user(user);
    }
    if config.get_password().is_none()
        && let Some(password) = variable("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_dbname().is_none()
        && let Some(name) = variable("PGDATABASE")
    {
        config.dbname(name);
    }
    if config.get_options().is_none()
        && let Some(options) = variable("PGOPTIONS")
    {
        config.options(options);
    }
    if config.get_application_name().is_none() {
        config.application_name(variable("PGAPPNAME").unwrap_or_else(|| "outlast".into()));
    }
    if config.get_connect_timeout().is_none()
        && let Some(seconds) = variable("PGCONNECT_TIMEOUT")
    {
        let seconds = number("PGCONNECT_TIMEOUT", &seconds)?;
        config.connect_timeout(Duration::from_secs(seconds.into()));
    }
    Ok(())
}

/// The TLS mode by its name in `libpq`.
fn tls(mode: &str, roots: Option<PathBuf>) -> Result<(SslMode, Verification), PostgresError> {
    Ok(match (mode, roots) {
        ("disable", _) => (SslMode::Disable, Verification::Off),
        // `libpq` tries `allow` without TLS first. TLS first is not worse.
        ("allow" | "prefer", _) => (SslMode::Prefer, Verification::Off),
        ("require", None) => (SslMode::Require, Verification::Off),
        // As in `libpq`: a file of root certificates makes `require` verify.
        ("require" | "verify-ca", roots) => (SslMode::Require, Verification::Chain(roots)),
        ("verify-full", roots) => (SslMode::Require, Verification::ChainAndName(roots)),
        (other, _) => {
            let known = "disable, allow, prefer, require, verify-ca or verify-full";
            return Err(PostgresError::Url(format!(
                "`sslmode={other}` is not {known}"
            )));
        }
    })
}

fn decoded(value: &str) -> Result<String, PostgresError> {
    let decoded = percent_decode_str(value).decode_utf8();
    let text = decoded.map_err(|_| PostgresError::Url(format!("`{value}` is not UTF-8")))?;
    Ok(text.into_owned())
}

/// The port of a URL without one.
const DEFAULT_PORT: u16 = 5432;

/// The schema with the tables.
const DEFAULT_SCHEMA: &str = "outlast";

/// The longest name in PostgreSQL.
const MAX_NAME_BYTES: usize = 63;

/// Where `libpq` looks for a local server.
const SOCKET_FOLDER: &str = "/var/run/postgresql";

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    fn options(url: &str, variables: &[(&str, &str)]) -> Result<Options, PostgresError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        PostgresUrl::new(url).options(variable)
    }

    #[test]
    fn variables_complete_the_url_and_never_override_it() {
        let variables = [
            ("PGHOST", "elsewhere"),
            ("PGPORT", "5433"),
            ("PGUSER", "ada"),
            ("PGPASSWORD", "secret"),
            ("PGDATABASE", "tasks"),
            ("PGSSLMODE", "require"),
        ];
        let bare = options("postgres://", &variables).unwrap();
        assert_eq!(bare.config.get_hosts(), [Host::Tcp("elsewhere".into())]);
        assert_eq!(bare.config.get_ports(), [5433]);
        assert_eq!(bare.config.get_user(), Some("ada"));
        assert_eq!(bare.config.get_password(), Some(&b"secret"[..]));
        assert_eq!(bare.config.get_dbname(), Some("tasks"));
        assert_eq!(bare.config.get_ssl_mode(), SslMode::Require);
        let whole = "postgres://bob:own@here:6000/other?sslmode=disable&connect_timeout=7";
        let whole = options(whole, &variables).unwrap();
        assert_eq!(whole.config.get_hosts(), [Host::Tcp("here".into())]);
        assert_eq!(whole.config.get_ports(), [6000]);
        assert_eq!(whole.config.get_user(), Some("bob"));
        assert_eq!(whole.config.get_password(), Some(&b"own"[..]));
        assert_eq!(whole.config.get_dbname(), Some("other"));
        assert_eq!(whole.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(
            whole.config.get_connect_timeout(),
            Some(&Duration::from_secs(7))
        );
    }

    #[test]
    fn tls_modes_are_those_of_libpq() {
        let roots = Some(PathBuf::from("/etc/a b.pem"));
        let file = "sslrootcert=%2Fetc%2Fa%20b.pem";
        for (query, verification) in [
            (String::new(), Verification::Off),
            ("sslmode=require".into(), Verification::Off),
            (
                format!("sslmode=require&{file}"),
                Verification::Chain(roots.clone()),
            ),
            ("sslmode=verify-ca".into(), Verification::Chain(None)),
            (
                format!("sslmode=verify-full&{file}"),
                Verification::ChainAndName(roots),
            ),
        ] {
            let read = options(&format!("postgres://h/d?{query}"), &[]).unwrap();
            assert_eq!(read.verification, verification, "{query}");
        }
        assert!(options("postgres://h/d?sslmode=maybe", &[]).is_err());
    }

    #[test]
    fn schema_is_an_option_of_the_url() {
        assert_eq!(options("postgres://h/d", &[]).unwrap().schema, "outlast");
        let named = options("postgres://h/d?schema=my%20tasks", &[]).unwrap();
        assert_eq!(named.schema, "my tasks");
        let long = format!("postgres://h/d?schema={}", "x".repeat(64));
        assert!(options(&long, &[]).is_err() && options("postgres://h/d?schema=", &[]).is_err());
    }

    #[test]
    fn an_unknown_option_is_refused_by_name() {
        let refused = options("postgres://h/d?colour=red", &[]).err().unwrap();
        assert!(refused.to_string().contains("colour"), "{refused}");
    }

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            (
                "postgres://ada:pass:w@rd@host:5432/db?schema=s",
                "postgres://ada@host:5432/db?schema=s",
            ),
            (
                "postgresql://host/db?password=x&sslmode=require",
                "postgresql://host/db?sslmode=require",
            ),
            ("postgres://", "postgres://"),
        ] {
            assert_eq!(PostgresUrl::new(url).to_string(), shown);
        }
    }
}
