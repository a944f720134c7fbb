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
    /// The root itself.
    pub fn top() -> Self {
        Self::default()
    }

    /// Parses a relative path. Errors: `invalid-argument` for `..`, NUL, a backslash, a drive
    /// letter, a leading `/`, or more than 4,096 bytes; names the path to use if there is one.
    pub fn parse(text: &str) -> Result<Self> {
        normalised(text, true).map_err(|fault| refusal(text, fault))
    }

    /// Whether this is the root itself.
    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, empty for the top.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The components from the top down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        // Only the top has an empty piece.
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// The last component.
    pub fn name(&self) -> Option<&str> {
        self.components().next_back()
    }

    /// The directory that holds this; none for the top.
    pub fn parent(&self) -> Option<Self> {
        let above = self.0.rsplit_once('/').map_or("", |(above, _)| above);
        (!self.is_top()).then(|| Self(above.into()))
    }

    /// The path of an entry of this directory, from its name as found on disk; none if no client
    /// could spell it: not UTF-8, a backslash, a drive letter at the top, or over 4,096 bytes.
    pub fn child(&self, name: &[u8]) -> Option<Self> {
        let name = core::str::from_utf8(name).ok()?;
        let path = self.with(name);
        let odd = matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
        (!odd && !has_drive(&path.0) && path.0.len() <= PATH_BYTES_MAX).then_some(path)
    }

    /// `below`, seen from where this begins. Not checked against 4,096 bytes.
    pub fn join(&self, below: &Self) -> Self {
        if below.is_top() { self.clone() } else { self.with(&below.0) }
    }

    /// The first component and what follows it.
    pub fn split_first(&self) -> Option<(&str, Self)> {
        let (first, rest) = self.0.split_once('/').unwrap_or((&self.0, ""));
        (!self.is_top()).then(|| (first, Self(rest.into())))
    }

    fn with(&self, below: &str) -> Self {
        let slash = if self.is_top() { "" } else { "/" };
        Self([self.as_str(), slash, below].concat())
    }
}

/// A path argument, before the roots are asked what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientPath {
    /// Below the one root, or beginning with an alias.
    Relative(RelPath),
    /// Below `/` of the host: meaningful only at or beneath a root.
    Absolute(RelPath),
}

impl ClientPath {
    /// Parses a relative path, an absolute one, or a `file://` URI. Errors: as
    /// [`RelPath::parse`], a URI that cannot be decoded is `invalid-argument`, one that names
    /// another host `path-excluded`.
    pub fn parse(text: &str) -> Result<Self> {
        let absolute = match uri_rest(text) {
            Some(rest) => uri_path(rest)?,
            None if text.starts_with('/') => text.to_owned(),
            None => return RelPath::parse(text).map(Self::Relative),
        };
        normalised(&absolute, false).map(Self::Absolute).map_err(|fault| refusal("/", fault))
    }
}

/// The components of `text`, which may begin like an absolute path unless `relative`. The error
/// says what is wrong, to stand after the path in a sentence.
fn normalised(text: &str, relative: bool) -> core::result::Result<RelPath, &'static str> {
    let components = text.split('/').filter(|component| !matches!(*component, "" | "."));
    let faults = [
        (relative && text.starts_with('/'), "begins with /"),
        (relative && has_drive(text), "begins with a drive letter"),
        (text.len() > PATH_BYTES_MAX, "is longer than 4,096 bytes"),
        (text.contains('\0'), "holds a NUL character"),
        (text.contains('\\'), "holds a backslash"),
        (components.clone().any(|component| component == ".."), "holds the component \"..\""),
    ];
    match faults.iter().find(|(is_so, _)| *is_so) {
        Some((_, fault)) => Err(fault),
        None => Ok(RelPath(components.collect::<Vec<_>>().join("/"))),
    }
}

/// The path that the author of a refused one most likely meant, for the refusal only.
fn collapsed(text: &str) -> Option<RelPath> {
    let text = text.replace('\\', "/");
    let mut components = Vec::new();
    for component in text.split('/') {
        match component {
            "" | "." => (),
            ".." => drop(components.pop()?),
            _ => components.push(component),
        }
    }
    normalised(&components.join("/"), true).ok()
}

fn refusal(text: &str, fault: &str) -> ToolError {
    let absolute = text.starts_with(['/', '\\']) || has_drive(text) || uri_rest(text).is_some();
    let advice = match collapsed(text).filter(|_| !absolute) {
        Some(path) if path.is_top() => "use \".\"".to_owned(),
        Some(path) => format!("use {}", json_string(path.as_str())),
        None => "use a path from the top, with / between names, as list_directory shows it".into(),
    };
    let subject = if absolute { "the path".to_owned() } else { quoted(text) };
    ToolError::invalid(format!("{subject} {fault}; {advice}"))
}

/// Whether the first component is a drive letter. A backslash ends it too, since `C:\x` is an
/// absolute path and must not be echoed.
fn has_drive(text: &str) -> bool {
    text.split(['/', '\\']).find(|part| !matches!(*part, "" | ".")).is_some_and(is_drive)
}

fn is_drive(component: &str) -> bool {
    matches!(component.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
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
        let sentence = "the file URI names another host; use a path from the top";
        return Err(ToolError::new(Code::PathExcluded, sentence));
    }
    let mut pieces = path.split('%').map(str::as_bytes);
    let mut decoded = pieces.next().unwrap_or_default().to_vec();
    for piece in pieces {
        let digit = |at| char::from(*piece.get(at)?).to_digit(16);
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(ToolError::invalid("the file URI has a % without two hex digits"));
        };
        decoded.push((high * 16 + low) as u8);
        decoded.extend_from_slice(&piece[2..]);
    }
    String::from_utf8(decoded).map_err(|_| ToolError::invalid("the file URI is not UTF-8"))
}
