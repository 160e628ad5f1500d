//! The web console next to the MCP endpoints.

use std::sync::Arc;

use outlast::engine::Engine;
use outlast::server::Scopes;
use outlast::store::StoreUrl;
use outlast::transport::http::{Authenticate, BearerTokens, Token};
use outlast_console::{Console, ConsoleBuilder};

use super::token::{self, LOCAL};
use crate::dirs;
use crate::exit::Failure;

/// The console of the tasks in `store`. Without `authenticate` it admits the local token alone,
/// because it shows the tasks of every owner. `secret` is that token.
pub(crate) fn console(
    engine: &Engine,
    store: &StoreUrl,
    secret: String,
    authenticate: Option<Arc<dyn Authenticate>>,
) -> ConsoleBuilder {
    let authenticate = authenticate.unwrap_or_else(|| {
        BearerTokens::shared([Token::new(LOCAL, &secret).with_scopes(Scopes::ALL)])
    });
    let at = match dirs::gateway_store() {
        Ok(usual) if usual == *store => String::new(),
        _ => format!(" --store {}", dirs::store_argument(store)),
    };
    let builder = Console::builder(engine.clone())
        .authenticate(authenticate)
        .sign_in_secret(secret)
        .token_hint(format!(
            "On this machine, `outlast gateway token{at}` prints your token. \
             For another person, `outlast token add NAME{at}` creates one."
        ));
    match store {
        // Several gateways can have a store in memory, so its name identifies none of them.
        StoreUrl::Memory => builder,
        StoreUrl::Sqlite(_) | StoreUrl::Postgres(_) => {
            builder.instance(dirs::store_argument(store))
        }
    }
}

/// The local token of `store`. The first start creates it.
pub(crate) fn secret(store: &StoreUrl) -> Result<String, Failure> {
    token::local(store)
}
