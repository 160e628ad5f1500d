//! Commands against a server that runs in another process.

mod calls;
mod interrupt;
mod stage;
mod terminal;
