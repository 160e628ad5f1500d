//! Every shape this crate can emit, held against the official schemas in `tests/schemas`.

mod broken;
mod core;
mod extension;
mod official;
mod samples;
mod v1_shapes;
