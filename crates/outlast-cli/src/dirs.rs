//! The default stores and the data directory of this machine.

use std::path::PathBuf;

use etcetera::BaseStrategy;
use etcetera::base_strategy::{choose_base_strategy, choose_native_strategy};
use outlast::store::StoreUrl;
use outlast::transport::child_registry::ChildRegistry;

use crate::exit::Failure;

/// The store of `outlast demo`: a file in the platform's data directory.
pub(crate) fn demo_store() -> Result<StoreUrl, Failure> {
    Ok(StoreUrl::Sqlite(data_folder()?.join("demo.db")))
}

/// The store of the gateway: a file in the platform's data directory.
pub(crate) fn gateway_store() -> Result<StoreUrl, Failure> {
    Ok(StoreUrl::Sqlite(data_folder()?.join("tasks.db")))
}

/// The default store of commands that read tasks: that of the gateway if it exists, otherwise that
/// of `outlast demo`.
pub(crate) fn default_store() -> Result<StoreUrl, Failure> {
    match gateway_store()? {
        StoreUrl::Sqlite(path) if path.exists() => Ok(StoreUrl::Sqlite(path)),
        _ => demo_store(),
    }
}

/// Formats `url` as a command-line argument, without a password.
pub(crate) fn store_argument(url: &StoreUrl) -> String {
    match url {
        StoreUrl::Memory => "memory:".into(),
        StoreUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
        StoreUrl::Postgres(url) => url.to_string(),
    }
}

/// The registry of the server processes that the gateway on `store` starts. A store without a
/// file has none.
pub(crate) fn child_registry(store: &StoreUrl) -> Option<ChildRegistry> {
    match store {
        StoreUrl::Sqlite(path) => {
            let mut name = path.clone().into_os_string();
            name.push(".children");
            Some(ChildRegistry::at(name))
        }
        StoreUrl::Memory | StoreUrl::Postgres(_) => None,
    }
}

/// The folder of Outlast in the platform's data directory.
pub(crate) fn data_folder() -> Result<PathBuf, Failure> {
    // The variable applies on macOS too. Tests and services use it to move the data.
    let base = match std::env::var_os("XDG_DATA_HOME").filter(|set| !set.is_empty()) {
        Some(_) => choose_base_strategy().map(|folders| folders.data_dir()),
        None => choose_native_strategy().map(|folders| folders.data_dir()),
    };
    let folder = base.map_err(std::io::Error::other)?.join("outlast");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(why) => Err(Failure::DataDirectory { path: folder, why }),
    }
}
