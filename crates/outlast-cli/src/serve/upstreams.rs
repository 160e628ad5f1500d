//! Which servers are served, and under which names.

use std::path::Path;

use outlast::back::Target;
use outlast::gateway::{Settings, Upstream};
use outlast::transport::http_client::HttpClientOptions;
use serde_json::Value;

use super::called::called;
use super::limits::{self, Limits};
use super::settings;
use crate::args::Serve;
use crate::exit::Failure;
use crate::target::{Config, child_of, http_of};

/// The servers that are meant.
pub(super) fn all(args: &Serve) -> Result<(Vec<Upstream>, Limits), Failure> {
    if let Some(path) = &args.config {
        return from_file(path, args.verbose);
    }
    let limits = match &args.limits {
        Some(text) => said("--limits", text, limits::read)?,
        None => Limits::default(),
    };
    let settings = match &args.settings {
        Some(text) => said("--settings", text, settings::read)?,
        None => Settings::default(),
    };
    Ok((vec![one(args, settings)?], limits))
}

/// The only server.
fn one(args: &Serve, settings: Settings) -> Result<Upstream, Failure> {
    match (&args.url, &args.command[..]) {
        (Some(url), _) => at_url(args, url, settings),
        (None, [program, rest @ ..]) => {
            let name = args.name.clone().unwrap_or_else(|| {
                let here = std::env::current_dir().unwrap_or_default();
                called(&args.command, &here)
            });
            check(&name)?;
            let target = Target::child(child_of(program.clone(), rest.to_vec(), args.verbose));
            Ok(Upstream::new(name, target, settings))
        }
        (None, []) => Err(Failure::Usage(
            "which server?\n  next: put its command after `--`, or name a --url or a --config"
                .into(),
        )),
    }
}

/// An object that was typed.
fn said<T>(option: &str, text: &str, read: fn(&Value) -> Result<T, String>) -> Result<T, Failure> {
    let object = serde_json::from_str(text).map_err(|error| error.to_string());
    let read = object.and_then(|object| read(&object));
    read.map_err(|why| Failure::Usage(format!("{option}: {why}")))
}

fn from_file(path: &Path, verbose: bool) -> Result<(Vec<Upstream>, Limits), Failure> {
    let config = Config::find(Some(path))?;
    let limits = match config.limits() {
        Some(object) => limits::read(object).map_err(|why| config.wrong_in_all(&why))?,
        None => Limits::default(),
    };
    let mut all = Vec::new();
    for name in config.names() {
        check(name)?;
        let settings = match config.settings(name) {
            Some(object) => settings::read(object).map_err(|why| config.wrong(name, &why))?,
            None => Settings::default(),
        };
        let target = config.place(name)?.target(verbose);
        all.push(Upstream::new(name, target, settings));
    }
    match all.is_empty() {
        true => Err(Failure::Usage(format!(
            "{} names no server\n  next: write some under `mcpServers`",
            path.display()
        ))),
        false => Ok((all, limits)),
    }
}

fn at_url(args: &Serve, url: &str, settings: Settings) -> Result<Upstream, Failure> {
    let mut options: HttpClientOptions = http_of(url);
    for header in &args.header {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            Failure::Usage(format!(
                "`{header}` is no header\n  next: write `NAME: VALUE`"
            ))
        })?;
        let pair = (name.trim().to_owned(), value.trim().to_owned());
        options.headers.push(pair);
    }
    let name = args.name.clone().unwrap_or_else(|| host(url));
    check(&name)?;
    Ok(Upstream::new(name, Target::http(options), settings))
}

/// A name is a part of a URL.
fn check(name: &str) -> Result<(), Failure> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !name.is_empty() && name.len() <= 100 && name.chars().all(fine) {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "`{name}` cannot be the name of a server here\n  next: use letters, digits, `-`, `_` and `.`"
        ))),
    }
}

fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    match host.is_empty() {
        true => "server".into(),
        false => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_part_of_a_url() {
        assert_eq!(host("https://example.org:8/mcp"), "example.org");
        assert!(check("files-2.x_y").is_ok());
        assert!(check("a/b").is_err() && check("").is_err() && check("ü").is_err());
    }
}
