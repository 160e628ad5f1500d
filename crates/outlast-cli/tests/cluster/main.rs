//! Several nodes behind a load balancer that sends requests to them by turns: no sticky sessions,
//! no cookies, and no request that was sent is sent again. `docs/cluster.md` describes this setup;
//! the load balancers use the files of `packaging/cluster`.

#![cfg(unix)]

mod conversations;
mod failures;
#[path = "../launcher/outlast.rs"]
mod launcher;
mod load;
mod manifests;
mod nodes;
