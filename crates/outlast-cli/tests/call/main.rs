//! Commands with a server in another process.

mod calls;
mod errors;
mod harness;
mod hostile;
mod interrupt;
#[path = "../launcher/outlast.rs"]
mod launcher;
mod stdio_server;
mod stored;
mod terminal;
