//! A file server for MCP clients that can only read.
//!
//! It answers the Model Context Protocol over a pair of streams and reads beneath the directories
//! that it was given. It never writes, connects, spawns, or follows a link out.
//!
//! # Code map
//!
//! A line uses only itself and what stands above it, but for shown names in errors and rows.
//!
//! - `limits`, `error`, `escape`: every bound; failures by audience; JSON text and shown names.
//! - `rows`, `disk`: the words of a row; **the only file that touches the file system**.
//! - `path`, `glob`, `policy`: what a client may write, what is served. Pure.
//! - `config`, `cli`: what the operator decides.
//! - `cursor`: sealed positions. `tree`: from a path to a handle, policy asked on every component.
//! - `arguments`: one declaration yields a tool's schema, its checks and its struct.
//! - `tool`, `page`, `walk`: what a tool may use; one result within its budget; the ordered walk.
//! - `lines`, `reading`, `search`, `listing`: text in blocks, and what tools share.
//! - `tools/`: one tool a file; they never use one another. `tools`: the table.
//! - `check`: what a person is told before a folder is trusted to a model.
//! - `instructions`, `rpc`, `server`: JSON-RPC, MCP, the loop.
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
mod limits;
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

pub use config::{Config, RootConfig};
pub use disk::OPEN_FLAGS;
pub use error::{Code, ConfigError, ToolError};
pub use glob::Glob;
pub use path::RelPath;
pub use policy::{Policy, Scope, Withheld};
pub use server::Server;
