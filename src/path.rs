//! Paths as a client may write them: [`RelPath`] and its only parsers.
//!
//! Works on text alone: it never asks the disk, never resolves `..` (across a symbolic link the
//! text would lie; the refusal offers the collapsed path instead), and never repeats an absolute
//! path, since that would tell a client about the host.

use crate::error::{Code, Result, ToolError, quoted};
use crate::escape::json_string;
use crate::limits::PATH_BYTES_MAX;

/// A path below a root, or below the virtual directory of several roots: `/` between components,
/// none of which is empty, `.`, `..`, or holds a NUL or a backslash. Empty text is the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RelPath(String);

impl RelPath {
    /// Parses a relative path. Errors: `invalid-argument` for `..`, NUL, a backslash, a drive
    /// letter, a leading `/`, or more than 4,096 bytes; names the path to use if there is one.
    pub fn parse(text: &str) -> Result<Self> {
        normalised(text, true).map_err(|fault| refusal(text, fault))
    }

    /// What an absolute path or a `file://` URI names below `/` of the host; none for other text.
    /// Errors: as [`RelPath::parse`], and `path-excluded` for a URI that names another host.
    pub fn parse_absolute(text: &str) -> Result<Option<Self>> {
        let path = match uri_rest(text) {
            Some(rest) => uri_path(rest)?,
            None if text.starts_with('/') => text.to_owned(),
            None => return Ok(None),
        };
        normalised(&path, false).map(Some).map_err(|fault| refusal("/", fault))
    }

    /// Whether this is the root itself.
    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, empty for the top.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component.
    pub fn name(&self) -> Option<&str> {
        self.0.rsplit('/').next().filter(|_| !self.is_top())
    }

    /// The directory that holds this; none for the top.
    pub fn parent(&self) -> Option<Self> {
        let above = self.0.rsplit_once('/').map_or("", |(above, _)| above);
        (!self.is_top()).then(|| Self(above.into()))
    }

    /// The path of an entry from its name on disk; none if no client could spell it: not UTF-8, a
    /// backslash, a drive letter at the top, or over 4,096 bytes.
    pub fn child(&self, name: &[u8]) -> Option<Self> {
        let mut child = self.clone();
        child.push(name).then_some(child)
    }

    /// Makes this that path, or says false; what is only too long is appended all the same.
    pub(crate) fn push(&mut self, name: &[u8]) -> bool {
        let Ok(name) = core::str::from_utf8(name) else { return false };
        let odd = matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
        if odd || self.is_top() && has_drive(name) {
            return false;
        }
        if !self.is_top() {
            self.0.push('/');
        }
        self.0.push_str(name);
        self.0.len() <= PATH_BYTES_MAX
    }

    /// Goes back up to a directory above, from the length of its path.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// What follows the directory above whose path is so long.
    pub(crate) fn after(&self, length: usize) -> &str {
        let rest = self.0.get(length..).unwrap_or_default();
        rest.strip_prefix('/').unwrap_or(rest)
    }

    /// What the text of a path names below this. Not checked against 4,096 bytes.
    pub(crate) fn with(&self, below: &str) -> Self {
        let slash = if self.is_top() || below.is_empty() { "" } else { "/" };
        Self([self.as_str(), slash, below].concat())
    }
}

/// The path that `text` spells, which may be absolute unless `relative`; or what is wrong with it.
fn normalised(text: &str, relative: bool) -> core::result::Result<RelPath, &'static str> {
    let faults = [
        (relative && text.starts_with('/'), "begins with /"),
        (relative && has_drive(text), "begins with a drive letter"),
        (text.len() > PATH_BYTES_MAX, "is longer than 4,096 bytes"),
        (text.contains('\0'), "holds a NUL character"),
        (text.contains('\\'), "holds a backslash"),
        (names(text).any(|name| name == ".."), "holds the component \"..\""),
    ];
    match faults.iter().find(|(is_so, _)| *is_so) {
        Some((_, fault)) => Err(fault),
        None => Ok(RelPath(names(text).collect::<Vec<_>>().join("/"))),
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('/').filter(|name| !matches!(*name, "" | "."))
}

/// The path that the author of a refused one most likely meant, for the refusal only.
fn collapsed(text: &str) -> Option<RelPath> {
    let text = text.replace('\\', "/");
    let mut meant = Vec::new();
    for name in names(&text) {
        if name == ".." { _ = meant.pop()? } else { meant.push(name) }
    }
    normalised(&meant.join("/"), true).ok()
}

fn refusal(text: &str, fault: &str) -> ToolError {
    let absolute = is_absolute(text);
    let advice = match collapsed(text).filter(|_| !absolute) {
        Some(path) if path.is_top() => "use \".\"".to_owned(),
        Some(path) => format!("use {}", json_string(path.as_str())),
        None => "use a path from the top, with / between names, as list_directory shows it".into(),
    };
    let subject = if absolute { "the path".to_owned() } else { quoted(text) };
    ToolError::invalid(format!("{subject} {fault}; {advice}"))
}

/// Whether client text may say where something is on a host, so that it must not be repeated.
pub(crate) fn is_absolute(text: &str) -> bool {
    text.starts_with(['/', '\\']) || has_drive(text) || uri_rest(text).is_some()
}

/// Whether the first component is a drive letter. A backslash ends it too: `C:\x` is absolute.
fn has_drive(text: &str) -> bool {
    let first = text.split(['/', '\\']).find(|part| !matches!(*part, "" | "."));
    first.is_some_and(|first| matches!(first.as_bytes(), [b'a'..=b'z' | b'A'..=b'Z', b':']))
}

/// What follows `file://`, the scheme in any case; `file:/x` is `file:///x` (RFC 8089).
fn uri_rest(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_file = scheme.eq_ignore_ascii_case("file") && rest.starts_with('/');
    is_file.then(|| rest.strip_prefix("//").unwrap_or(rest))
}

/// The decoded path of a URI, from what follows `file://`.
fn uri_path(rest: &str) -> Result<String> {
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        let why = "the file URI names another host; use a path from the top";
        return Err(ToolError::new(Code::PathExcluded, why));
    }
    let fault = "the file URI is not UTF-8, or has a % without two hex digits";
    percent_decoded(path).ok_or_else(|| ToolError::invalid(fault))
}

fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut decoded) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(if byte == b'%' { (digit()? * 16 + digit()?) as u8 } else { byte });
    }
    String::from_utf8(decoded).ok()
}
