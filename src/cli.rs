//! The command line: from words to a checked [`Config`], or one line that says what to type
//! instead. Reads no environment variable and touches no file.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use lexopt::Arg;

use crate::config::{Config, RootConfig};
use crate::error::{ConfigError, quoted};
use crate::glob::Glob;
use crate::limits::{REQUEST_BYTES, REQUEST_BYTES_DEFAULT, RESULT_CHARS, RESULT_CHARS_DEFAULT};
use crate::limits::{TIME_BUDGET_DEFAULT_MS, TIME_BUDGET_MS};

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

type Result<T> = core::result::Result<T, ConfigError>;

/// Parses the arguments after the program's name. Errors: any unknown, missing or malformed word,
/// with what is allowed.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut config = Config { roots: Vec::new(), ..Config::new("") };
    let mut command: fn(Config) -> Command = Command::Serve;
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next().map_err(fault)? {
        let option = match argument {
            Arg::Value(directory) => {
                config.roots.push(root(None, directory)?);
                continue;
            }
            Arg::Short('h') => "--help".into(),
            Arg::Short('V') => "--version".into(),
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
        };
        let mut value = || parser.value().map_err(fault);
        let mut number = |range| number(&option, value()?, range);
        match option.as_str() {
            "--help" => return Ok(Command::Print(help())),
            "--version" => {
                return Ok(Command::Print(format!("readonly-mcp {}\n", env!("CARGO_PKG_VERSION"))));
            }
            "--root" => config.roots.push(named_root(value()?)?),
            "--include" => config.include.push(glob(&option, value()?)?),
            "--exclude" => config.exclude.push(glob(&option, value()?)?),
            "--allow" => config.allow.push(glob(&option, value()?)?),
            "--no-default-excludes" => config.default_excludes = false,
            "--show-host-paths" => config.show_host_paths = true,
            "--check" => command = Command::Check,
            "--max-file-bytes" => config.max_file_bytes = Some(number(0..=u64::MAX)?),
            "--max-result-chars" => config.max_result_chars = number(RESULT_CHARS)?,
            "--time-budget" => config.time_budget_ms = number(TIME_BUDGET_MS)?,
            "--max-request-bytes" => config.max_request_bytes = number(REQUEST_BYTES)?,
            _ => return fail(format!("unknown option {}; {}", quoted(&option), advice(&option))),
        }
    }
    // That there is a root at all is checked where roots are opened.
    Ok(command(config))
}

fn fail<T>(sentence: impl Into<String>) -> Result<T> {
    Err(ConfigError(sentence.into()))
}

fn fault(error: lexopt::Error) -> ConfigError {
    ConfigError(match error {
        lexopt::Error::MissingValue { option: Some(option) } => format!("{option} needs a value"),
        lexopt::Error::UnexpectedValue { option, .. } => format!("{option} takes no value"),
        other => other.to_string().escape_debug().to_string(),
    })
}

/// Names the option of the help that has the fewest letters between a common beginning and a
/// common end, if those are few for its length.
fn advice(typed: &str) -> String {
    let equal = |(one, other): &(u8, u8)| one == other;
    let differing = |name: &str| {
        let begin = name.bytes().zip(typed.bytes()).take_while(equal).count();
        let end = name.bytes().rev().zip(typed.bytes().rev()).take_while(equal).count();
        name.len().max(typed.len()).saturating_sub(begin + end)
    };
    let help = help();
    let names = help.split_whitespace().filter(|word| word.starts_with("--"));
    match names.min_by_key(|name| differing(name)) {
        Some(name) if differing(name) < name.len() / 2 => format!("did you mean {name}?"),
        _ => "see readonly-mcp --help".into(),
    }
}

fn root(name: Option<String>, directory: OsString) -> Result<RootConfig> {
    match directory.is_empty() {
        true => fail("a root is empty; name a directory, or . for this one"),
        false => Ok(RootConfig { name, directory: directory.into() }),
    }
}

/// `ALIAS=DIR` or `DIR`. A `/` before the `=` means that all of it is the directory.
fn named_root(value: OsString) -> Result<RootConfig> {
    let mut parts = value.as_bytes().splitn(2, |byte| *byte == b'=');
    let (Some(alias), Some(directory)) = (parts.next(), parts.next()) else {
        return root(None, value);
    };
    if alias.contains(&b'/') {
        return root(None, value);
    }
    let name = String::from_utf8_lossy(alias).into();
    root(Some(name), OsString::from_vec(directory.to_vec()))
}

fn glob(option: &str, value: OsString) -> Result<Glob> {
    let Some(text) = value.to_str() else { return fail(format!("{option} is not UTF-8")) };
    Glob::new(text).or_else(|why| fail(format!("{option} {} {why}", quoted(text))))
}

fn number(option: &str, value: OsString, range: RangeInclusive<u64>) -> Result<u64> {
    let text = value.to_string_lossy();
    if let Some(number) = text.parse().ok().filter(|number| range.contains(number)) {
        return Ok(number);
    }
    let allowed = match range.into_inner() {
        (min, u64::MAX) => format!("of at least {min}"),
        (min, max) => format!("from {min} to {max}"),
    };
    fail(format!("{option} {} must be a number {allowed}", quoted(&text)))
}

/// The text of `--help`, at most 80 columns.
fn help() -> String {
    format!(
        "\
readonly-mcp {}: lets an MCP client list, find, search and read files
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
",
        env!("CARGO_PKG_VERSION")
    )
}
