//! DELETE: the client ends its session.

use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::answer::{self, Answer};
use super::guard::{Identity, Stated};
use super::refused::Refused;
use super::server::Endpoint;

impl Endpoint {
    pub(super) async fn delete(
        &self,
        caller: Identity,
        headers: &HeaderMap,
    ) -> Result<Answer, Refused> {
        Stated::check_once(headers)?;
        let entry = self.session(&caller, Stated::read(headers)).await?;
        self.sessions
            .end(&entry)
            .await
            .map_err(|error| Refused::Unavailable(None, error.to_string()))?;
        Ok(answer::empty(StatusCode::NO_CONTENT))
    }
}
