//! An ordinary rmcp server behind our front: what its clients see, and what it sees of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod asks;
mod calls;
mod client;
mod example;
mod faults;
mod http;
mod killed;
mod lab;
mod lives;
mod modern;
mod others;
mod post;
