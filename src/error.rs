//! The two failures a person or a model sees: [`ToolError`] (the model, as an `isError` result)
//! and [`ConfigError`] (the operator, on stderr before the first request).
//!
//! There is no `From<std::io::Error>` here and none elsewhere: an operating-system message or a
//! host path can never travel outward through `?`.

use std::fmt;

use crate::escape::json_string;

/// The stable code that begins every tool error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// An argument is missing, unknown, of the wrong type or out of range.
    InvalidArgument,
    /// Policy withholds the path, or it lies outside every root.
    PathExcluded,
    /// Several roots are served and the first component is none of their aliases.
    UnknownRoot,
    /// Nothing has that name.
    FileNotFound,
    /// A component, or the path to list, is not a directory.
    NotADirectory,
    /// The path to read is a directory, FIFO, socket or device.
    NotAFile,
    /// The bytes are not UTF-8 text.
    NotText,
    /// The file is larger than `--max-file-bytes`.
    TooLarge,
    /// The operating system refuses the access.
    PermissionDenied,
    /// The operating system failed to read.
    IoError,
    /// More than the allowed links, or out of handles.
    LimitExceeded,
    /// The cursor was not made by this process for this call.
    InvalidCursor,
    /// What was already given out has changed.
    StaleCursor,
    /// A root directory is gone.
    RootUnavailable,
    /// A fault of this program.
    InternalError,
}

/// The codes as they are spelled on the wire, in the order of [`Code`].
const SPELLINGS: &str = "\
    invalid-argument path-excluded unknown-root file-not-found not-a-directory not-a-file not-text \
    too-large permission-denied io-error limit-exceeded invalid-cursor stale-cursor \
    root-unavailable internal-error";

/// What a tool call answers when it fails: `code: sentence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The stable half.
    pub code: Code,
    /// What was wrong and what to do, without a host path.
    pub sentence: String,
}

impl ToolError {
    /// An error from its two halves.
    pub fn new(code: Code, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into() }
    }

    /// [`Code::InvalidArgument`], the most frequent one.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, sentence)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = SPELLINGS.split(' ').nth(self.code as usize).unwrap_or_default();
        write!(f, "{code}: {}", self.sentence)
    }
}

/// The result of everything that a tool does.
pub(crate) type Result<T> = core::result::Result<T, ToolError>;

/// A fault of the command line or of a root: one line on stderr, exit code 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// Characters of client text that an error repeats.
const ECHO_CHARS_MAX: usize = 200;

/// Client text as a JSON string, cut when it is long, so that an error stays one short line.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        None => json_string(text),
        Some((end, _)) => format!("{}... ({} bytes)", json_string(&text[..end]), text.len()),
    }
}
