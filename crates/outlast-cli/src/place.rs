//! Where things lie on this machine.

use std::path::PathBuf;

use etcetera::BaseStrategy;
use etcetera::base_strategy::{choose_base_strategy, choose_native_strategy};
use outlast::store::StoreUrl;
use outlast::transport::register::Register;

use crate::exit::Failure;

/// The store of `outlast demo`: a file in the data directory of the platform.
pub(crate) fn demo_store() -> Result<StoreUrl, Failure> {
    Ok(StoreUrl::Sqlite(data_folder()?.join("demo.db")))
}

/// The store of the gateway: a file in the data directory of the platform.
pub(crate) fn gateway_store() -> Result<StoreUrl, Failure> {
    Ok(StoreUrl::Sqlite(data_folder()?.join("tasks.db")))
}

/// The store that is meant if none is named: that of the gateway if there is one, else that of `outlast demo`.
pub(crate) fn usual_store() -> Result<StoreUrl, Failure> {
    match gateway_store()? {
        StoreUrl::Sqlite(path) if path.exists() => Ok(StoreUrl::Sqlite(path)),
        _ => demo_store(),
    }
}

/// The text that names `url` on a command line.
pub(crate) fn shown(url: &StoreUrl) -> String {
    match url {
        StoreUrl::Memory => "memory:".into(),
        StoreUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
    }
}

/// Where the gateway on that store writes down its servers' processes; those of one that forgets its tasks need no end.
pub(crate) fn children(store: &StoreUrl) -> Option<Register> {
    match store {
        StoreUrl::Sqlite(path) => {
            let mut name = path.clone().into_os_string();
            name.push(".children");
            Some(Register::at(name))
        }
        StoreUrl::Memory => None,
    }
}

/// Our folder in the data directory of the platform.
pub(crate) fn data_folder() -> Result<PathBuf, Failure> {
    // The variable counts on macOS, too: it is how a test or a service moves the data elsewhere.
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
