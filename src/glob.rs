//! Globs, one language everywhere, ignoring case: `*` `?` `**` `{a,b}`, all else is literal.
//!
//! A pattern becomes a list of nodes, and a match tries every way through them along the path, each
//! pair of a node and a place at most once: pattern times path steps, whatever the pattern. It
//! never recurses, and never expands a brace.

use std::borrow::Cow;
use std::iter::from_fn;
use std::mem::replace;

use crate::limits::{BRACE_DEPTH_MAX, GLOB_BYTES_MAX};

/// A compiled pattern. Without a `/` (a trailing one aside) it is held against the last component
/// of a path, with one against the whole path.
#[derive(Clone, Debug)]
pub struct Glob {
    pub(crate) text: String, // as it was written
    anchored: bool,
    nodes: Vec<Node>,
    ends: Vec<bool>, // nodes where a path may end: only a trailing `/` can follow, be it in braces
    suffix: String,  // folded text in which every match ends: most paths need no closer look
}

/// What a node takes before the next one follows.
#[derive(Clone, Debug)]
enum Node {
    Byte(u8),          // this one, of the folded path
    One,               // character, but no `/`
    Many(bool),        // characters, any number; `/` among them if true, for `**`
    Leads(Vec<usize>), // nothing: goes on at each alternative, or behind the brace
    Accept,
}

impl Glob {
    /// Compiles a pattern. The error, to stand behind the pattern's name, says what is wrong:
    /// empty, over 1,024 bytes, an unbalanced brace, braces nested deeper than 8.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > GLOB_BYTES_MAX {
            return Err(format!("is {} bytes long; at most 1,024 are allowed", text.len()));
        }
        let mut body = text;
        while let Some(rest) = body.strip_prefix('/').or_else(|| body.strip_prefix("./")) {
            body = rest;
        }
        let body = folded(body.trim_end_matches('/'));
        if body.is_empty() {
            return Err("is empty; write a name or path to match".into());
        }
        let anchored = text.trim_end_matches('/').contains('/');
        let nodes = parse(&body)?;
        let mut ends = vec![true; nodes.len()];
        for (index, node) in nodes.iter().enumerate().rev() {
            ends[index] = match node {
                Node::Leads(to) => to.iter().any(|to| ends[*to]),
                Node::Byte(b'/') => ends[index + 1],
                node => matches!(node, Node::Accept),
            };
        }
        let suffix = body.rsplit(['*', '?', '{', '}', ',', '/']).next().unwrap_or_default().into();
        Ok(Self { text: text.into(), anchored, nodes, ends, suffix })
    }

    /// Whether the pattern matches `path`, which is relative to where the pattern is anchored. The
    /// top, empty text, is matched by nothing.
    pub fn matches(&self, path: &str) -> bool {
        let name = path.rfind('/').filter(|_| !self.anchored).map_or(0, |slash| slash + 1);
        let path = &*folded(&path[name..]);
        path.ends_with(&self.suffix) && self.run(path, false)
    }

    /// Whether the pattern matches `path` or a directory above it.
    pub fn covers(&self, path: &str) -> bool {
        let name_matches = || path.split('/').any(|name| self.matches(name));
        if self.anchored { self.run(&folded(path), true) } else { name_matches() }
    }

    /// Whether the nodes lead along the folded path, or with `above` along a directory above it.
    fn run(&self, path: &str, above: bool) -> bool {
        let bytes = path.as_bytes();
        // Each node stands at each place twice: the second time the `/` is skipped that follows a
        // `**` which took nothing at the start of a component.
        let mut seen = vec![[false; 2]; self.nodes.len() * (bytes.len() + 1)];
        let mut open = Vec::with_capacity(64);
        open.push((0, 0, false));
        while let Some((node, at, skips)) = open.pop() {
            if replace(&mut seen[node * (bytes.len() + 1) + at][usize::from(skips)], true) {
                continue;
            }
            let byte = bytes.get(at).copied();
            let in_name = byte.is_some_and(|byte| byte != b'/');
            if !skips && self.ends[node] && !in_name && (above || byte.is_none()) {
                return !path.is_empty();
            }
            let next = node + 1;
            match &self.nodes[node] {
                Node::Leads(to) => open.extend(to.iter().map(|to| (*to, at, skips))),
                Node::Byte(b'/') if skips => open.push((next, at, false)),
                _ if skips => (),
                Node::Byte(own) if byte == Some(*own) => open.push((next, at + 1, false)),
                Node::One if in_name => open.push((next, path.ceil_char_boundary(at + 1), false)),
                Node::Many(slashes) => {
                    let starts = at == 0 || bytes[at - 1] == b'/';
                    let goes_on = in_name || *slashes && byte.is_some();
                    open.extend(goes_on.then_some((node, at + 1, false)));
                    open.extend((*slashes && starts).then_some((next, at, true)));
                    open.push((next, at, false));
                }
                _ => (),
            }
        }
        false
    }
}

fn parse(body: &str) -> Result<Vec<Node>, String> {
    let mut nodes = Vec::new();
    let mut open: Vec<Vec<usize>> = Vec::new(); // of each open brace the nodes of its `{` and `,`
    let mut rest = body.bytes().peekable();
    while let Some(byte) = rest.next() {
        let here = nodes.len();
        open.extend((byte == b'{').then(Vec::new));
        let node = match byte {
            _ if open.len() > BRACE_DEPTH_MAX => Err("nests braces deeper than 8")?,
            b'{' | b',' if let Some(marks) = open.last_mut() => {
                marks.push(here);
                Node::Leads(Vec::new()) // to be filled in at the `}`
            }
            b'}' => {
                let marks = open.pop().ok_or("has a \"}\" without its \"{\"")?;
                marks.iter().for_each(|mark| nodes[*mark] = Node::Leads(vec![here]));
                nodes[marks[0]] = Node::Leads(marks.iter().map(|mark| mark + 1).collect());
                Node::Leads(vec![here + 1])
            }
            b'*' => Node::Many(from_fn(|| rest.next_if_eq(&b'*')).count() > 0),
            b'?' => Node::One,
            _ => Node::Byte(byte),
        };
        nodes.push(node);
    }
    nodes.push(Node::Accept);
    if open.is_empty() { Ok(nodes) } else { Err("has a \"{\" without its \"}\"".into()) }
}

/// Text folded as globs and policy fold it: every character lower-cased by itself.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    // Without a short cut, which would take longer.
    let odd = text.bytes().fold(false, |odd, b| odd | !b.is_ascii() | b.is_ascii_uppercase());
    let lower = || text.chars().flat_map(char::to_lowercase).collect();
    if odd { Cow::Owned(lower()) } else { Cow::Borrowed(text) }
}
