//! Determines the upstream servers and their names.

use std::net::SocketAddr;
use std::path::Path;

use outlast::client::Target;
use outlast::gateway::{Settings, Upstream};
use outlast::transport::http_client::HttpClientOptions;
use serde_json::Value;
use url::{Host, Url};

use super::limits::{self, Limits};
use super::server_name::server_name;
use super::settings;
use crate::args::Serve;
use crate::exit::Failure;
use crate::target::{
    BehindRelay, Config, ServerAddress, child_of, http_of, http_url, not_an_object,
};

/// Returns the servers that the arguments name, and the limits.
pub(super) fn all(args: &Serve) -> Result<(Vec<Upstream>, Limits), Failure> {
    if let Some(path) = &args.config {
        return from_file(path, args.verbose, args.http);
    }
    let limits = match &args.limits {
        Some(text) => parse_option("--limits", text, limits::read)?,
        None => Limits::default(),
    };
    let settings = match &args.settings {
        Some(text) => parse_option("--settings", text, settings::read)?,
        None => Settings::default(),
    };
    Ok((vec![single_upstream(args, settings)?], limits))
}

/// Returns the single server that the arguments name.
fn single_upstream(args: &Serve, settings: Settings) -> Result<Upstream, Failure> {
    match (&args.url, &args.command[..]) {
        (Some(url), _) => at_url(args, url, settings),
        (None, [_, ..]) => {
            let inner = BehindRelay::of(&args.command);
            let inner = inner.map_err(|why| Failure::Usage(format!("the server: {why}")))?;
            let (command, settings) = match inner {
                Some(inner) => (
                    inner.command,
                    match (&args.settings, &inner.settings) {
                        (None, Some(object)) => settings::read(object)
                            .map_err(|why| Failure::Usage(format!("--settings: {why}")))?,
                        _ => settings,
                    },
                ),
                None => (args.command.clone(), settings),
            };
            let name = args.name.clone().unwrap_or_else(|| {
                let here = std::env::current_dir().unwrap_or_default();
                server_name(&command, &here)
            });
            check(&name)?;
            let mut words = command.into_iter();
            let program = words.next().unwrap_or_default();
            let target = Target::child(child_of(program, words.collect(), args.verbose));
            Ok(Upstream::new(name, target, settings))
        }
        (None, []) => Err(Failure::Usage(
            "no server is given\n  next: give its command after `--`, a --url, or a --config file"
                .into(),
        )),
    }
}

/// Parses a JSON object that was given as an option.
fn parse_option<T>(
    option: &str,
    text: &str,
    read: fn(&Value) -> Result<T, String>,
) -> Result<T, Failure> {
    let object = serde_json::from_str(text)
        .map_err(|error| Failure::Usage(not_an_object(option, &error)))?;
    read(&object).map_err(|why| Failure::Usage(format!("{option}: {why}")))
}

fn from_file(
    path: &Path,
    verbose: bool,
    address: SocketAddr,
) -> Result<(Vec<Upstream>, Limits), Failure> {
    let config = Config::find(Some(path))?;
    let limits = match config.limits()? {
        Some(object) => limits::read(&object).map_err(|why| config.wrong_in_all(&why))?,
        None => Limits::default(),
    };
    let mut all = Vec::new();
    for name in config.names() {
        check(name)?;
        let wrong = |why: String| config.wrong(name, &why);
        let (place, of_relay) = config.address(name)?.behind_relay().map_err(wrong)?;
        let settings = match config.settings(name)?.or(of_relay) {
            Some(object) => settings::read(&object).map_err(wrong)?,
            None => Settings::default(),
        };
        refuse_unused_credentials(&settings, &place).map_err(wrong)?;
        if let ServerAddress::Http { url, .. } = &place {
            refuse_itself(name, url, address)?;
        }
        let target = place.target(verbose, None);
        all.push(Upstream::new(name, target, settings));
    }
    if all.is_empty() {
        Err(Failure::Usage(format!(
            "{} has no server\n  next: add servers under `mcpServers`",
            path.display()
        )))
    } else {
        Ok((all, limits))
    }
}

