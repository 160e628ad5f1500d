//! The web console: durable tasks in a browser.
//!
//! A [`Console`] is a service. `outlast serve` and `outlast demo` mount it at `/`; a program mounts
//! it beside its own server, with [`HttpOptions::fallback`](outlast::transport::http::HttpOptions)
//! or in an axum router:
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use outlast::prelude::*;
//! use outlast_console::Console;
//!
//! let server = Server::builder("reports", "1.0").build().start().await?;
//! let console = Console::builder(server.engine().clone()).base_path("/console").build();
//! println!("http://127.0.0.1:8040{}", console.sign_in_path());
//! let app: axum::Router = axum::Router::new()
//!     .nest_service("/mcp", server.http_service())
//!     .nest_service("/console", console.into_service());
//! # drop(app);
//! # Ok(()) }
//! ```
//!
//! The crate uses no terminal and no home directory.
//!
//! # How it is made
//!
//! Pages are rendered on the server: reading works without JavaScript, every view is a URL, and
//! values are escaped by default. Scripts only keep an open page current and handle the keyboard.
//! There is no inline script or style and no script of a third party, so the content security
//! policy allows only files of this crate.
//!
//! | where | what |
//! |---|---|
//! | `console` | [`Console`], its builder, and the router |
//! | `access` | tokens, session cookies, the origin and the CSRF token of changes, scopes |
//! | `layout` | the frame around each page: navigation, viewer |
//! | `pages` | one module for each page |
//! | `api` | `/api/v1/…`: the same data as JSON |
//! | [`workspace`] | connections to servers, calls, requests of servers |
//! | [`traffic`] | the messages of the connections |
//! | `workspaces` | the workspace of each viewer |
//! | `answered` | who responded to an input request of a stored task |
//! | [`form`] | forms from JSON Schemas, for pages and for terminals |
//! | `events`, `task_feed` | the events that open pages receive; those of tasks |
//! | `task_row` | a task of the store, as pages, API and events show it |
//! | `task_row_peer` | the same for a task at a server, or hosted for a server |
//! | `task_list` | one list of all these tasks |
//! | `format` | durations and counts as text |
//! | `status_text` | the message in an error that a server reports |
//! | `query`, `search` | the search language; pages and counts of tasks |
//! | `outcome_view` | outcomes on a page |
//! | `json_tree` | JSON values whose children are loaded when opened |
//! | `statistics`, `plot` | the numbers of the overview, and their plots |
//! | `deletions` | deletions that can be undone |
//! | `error` | errors, as a page or as JSON |
//! | `assets` | style sheet and scripts, with a version in their URL |
//! | `templates/`, `assets/` | Askama templates; style sheet and ES modules |
//!
//! # To add a page
//!
//! 1. Write `templates/NAME.html`: `{% extends "layout.html" %}` and a block `content`. Give each
//!    part that changes while the page is open an `id` or a `data-key` that is unique among its
//!    siblings. Askama escapes; never use the filter `safe`.
//! 2. Write `src/pages/NAME.rs`: a `#[derive(Template)]` struct with a field `layout: Layout`, and
//!    a handler that takes [`State<App>`](axum::extract::State) and a `Viewer`, and returns
//!    `Result<Html, ConsoleError>`: `render(&page)`. The handler shows only what the viewer may
//!    see (`Viewer::scope`, `Viewer::require`).
//! 3. Add the route in `pages::router`, and the page to `Section` in `layout.rs`, in the order of
//!    the navigation.
//!
//! The script keeps every page current: when an event arrives that `<main data-live="…">` lists, it
//! loads the same URL again and changes only what differs (`assets/morph.js`). It never replaces an
//! element that has the focus or a selection, an open `<details>`, or a form that was edited.
//!
//! # To add a change
//!
//! Route a `POST`. The access layer has checked origin and CSRF token before the handler runs. A
//! form contains `<input type="hidden" name="csrf" value="{{ layout.csrf }}">`; a script calls
//! `post(path, body)` of `assets/api.js`. Check the scope in the handler:
//! `viewer.require(Scopes::CANCEL)?`.
//!
//! # To add a script or a style
//!
//! Put the file into `assets/` and into the list in `assets.rs`. A page names its module in the
//! block `scripts`: `<script type="module" src="{{ layout.asset("NAME.js") }}"></script>`. Modules
//! import each other by `./NAME.js`. Types are in JSDoc.
//!
//! # To add an event
//!
//! Call `app.events().publish(Audience::…, "name", &value)`. Every open page of that audience
//! receives it, through one connection for all tabs of a browser. In a script:
//! `import { on } from "./stream.js"; on("name", (data) => …)`.

mod access;
mod answered;
mod api;
mod assets;
mod console;
mod deletions;
mod error;
mod events;
pub mod form;
mod format;
mod json_tree;
mod layout;
mod outcome_view;
mod page_address;
mod pages;
mod plot;
mod query;
mod search;
mod statistics;
mod status_text;
mod task_feed;
mod task_list;
mod task_row;
mod task_row_peer;
pub mod traffic;
pub mod workspace;
mod workspaces;

pub use console::{Console, ConsoleBuilder, ConsoleService};

/// The Rust code of the guide: `cargo test --doc` compiles it.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/console.md")]
struct Guide;
