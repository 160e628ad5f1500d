//! The `outlast` command.
fn main() {}
