//! Conversations over Streamable HTTP, with a client that writes its own bytes.

fn main() {}
