//! What tests of Outlast are made with: a naive store, a store that fails on demand, simulated time.
//!
//! A development dependency and nothing else: no product code may use it.

mod clock;
pub mod death;
mod example;
mod faulty;
mod ids;
mod model;
mod until;

pub use clock::SimClock;
pub use example::example;
pub use faulty::{BeforeNotify, Faults, FaultyStore, Strike};
pub use ids::CountingIds;
pub use model::ModelStore;
pub use until::until;
