//! Every law of stores, each in its own schema.

use outlast_testkit::PostgresServer;

outlast_engine::store_laws!(crate::opened(&PostgresServer::shared().fresh_url()));
