//! Commands with a server in another process.

mod calls;
mod errors;
mod hostile;
mod interrupt;
mod stage;
mod stored;
mod terminal;
