//! An ordinary rmcp server behind the server side: what clients and handler get.

#![expect(clippy::unwrap_used, reason = "a test may panic if its setup fails")]

mod calls;
mod example;
mod faults;
mod handler_lifetime;
mod harness;
mod http;
mod input_requests;
mod killed;
mod modern;
mod other_methods;
mod test_handler;