fn at_url(args: &Serve, url: &str, settings: Settings) -> Result<Upstream, Failure> {
    let url = &http_url(url).map_err(|why| Failure::Usage(format!("--url: {why}")))?;
    let mut options: HttpClientOptions = http_of(url);
    for header in &args.header {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            Failure::Usage(format!(
                "`{header}` is not a header\n  next: write `NAME: VALUE`"
            ))
        })?;
        let pair = (name.trim().to_owned(), value.trim().to_owned());
        options.headers.push(pair);
    }
    let name = args.name.clone().unwrap_or_else(|| host(url));
    check(&name)?;
    refuse_itself(&name, url, args.http)?;
    Ok(Upstream::new(name, Target::http(options), settings))
}

/// Refuses credentials of principals that the transport of the server does not have.
fn refuse_unused_credentials(settings: &Settings, place: &ServerAddress) -> Result<(), String> {
    for (name, own) in &settings.principals {
        let unused = match place {
            ServerAddress::Http { .. } if !own.env.is_empty() => {
                "`env`: the server is at a URL\n  next: use `headers`"
            }
            ServerAddress::Command { .. } if !own.headers.is_empty() => {
                "`headers`: the server is a command\n  next: use `env`"
            }
            _ => continue,
        };
        return Err(format!("principal {name} has no use for {unused}"));
    }
    Ok(())
}

/// Refuses an upstream that is this gateway, because its calls would loop.
fn refuse_itself(name: &str, url: &str, address: SocketAddr) -> Result<(), Failure> {
    if address.port() == 0 || !is_at(url, address) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "server {name} is at {url}, which is the address of this gateway\n  next: remove that server, or choose another address \
         with --http"
    )))
}

/// Whether `url` leads to a listener at `address` on this machine.
fn is_at(url: &str, address: SocketAddr) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let own = address.ip();
    let same_host = match url.host() {
        Some(Host::Domain(name)) => {
            name == "localhost" && (own.is_loopback() || own.is_unspecified())
        }
        Some(Host::Ipv4(ip)) => ip == own || ip.is_loopback() && own.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip == own || ip.is_loopback() && own.is_unspecified(),
        None => false,
    };
    same_host && url.port_or_known_default() == Some(address.port())
}

/// Checks a name, because it is part of a URL.
fn check(name: &str) -> Result<(), Failure> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.len() <= 100 && name.chars().all(fine) {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "`{name}` is not a valid name for a server\n  next: use letters, digits, `-`, `_` and `.`"
        )))
    }
}

fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    if host.is_empty() {
        "server".into()
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_refuses_to_serve_itself() {
        let [local, any] = ["127.0.0.1:8040", "0.0.0.0:8040"].map(|text| text.parse().unwrap());
        for (url, address, expected) in [
            ("http://127.0.0.1:8040/mcp", local, true),
            ("http://localhost:8040/mcp/x", local, true),
            ("http://127.0.0.1:8040/mcp", any, true),
            ("http://[::1]:8040/mcp", any, true),
            ("http://127.0.0.1:8041/mcp", local, false),
            ("http://192.0.2.7:8040/mcp", local, false),
            ("http://localhost/mcp", local, false),
        ] {
            assert_eq!(is_at(url, address), expected, "{url} {address}");
        }
        let any_port = "127.0.0.1:0".parse().unwrap();
        assert!(refuse_itself("a", "http://127.0.0.1:8040/mcp", any_port).is_ok());
    }

    #[test]
    fn a_name_is_a_part_of_a_url() {
        assert_eq!(host("https://example.org:8/mcp"), "example.org");
        assert!(check("files-2.x_y").is_ok());
        assert!(check("a/b").is_err() && check("").is_err() && check("ü").is_err());
    }
}
