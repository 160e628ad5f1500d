//! The client against servers that the test plays by hand, against our own, and against processes and sockets.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod cancelling;
mod child;
mod driven;
mod front;
mod handshake;
mod host;
mod hosted;
mod http;
mod modern;
mod probe;
mod proxy;
mod quirks;
mod receiver;
mod recovery;
mod requestor;
mod stage;
mod tls;
