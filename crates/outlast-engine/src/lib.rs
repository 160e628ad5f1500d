//! outlast-engine
