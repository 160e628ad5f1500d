//! Clients and servers whose messages the test writes: on a pipe, of a process, over HTTP, and a
//! client of each kind that calls tools.

pub mod caller;
pub mod endpoint;
pub mod http;
mod http_client;
mod http_connection;
mod http_request;
mod line;
mod line_client;
mod process_client;
mod schema;
mod scripted_http_server;
mod scripted_server;
mod streamable;

pub use http_client::HttpClient;
pub use http_connection::{HttpConnection, HttpResponse};
pub use http_request::{MODERN, tasks_only, with_modern_meta};
pub use line::Line;
pub use line_client::{Check, LineClient};
pub use process_client::ProcessClient;
pub use schema::check_v1;
pub use scripted_http_server::{EventStream, ScriptedHttpServer, ScriptedRequest};
pub use scripted_server::ScriptedServer;
