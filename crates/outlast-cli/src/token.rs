//! `outlast token`: tokens for clients of a gateway, also while it runs.

use outlast::server::Scopes;
use outlast::store::StoreUrl;
use serde_json::json;

use crate::args::{Token, TokenAdd, TokenCommand, TokenStore};
use crate::dirs;
use crate::exit::Failure;
use crate::serve::TokenFile;
use crate::terminal::{clean, say, show};

pub(crate) fn run(token: &Token) -> Result<(), Failure> {
    match &token.command {
        TokenCommand::Add(add) => run_add(add),
        TokenCommand::List(list) => {
            let tokens = TokenFile::read(&store(&list.store)?)?.tokens;
            if list.json {
                let tokens = tokens.iter().map(|token| {
                    let scopes: Vec<_> = token.scopes.split(' ').collect();
                    json!({ "name": token.name, "scopes": scopes })
                });
                show!("{}", json!({ "tokens": tokens.collect::<Vec<_>>() }));
            } else if tokens.is_empty() {
                say!("No tokens. `outlast token add NAME` creates one.");
            } else {
                for token in tokens {
                    show!("{}  {}", clean(&token.name), clean(&token.scopes));
                }
            }
            Ok(())
        }
        TokenCommand::Revoke(revoke) => {
            let store = store(&revoke.store)?;
            let mut file = TokenFile::read(&store)?;
            file.revoke(&revoke.name)?;
            file.write(&store)?;
            say!(
                "The token of {} is no longer admitted.",
                clean(&revoke.name)
            );
            Ok(())
        }
    }
}

fn run_add(add: &TokenAdd) -> Result<(), Failure> {
    let scopes = match (&add.scopes, add.read_only, add.operator) {
        (Some(scopes), ..) => scopes
            .parse()
            .map_err(|error| Failure::Usage(format!("{error}")))?,
        (None, true, _) => Scopes::READ,
        (None, _, true) => Scopes::ALL,
        (None, false, false) => Scopes::CLIENT,
    };
    let store = store(&add.store)?;
    let mut file = TokenFile::read(&store)?;
    let secret = file.add(&add.name, scopes)?;
    file.write(&store)?;
    show!("{secret}");
    say!(
        "This is the only time that the token of {} is shown. Its scopes: {scopes}",
        clean(&add.name)
    );
    Ok(())
}

fn store(store: &TokenStore) -> Result<StoreUrl, Failure> {
    match &store.store {
        Some(url) => Ok(url.clone()),
        None => dirs::gateway_store(),
    }
}
