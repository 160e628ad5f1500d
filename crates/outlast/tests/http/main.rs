//! Conversations over Streamable HTTP, with a client that writes its own bytes.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod answers;
mod asks;
mod broken;
mod browsers;
mod floods;
mod health;
mod killed;
mod principals;
mod refusals;
mod restart;
mod resume;
mod samples;
mod seeds;
mod session_limits;
mod sessions;
mod slow;
mod stage;
mod starting;
mod streams;
