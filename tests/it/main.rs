//! The integration tests, one binary. So far of the pure types alone.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod glob;
mod path;
mod policy;
