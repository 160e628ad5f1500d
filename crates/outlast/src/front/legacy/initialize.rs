//! `initialize`: the version is settled and each side says what it can do.

use outlast_wire::{Raw, RawRef, codes, v1};

use crate::front::{Peer, Reply, Session};

impl Session {
    pub(super) async fn initialize(&self, params: Option<RawRef<'_>>) -> Reply {
        let peer = match Peer::meet(params) {
            Ok(peer) => peer,
            Err(error) => return Reply::from(error),
        };
        let plain = Raw::parse(r#"{"tools":{},"logging":{}}"#.into()).expect("a literal object");
        let capabilities = match self.front.tasks(true).filter(|_| peer.has_tasks()) {
            Some(tasks) => tasks.declare(plain.borrow()).expect("a literal object"),
            None => plain,
        };
        let result = v1::initialize_result(
            &peer.version,
            capabilities.borrow(),
            self.front.info().borrow(),
            self.front.about.instructions.as_deref(),
        );
        match self.introduce(peer) {
            Ok(()) => Reply::Result(result),
            Err(_) => Reply::from(codes::invalid_request("the session has begun already")),
        }
    }
}
