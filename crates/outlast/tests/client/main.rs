//! The client with scripted servers, our own server, processes and sockets.

#![expect(clippy::unwrap_used, reason = "a test may panic if its setup fails")]

mod cancellation;
mod child;
mod driven_tasks;
mod handler;
mod handshake;
mod harness;
mod hosted_tasks;
mod http;
mod hub;
mod modern;
mod observer;
mod own_server;
mod probe;
mod proxy;
mod quirks;
mod receiver;
mod recovery;
mod requestor;
mod task_manager;
mod tls;
