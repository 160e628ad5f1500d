//! The console as a service, without a browser: access, headers, pages and API.

mod access;
mod api;
mod events;
mod harness;
mod pages;
mod workspace;
