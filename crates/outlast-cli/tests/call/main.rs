//! Commands against a server that runs in another process.

mod calls;
mod hostile;
mod interrupt;
mod pty;
mod stage;
mod stored;
mod terminal;
