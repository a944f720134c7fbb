//! The command line: from words to a checked [`Config`], or one line that says what to type
//! instead. Reads no environment variable and touches no file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use lexopt::Arg;

use crate::config::{Config, RootConfig, number};
use crate::error::{ConfigError, quoted};
use crate::glob::Glob;
use crate::limits::{self, REQUEST_BYTES_DEFAULT, RESULT_CHARS_DEFAULT, TIME_BUDGET_DEFAULT_MS};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Serve, until the client is done.
    Serve(Config),
    /// Tell what a client would see, and end.
    Check(Config),
    /// Print this text to stdout and end.
    Print(String),
}

/// Parses the arguments after the program's name. Errors: any unknown, missing or malformed word,
/// with what is allowed. That there is a root at all is checked where roots are opened.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, ConfigError> {
    let mut config = Config { roots: Vec::new(), ..Config::new("") };
    let mut command: fn(Config) -> Command = Command::Serve;
    let mut parser = lexopt::Parser::from_args(words);
    let fault = |error: lexopt::Error| ConfigError(error.to_string());
    while let Some(argument) = parser.next().map_err(fault)? {
        let option = match argument {
            Arg::Value(directory) => {
                config.roots.push(RootConfig { name: None, directory: directory.into() });
                continue;
            }
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
        };
        let mut value = || parser.value().map_err(fault);
        let mut number = |range| number(&option, &value()?.to_string_lossy(), range);
        match option.as_str() {
            "-h" | "--help" => return Ok(Command::Print(help())),
            "-V" | "--version" => return Ok(Command::Print(format!("readonly-mcp {VERSION}\n"))),
            "--root" => config.roots.push(named_root(&value()?)),
            "--include" => config.include.push(glob(&option, &value()?)?),
            "--exclude" => config.exclude.push(glob(&option, &value()?)?),
            "--allow" => config.allow.push(glob(&option, &value()?)?),
            "--no-default-excludes" => config.default_excludes = false,
            "--show-host-paths" => config.show_host_paths = true,
            "--check" => command = Command::Check,
            "--max-file-bytes" => config.max_file_bytes = Some(number(0..=u64::MAX)?),
            "--max-result-chars" => config.max_result_chars = number(limits::RESULT_CHARS)?,
            "--time-budget" => config.time_budget_ms = number(limits::TIME_BUDGET_MS)?,
            "--max-request-bytes" => config.max_request_bytes = number(limits::REQUEST_BYTES)?,
            _ => return Err(unknown(&option)),
        }
    }
    Ok(command(config))
}

/// The error names the option of the help that is most like the one typed, if they have more than
/// half of their letters in common at the beginning and the end.
fn unknown(typed: &str) -> ConfigError {
    let same = |(one, other): &(u8, u8)| one == other;
    let alike = |name: &&str| {
        let begin = name.bytes().zip(typed.bytes()).take_while(same).count();
        let end = name.bytes().rev().zip(typed.bytes().rev()).take_while(same).count();
        (begin + end).min(name.len()) * 100 / name.len().max(typed.len())
    };
    let help = help();
    let names = help.split_whitespace().filter(|word| word.starts_with("--"));
    let advice = match names.max_by_key(alike).filter(|name| 50 < alike(name)) {
        Some(name) => format!("did you mean {name}?"),
        None => "see readonly-mcp --help".into(),
    };
    ConfigError(format!("unknown option {}; {advice}", quoted(typed)))
}

/// `ALIAS=DIR` or `DIR`. A `/` before the `=` means that all of it is the directory.
fn named_root(value: &OsStr) -> RootConfig {
    let bytes = value.as_bytes();
    let equals = memchr::memchr(b'=', bytes).map(|at| (&bytes[..at], &bytes[at + 1..]));
    let (name, directory) = match equals.filter(|(alias, _)| !alias.contains(&b'/')) {
        Some((alias, rest)) => (Some(String::from_utf8_lossy(alias).into()), rest),
        None => (None, bytes),
    };
    RootConfig { name, directory: OsStr::from_bytes(directory).into() }
}

fn glob(option: &str, value: &OsStr) -> Result<Glob, ConfigError> {
    let text = value.to_str().ok_or_else(|| ConfigError(format!("{option} is not UTF-8")))?;
    Glob::new(text).map_err(|why| ConfigError(format!("{option} {} {why}", quoted(text))))
}

/// The text of `--help`, at most 80 columns.
fn help() -> String {
    format!(
        "\
readonly-mcp {VERSION}: lets an MCP client list, find, search and read files
beneath the directories given, and nothing else.

Usage: readonly-mcp [OPTIONS] ROOT...

  ROOT                   directory to serve; repeatable
  --root [ALIAS=]DIR     the same, with a name for its paths; repeatable
  --include GLOB         serve only what matches; repeatable
  --exclude GLOB         never serve what matches; repeatable
  --allow GLOB           lift the default rules for what matches; repeatable
  --no-default-excludes  switch the default rules off
  --max-file-bytes N     do not read or search larger files (no limit)
  --max-result-chars N   characters of one result ({RESULT_CHARS_DEFAULT})
  --time-budget MS       a search answers by then ({TIME_BUDGET_DEFAULT_MS})
  --max-request-bytes N  longest request line ({REQUEST_BYTES_DEFAULT})
  --show-host-paths      tell absolute host paths too
  --check                tell what a client would see, and end
  -h, --help             print this
  -V, --version          print the version

The default rules withhold secrets (.env, keys, .git, names that begin with
token, secret or credential) and keep noise (node_modules, target) out of
searches. A glob without / matches a name at any depth; with / it begins at
the root.

In the configuration of an MCP client:

  {{\"mcpServers\": {{\"files\": {{\"command\": \"readonly-mcp\",
                             \"args\": [\"/path/to/folder\"]}}}}}}
"
    )
}
