//! The two failures a person or a model sees: [`ToolError`] (the model, as an `isError` result)
//! and [`ConfigError`] (the operator, on stderr before the first request). Neither is ever made of
//! a `std::io::Error`, so that no message of the system, nor a host path, travels outward by `?`.

use std::fmt;

use crate::escape::json_string;

/// Declares the codes, each with its spelling on the wire and its meaning.
macro_rules! codes {
    ($($name:ident = $spelling:literal: $meaning:literal,)*) => {
        /// The stable code that begins every tool error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $(#[doc = $meaning] $name),* }
        const SPELLINGS: [&str; [$($spelling),*].len()] = [$($spelling),*];
    };
}

codes! {
    InvalidArgument = "invalid-argument": "An argument is missing, unknown or not as allowed.",
    PathExcluded = "path-excluded": "Policy withholds the path, or it lies outside every root.",
    UnknownRoot = "unknown-root": "The first component is no alias of the several roots.",
    FileNotFound = "file-not-found": "Nothing has that name.",
    NotADirectory = "not-a-directory": "A component, or the path to list, is not a directory.",
    NotAFile = "not-a-file": "The path to read is a directory, FIFO, socket or device.",
    NotText = "not-text": "The bytes are not UTF-8 text.",
    TooLarge = "too-large": "The file is larger than `--max-file-bytes`.",
    PermissionDenied = "permission-denied": "The operating system refuses the access.",
    IoError = "io-error": "The operating system failed to read.",
    LimitExceeded = "limit-exceeded": "More than the allowed links, or out of handles.",
    InvalidCursor = "invalid-cursor": "The cursor was not made by this process for this call.",
    StaleCursor = "stale-cursor": "What was already given out has changed.",
    RootUnavailable = "root-unavailable": "A root directory is gone.",
    InternalError = "internal-error": "A fault of this program.",
}

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
        write!(f, "{}: {}", SPELLINGS[self.code as usize], self.sentence)
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

const ECHO_CHARS_MAX: usize = 200; // of client text that an error repeats

/// Client text as a JSON string, cut when it is long, so that an error stays one short line.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        None => json_string(text),
        Some((end, _)) => format!("{}... ({} bytes)", json_string(&text[..end]), text.len()),
    }
}
