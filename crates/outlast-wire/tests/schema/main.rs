//! Every type that this crate writes, validated with the official schemas in `tests/schemas`.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not see as tests"
)]

mod core;
mod extension;
mod invalid;
mod official;
mod samples;
mod v1_shapes;
