//! The bearer tokens of a gateway: the local token, created at the first start and stored next to
//! the store, those of the file after `--tokens`, and those of `outlast token add`
//! (`token_file.rs`).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast::server::Scopes;
use outlast::store::StoreUrl;
use outlast::transport::http::{Authenticate, Token};
use outlast_engine::random;
use outlast_store::private_file;

use super::token_file::ReloadedTokens;
use crate::dirs;
use crate::exit::Failure;

/// The tokens of a gateway.
#[derive(Default)]
pub(super) struct Tokens {
    /// The token for the user of this machine.
    pub(super) local: Option<LocalToken>,
    /// The authentication of requests; `None` if every caller is admitted.
    pub(super) authenticate: Option<Arc<dyn Authenticate>>,
}

pub(super) enum LocalToken {
    /// Created by this start. Only then it is printed.
    New(String),
    Known,
}

impl Tokens {
    /// Loads or creates the local token of the gateway on `store`, and reads the tokens in `file`.
    pub(super) fn find(store: &StoreUrl, file: Option<&Path>) -> Result<Self, Failure> {
        let (secret, local) = match stored(store)? {
            Some(secret) => (secret, LocalToken::Known),
            None => {
                let secret = create_token(&path(store)?)?;
                (secret.clone(), LocalToken::New(secret))
            }
        };
        let mut all = vec![Token::new(LOCAL, &secret).with_scopes(Scopes::ALL)];
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
            authenticate: Some(Arc::new(ReloadedTokens::open(store, all)?)),
        })
    }
}

/// Returns the local token of the gateway on `store`, if there is one. Restricts the file to its
/// owner.
pub(crate) fn stored(store: &StoreUrl) -> Result<Option<String>, Failure> {
    let text = match private_file::read_to_string(&path(store)?) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// Loads or creates the local token of the gateway on `store`.
pub(crate) fn local(store: &StoreUrl) -> Result<String, Failure> {
    match stored(store)? {
        Some(secret) => Ok(secret),
        None => create_token(&path(store)?),
    }
}

/// Creates a token and stores it where only its owner can read it.
fn create_token(path: &Path) -> Result<String, Failure> {
    let token = format!("outlast_{}", random::token::<32>());
    let mut file = private_file::create(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    Ok(token)
}

pub(super) fn path(store: &StoreUrl) -> Result<PathBuf, Failure> {
    match store {
        StoreUrl::Sqlite(path) => {
            let mut name = path.clone().into_os_string();
            name.push(".token");
            Ok(name.into())
        }
        StoreUrl::Memory | StoreUrl::Postgres(_) => Ok(dirs::data_folder()?.join("token")),
    }
}

/// The principal of the local token.
pub(super) const LOCAL: &str = "local";
