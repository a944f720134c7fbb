//! What is served and within which limits: [`Config`], built by the command line or by a program
//! that embeds the server. Reads nothing: no file, no environment.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::error::{ConfigError, quoted};
use crate::glob::Glob;
use crate::limits;

/// A directory to serve.
#[derive(Clone, Debug)]
pub struct RootConfig {
    /// The name that paths begin with when several roots are served: 1 to 64 of `A-Z a-z 0-9 . _ -`,
    /// a letter or digit first. By default it is made of the directory's name.
    pub name: Option<String>,
    /// Where it is. A symbolic link is resolved once, when the server is made.
    pub directory: PathBuf,
}

impl RootConfig {
    /// The typed name, or one made of that of the directory, which may have none of its own.
    pub(crate) fn alias(&self, resolved: &Path) -> String {
        let last = self.directory.file_name().or(resolved.file_name()).unwrap_or_default();
        self.name.clone().unwrap_or_else(|| plain(&last.to_string_lossy()))
    }
}

/// Everything that an operator decides; what the limits may be stands in [`crate::limits`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The directories to serve, at least one.
    pub roots: Vec<RootConfig>,
    /// If not empty, serve only what matches one of them.
    pub include: Vec<Glob>,
    /// Never serve what matches.
    pub exclude: Vec<Glob>,
    /// Lift the default rules for what matches.
    pub allow: Vec<Glob>,
    /// Withhold secrets and keep noise out of searches; true by default.
    pub default_excludes: bool,
    /// Files of more bytes are listed, but not read or searched; no limit by default.
    pub max_file_bytes: Option<u64>,
    /// Characters of one result's text, 1,000 to 8,388,608; 24,000 by default.
    pub max_result_chars: u64,
    /// Milliseconds by which a walk, search or line count answers, 50 to 50,000; 3,000 by default.
    pub time_budget_ms: u64,
    /// Bytes of the longest request line, up to 1 GiB; 4,194,304 by default.
    pub max_request_bytes: u64,
    /// Whether `list_roots` and `get_file_info` also give absolute host paths; false by default.
    pub show_host_paths: bool,
}

impl Config {
    /// The defaults, serving one directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            roots: vec![RootConfig { name: None, directory: directory.into() }],
            include: Vec::new(),
            exclude: Vec::new(),
            allow: Vec::new(),
            default_excludes: true,
            max_file_bytes: None,
            max_result_chars: limits::RESULT_CHARS_DEFAULT,
            time_budget_ms: limits::TIME_BUDGET_DEFAULT_MS,
            max_request_bytes: limits::REQUEST_BYTES_DEFAULT,
            show_host_paths: false,
        }
    }

    /// Refuses an alias that could not begin a path, and a limit out of its bounds.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let mut names = self.roots.iter().filter_map(|root| root.name.as_deref());
        if let Some(name) = names.find(|name| plain(name) != *name) {
            return Err(ConfigError(format!(
                "the alias {} must be 1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or \
                 digit; a directory with = in its name is typed with a / before it, as in --root \
                 ./a=b",
                quoted(name)
            )));
        }
        number("max_result_chars", &self.max_result_chars.to_string(), limits::RESULT_CHARS)?;
        number("time_budget_ms", &self.time_budget_ms.to_string(), limits::TIME_BUDGET_MS)?;
        number("max_request_bytes", &self.max_request_bytes.to_string(), limits::REQUEST_BYTES)?;
        Ok(())
    }
}

/// `name` as an alias can be: odd characters as `-`, a letter or digit first, 64 at most.
fn plain(name: &str) -> String {
    let odd = |c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c);
    let plain: String = name.replace(odd, "-").chars().take(64).collect();
    let plain = plain.trim_start_matches(['.', '_', '-']);
    if plain.is_empty() { "root".into() } else { plain.into() }
}

pub(crate) fn number(of: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    let (min, max) = (range.start(), range.end());
    let why = || format!("{of} {} must be a number from {min} to {max}", quoted(text));
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| ConfigError(why()))
}
