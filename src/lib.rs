//! A file server for MCP clients that can only read: the types that decide what is served.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![expect(dead_code, reason = "the server that uses the rest comes next")]

mod config;
mod error;
mod escape;
mod glob;
mod path;
mod policy;

pub mod limits;

pub use config::{Config, RootConfig};
pub use error::{Code, ConfigError, ToolError};
pub use glob::Glob;
pub use path::{ClientPath, NoPath, RelPath};
pub use policy::{Policy, Scope, Withheld};
