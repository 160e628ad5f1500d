//! The file with the tokens that `outlast token add` creates, next to the store.
//!
//! It contains names, scopes and hashes, never a secret. A running gateway reads it again when it
//! changes, so that a new token is admitted and a revoked one refused without a restart.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use outlast::server::{HttpParts, Identity, Scopes};
use outlast::store::StoreUrl;
use outlast::transport::http::{Authenticate, BearerTokens, Token, Unauthenticated};
use outlast_engine::random;
use outlast_store::private_file;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::token;
use crate::exit::Failure;

/// A token as the file contains it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    pub(crate) name: String,
    /// The names of its scopes.
    pub(crate) scopes: String,
    /// The SHA-256 of the secret, in hexadecimal digits.
    sha256: String,
}

/// The tokens of one store.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TokenFile {
    pub(crate) tokens: Vec<StoredToken>,
}

impl TokenFile {
    /// Reads the tokens of the gateway on `store`. Without a file there are no tokens.
    pub(crate) fn read(store: &StoreUrl) -> Result<Self, Failure> {
        read(&path(store)?)
    }

    /// Adds a token and returns its secret.
    pub(crate) fn add(&mut self, name: &str, scopes: Scopes) -> Result<String, Failure> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name == token::LOCAL {
            return Err(Failure::Usage(format!(
                "`{name}` cannot be the name of a token\n  next: use 1 to {MAX_NAME_BYTES} bytes, and not `{}`",
                token::LOCAL
            )));
        }
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(Failure::Usage(format!(
                "there is a token named {name}\n  next: choose another name, or `outlast token revoke {name}`"
            )));
        }
        let secret = format!("outlast_{}", random::token::<32>());
        self.tokens.push(StoredToken {
            name: name.to_owned(),
            scopes: scopes.to_string(),
            sha256: hex(&Sha256::digest(secret.as_bytes())),
        });
        Ok(secret)
    }

    /// Removes a token.
    pub(crate) fn revoke(&mut self, name: &str) -> Result<(), Failure> {
        let before = self.tokens.len();
        self.tokens.retain(|token| token.name != name);
        if self.tokens.len() == before {
            return Err(Failure::Usage(format!(
                "there is no token named {name}\n  next: `outlast token list` lists the tokens"
            )));
        }
        Ok(())
    }

    /// Replaces the file, so that a reader sees the old or the new tokens.
    pub(crate) fn write(&self, store: &StoreUrl) -> Result<(), Failure> {
        let path = path(store)?;
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let mut file = private_file::create(&new)?;
        serde_json::to_writer_pretty(&mut file, self).map_err(std::io::Error::other)?;
        writeln!(file)?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        Ok(())
    }
}

/// Admits the tokens of the file, and others that do not change while the gateway runs.
pub(super) struct ReloadedTokens {
    path: PathBuf,
    fixed: Vec<Token>,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    tokens: BearerTokens,
    /// When the file was written that `tokens` came from.
    written: Option<SystemTime>,
    checked: Instant,
}

impl ReloadedTokens {
    pub(super) fn open(store: &StoreUrl, fixed: Vec<Token>) -> Result<Self, Failure> {
        let path = path(store)?;
        let written = modified(&path);
        let tokens = all_tokens(&fixed, &read(&path)?)?;
        let loaded = Loaded {
            tokens,
            written,
            checked: Instant::now(),
        };
        Ok(Self {
            path,
            fixed,
            loaded: Mutex::new(loaded),
        })
    }

    /// Reads the file again if it has changed. A file that cannot be read admits no token of it.
    fn current(&self) -> BearerTokens {
        let mut loaded = self.loaded.lock();
        if loaded.checked.elapsed() >= CHECK_INTERVAL {
            loaded.checked = Instant::now();
            let written = modified(&self.path);
            if written != loaded.written {
                loaded.written = written;
                let read = read(&self.path).and_then(|file| all_tokens(&self.fixed, &file));
                loaded.tokens = read.unwrap_or_else(|error| {
                    tracing::error!(file = %self.path.display(), %error, "cannot read the tokens");
                    BearerTokens::new(self.fixed.clone())
                });
            }
        }
        loaded.tokens.clone()
    }
}

#[async_trait]
impl Authenticate for ReloadedTokens {
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
        self.current().identify(&request.headers)
    }
}

fn all_tokens(fixed: &[Token], file: &TokenFile) -> Result<BearerTokens, Failure> {
    let mut tokens = fixed.to_vec();
    for stored in &file.tokens {
        let wrong = || {
            Failure::Usage(format!(
                "the stored token {} is damaged\n  next: `outlast token revoke {}`, then add it again",
                stored.name, stored.name
            ))
        };
        let scopes = stored.scopes.parse::<Scopes>().map_err(|_| wrong())?;
        let hash = parse_hex(&stored.sha256).ok_or_else(wrong)?;
        tokens.push(Token::hashed(&stored.name, hash).with_scopes(scopes));
    }
    Ok(BearerTokens::new(tokens))
}

fn read(path: &Path) -> Result<TokenFile, Failure> {
    let text = match private_file::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(TokenFile::default());
        }
        Err(error) => return Err(error.into()),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!(
            "{} is not a file of tokens: {error}\n  next: remove it, then add your tokens again",
            path.display()
        ))
    })
}

fn path(store: &StoreUrl) -> Result<PathBuf, Failure> {
    let mut name = token::path(store)?.into_os_string();
    name.push("s.json");
    Ok(name.into())
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// How often a running gateway looks whether the file has changed.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

const MAX_NAME_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_stored_hashed_and_revoked_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = StoreUrl::Sqlite(folder.path().join("tasks.db"));
        let mut file = TokenFile::read(&store).expect("no file");
        let secret = file.add("ada", Scopes::READ).expect("a new name");
        assert!(file.add("ada", Scopes::READ).is_err());
        assert!(file.add(token::LOCAL, Scopes::READ).is_err());
        file.write(&store).expect("a folder");
        let text = std::fs::read_to_string(path(&store).expect("a path")).expect("a file");
        assert!(
            !text.contains(&secret) && text.contains("\"read\""),
            "{text}"
        );
        let mut file = TokenFile::read(&store).expect("the file");
        assert!(all_tokens(&[], &file).is_ok());
        file.revoke("ada").expect("a token");
        assert!(file.revoke("ada").is_err());
    }
}
