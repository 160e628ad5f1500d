//! The pass of a forwarded request: what the receiving node knows of the caller, sealed with the
//! keys in the store.
//!
//! Only nodes of the same store can make or read a pass. It is bound to one method, path and
//! session, and is valid for [`MAX_PASS_AGE`], so that a recorded pass cannot be used for another
//! request or later.

use std::net::IpAddr;
use std::time::Duration;

use hyper::Method;
use hyper::header::HeaderName;
use outlast_engine::Owner;
use outlast_engine::store::StoreError;
use serde::{Deserialize, Serialize};

use super::{Nodes, now};
use crate::server::{Identity, Scopes};

/// The caller of a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::transport::http) struct Pass {
    pub(in crate::transport::http) identity: Identity,
    /// The address of the caller.
    pub(in crate::transport::http) address: IpAddr,
}

/// The sealed text.
#[derive(Serialize, Deserialize)]
struct SealedPass {
    owner: Option<String>,
    scopes: String,
    address: IpAddr,
    /// The request that the pass is for.
    request: String,
    issued_ms: u64,
}

impl Nodes {
    /// The header value of a pass for one request.
    pub(super) async fn seal_pass(
        &self,
        pass: &Pass,
        request: String,
    ) -> Result<String, StoreError> {
        let sealed = SealedPass {
            owner: pass
                .identity
                .owner()
                .map(|owner| owner.to_storage().into_owned()),
            scopes: pass.identity.scopes().to_string(),
            address: pass.address,
            request,
            issued_ms: now().0,
        };
        let text = serde_json::to_vec(&sealed).expect("strings and numbers are JSON");
        self.keys.seal(&text, PURPOSE, now()).await
    }

    /// Reads the pass of a request; `None` if it is not valid for it.
    pub(super) async fn open_pass(
        &self,
        text: &str,
        request: &str,
    ) -> Result<Option<Pass>, StoreError> {
        let opened = self.keys.open(text, PURPOSE, now()).await?;
        let sealed: Option<SealedPass> =
            opened.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let valid = sealed.filter(|sealed| {
            let age = now().0.abs_diff(sealed.issued_ms);
            sealed.request == request && u128::from(age) <= MAX_PASS_AGE.as_millis()
        });
        Ok(valid.and_then(SealedPass::read))
    }
}

impl SealedPass {
    fn read(self) -> Option<Pass> {
        let owner = match self.owner {
            Some(owner) => Some(owner.parse::<Owner>().ok()?),
            None => None,
        };
        let scopes: Scopes = self.scopes.parse().ok()?;
        Some(Pass {
            identity: Identity::of_node(owner, scopes),
            address: self.address,
        })
    }
}

/// What a pass is bound to.
pub(super) fn request_name(method: &Method, path: &str, session: Option<&str>) -> String {
    format!("{method} {path} {}", session.unwrap_or_default())
}

/// The header with the pass.
pub(super) const PASS: HeaderName = HeaderName::from_static("outlast-pass");

const PURPOSE: &[u8] = b"outlast pass 1";

/// How old a pass may be, and how much the clocks of two nodes may differ.
const MAX_PASS_AGE: Duration = Duration::from_secs(300);
