//! Who may come in: the local token, made at the first start and kept beside the store, and those of a file.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outlast::engine::random;
use outlast::store::StoreUrl;
use outlast::transport::http::Token;

use crate::exit::Failure;
use crate::place;

/// The tokens of a gateway.
#[derive(Default)]
pub(super) struct Tokens {
    /// The one for the user of this machine.
    pub(super) local: Option<String>,
    pub(super) all: Vec<Token>,
}

impl Tokens {
    /// The local token of the gateway on that store, and those that `file` names.
    pub(super) fn find(store: &StoreUrl, file: Option<&Path>) -> Result<Self, Failure> {
        let path = path(store)?;
        let local = match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => text.trim().to_owned(),
            _ => drawn(&path)?,
        };
        let mut all = vec![Token::new(LOCAL, &local)];
        if let Some(file) = file {
            let wrong = |error: String| {
                Failure::Usage(format!(
                    "{}: {error}\n  next: write an object of names and secrets, such as {{\"ada\": \"...\"}}",
                    file.display()
                ))
            };
            let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
            let named: BTreeMap<String, String> =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            all.extend(named.iter().map(|(name, secret)| Token::new(name, secret)));
        }
        Ok(Self {
            local: Some(local),
            all,
        })
    }
}

/// Draws a token and keeps it where only its owner can read it.
fn drawn(path: &Path) -> Result<String, Failure> {
    let token = format!("outlast_{}", random::token::<32>());
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    Ok(token)
}

fn path(store: &StoreUrl) -> std::io::Result<PathBuf> {
    match store {
        StoreUrl::Sqlite(path) => {
            let mut name = path.clone().into_os_string();
            name.push(".token");
            Ok(name.into())
        }
        StoreUrl::Memory => Ok(place::data_folder()?.join("token")),
    }
}

/// The name of the user of this machine.
const LOCAL: &str = "local";
