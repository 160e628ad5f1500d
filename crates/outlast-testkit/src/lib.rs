//! outlast-testkit
