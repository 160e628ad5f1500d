//! outlast-store
