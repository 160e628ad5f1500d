//! The listener for the other nodes of a store.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outlast::store::StoreUrl;
use outlast::transport::http::NodeOptions;

use crate::args::Advertise;
use crate::exit::Failure;

/// The listener of a gateway on `store`; `None` if no other process can use the store.
///
/// It listens on the local address of the connection to the database, because the other nodes reach
/// the same database. With `advertise` it listens on that port of every address.
pub(super) fn listener(
    store: &StoreUrl,
    advertise: Option<&Advertise>,
) -> Result<Option<NodeOptions>, Failure> {
    match (store, advertise) {
        (StoreUrl::Postgres(_), Some(advertise)) => {
            let all: IpAddr = if advertise.address.starts_with('[') {
                Ipv6Addr::UNSPECIFIED.into()
            } else {
                Ipv4Addr::UNSPECIFIED.into()
            };
            let options = NodeOptions::new((all, advertise.port).into());
            Ok(Some(options.with_advertise(&*advertise.address)))
        }
        (StoreUrl::Postgres(url), None) => {
            let local = url.local_address().map_err(|error| {
                Failure::Usage(format!(
                    "cannot find the local address of the connection to the database: {error}\n  \
                     next: name the address for other nodes with --advertise HOST:PORT"
                ))
            })?;
            Ok(Some(NodeOptions::new((local, 0).into())))
        }
        (StoreUrl::Memory | StoreUrl::Sqlite(_), Some(_)) => Err(Failure::Usage(
            "--advertise needs a store for several nodes\n  next: choose one with --store postgres://…"
                .into(),
        )),
        (StoreUrl::Memory | StoreUrl::Sqlite(_), None) => Ok(None),
    }
}
