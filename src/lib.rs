//! A file server for MCP clients that can only read.
//!
//! It answers the Model Context Protocol over a pair of streams and reads beneath the directories
//! that it was given. It never writes, connects, spawns, or follows a link out.
//!
//! # Code map
//!
//! A line uses only itself and what stands above it.
//!
//! - [`limits`], `escape`, `error`: every bound; JSON text and shown names; failures by audience.
//! - `disk`, `rows`: **the only file that touches the file system**; the words of a row.
//! - `path`, `glob`, `policy`: what a client may write, what is served. Pure.
//! - `config`, `cli`, `cursor`: what the operator decides; sealed positions.
//! - `tree`, `lines`: from a path to a handle, policy asked on every component; text in blocks.
//! - `page`, `walk`, `arguments`, `tool`: one result within its budget; the ordered walk; one
//!   declaration yields a tool's schema, checks and struct; what a tool may use.
//! - `listing`, `reading`, `search`: what tools share.
//! - `tools/`: one tool a file; they never use one another. `tools`: the table.
//! - `check`, `instructions`, `rpc`, `server`: the report of `--check`; JSON-RPC, MCP, the loop.
//!
//! # Absences
//!
//! No file but `disk.rs` names `std::fs`. No tool sees raw JSON but through its declaration. No
//! answer holds a host path, unless the operator asked for it. Nothing recurses over what a client
//! or the disk controls. No state outlives a call but the key of the cursors, the root handles and
//! what the protocol itself has to remember. There is no thread and no `unsafe`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arguments;
mod check;
mod config;
mod cursor;
mod disk;
mod error;
mod escape;
mod glob;
mod instructions;
mod lines;
mod listing;
mod page;
mod path;
mod policy;
mod reading;
mod rows;
mod rpc;
mod search;
mod server;
mod tool;
mod tools;
mod tree;
mod walk;

pub mod cli;
pub mod limits;

pub use config::{Config, RootConfig};
pub use disk::OPEN_FLAGS;
pub use error::{Code, ConfigError, ToolError};
pub use glob::Glob;
pub use path::RelPath;
pub use policy::{Policy, Scope, Withheld};
pub use server::Server;
