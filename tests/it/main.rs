//! The integration tests, one binary: each states a promise of the contract and checks it on the
//! wire, through the real server. Nothing here looks inside the implementation.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unreachable_pub, reason = "what the modules share is shared within one binary")]

mod confinement;
mod glob;
mod hostile_calls;
mod hostile_files;
mod hostile_lines;
mod hostile_names;
mod hostile_process;
mod hostile_races;
mod hostile_text;
mod laws;
mod path;
mod policy;
mod process;
mod readme;
mod support;
mod tidy;
mod transcripts;
mod twins;
mod twins_files;
mod twins_long_lines;
mod twins_reading;
