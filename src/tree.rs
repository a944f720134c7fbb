//! The served roots as one tree: from what a client wrote to the object it names. Policy is asked
//! here, on every component, so that no tool can forget it. It never opens a file and never lets
//! the kernel see `..` or follow a link: links are read as text and walked like any other path.

use std::cell::RefCell;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Config, RootConfig};
use crate::disk::{self, Facts, Fault, Kind, Mounts, Pin};
use crate::error::{Code, ConfigError, Result, ToolError, quoted};
use crate::escape::{json_string, shown};
use crate::glob::folded;
use crate::limits::{HANDLES_MAX, LINKS_MAX, TWIN_ENTRIES_MAX};
use crate::path::RelPath;
use crate::policy::{Policy, Scope, Withheld};

/// One served directory. Its handle lives as long as the process.
struct Root {
    alias: String,
    /// As the operator typed it, made absolute without following anything, and as resolved.
    typed: PathBuf,
    resolved: PathBuf,
    pin: RefCell<Arc<Pin>>,
}

/// All roots and the policy over them.
pub(crate) struct Tree {
    roots: Vec<Root>,
    pub(crate) policy: Policy,
    pub(crate) mounts: Mounts,
}

/// What a client path leads to.
pub(crate) struct Place {
    /// The path as the client spelled it, from the top: what rows show.
    pub(crate) spelled: RelPath,
    /// The path below its root after links were resolved: what policy judges.
    pub(crate) real: RelPath,
    /// Which root; meaningless for [`Object::Top`].
    pub(crate) root: usize,
    /// What was decided along `real`, and along the path as spelled.
    pub(crate) scopes: [Scope; 2],
    /// The directory itself, or the one that holds the leaf.
    pub(crate) chain: Option<Chain>,
    pub(crate) object: Object,
}

/// See [`Place`].
pub(crate) enum Object {
    /// The virtual directory of several roots.
    Top,
    /// A directory: the end of the chain.
    Dir,
    /// Anything else, pinned.
    Leaf(Pin),
}

/// What to do with a symbolic link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

impl Tree {
    /// Opens every root.
    pub(crate) fn open(config: &Config) -> core::result::Result<Self, ConfigError> {
        let mut roots: Vec<Root> = Vec::new();
        for root in &config.roots {
            let fail = |fault| ConfigError(root_fault(&root.directory, fault));
            let resolved = disk::resolve_root(&root.directory).map_err(fail)?;
            let typed = std::path::absolute(&root.directory).map_err(|fault| fail(fault.into()))?;
            // A root such as `.` has no name of its own.
            let alias = match root.directory.file_name() {
                Some(_) => root.alias(),
                None => RootConfig { directory: resolved.clone(), ..root.clone() }.alias(),
            };
            if roots.iter().any(|other| other.alias == alias) {
                let why = format!("two roots have the alias {alias}; name them: --root NAME=DIR");
                return Err(ConfigError(why));
            }
            let pin = disk::open_root(&resolved).map_err(fail)?;
            pin.entries(|_, _| false).map_err(fail)?;
            roots.push(Root { alias, typed, resolved, pin: RefCell::new(Arc::new(pin)) });
        }
        if roots.is_empty() {
            let why = "no root: name the directory to serve, as in readonly-mcp DIR";
            return Err(ConfigError(why.into()));
        }
        roots.sort_by(|a, b| a.alias.cmp(&b.alias));
        let (include, exclude, allow) = (&config.include, &config.exclude, &config.allow);
        let (include, exclude, allow) = (include.clone(), exclude.clone(), allow.clone());
        let policy = Policy::new(include, exclude, allow, config.default_excludes);
        Ok(Self { roots, policy, mounts: Mounts::default() })
    }

    /// Forgets which file systems were met: mounts may change between calls.
    pub(crate) fn begin_call(&self) {
        self.mounts.0.borrow_mut().clear();
    }

    /// The aliases with their host paths, in alias order.
    pub(crate) fn roots(&self) -> impl ExactSizeIterator<Item = (&str, &Path)> {
        self.roots.iter().map(|root| (root.alias.as_str(), root.resolved.as_path()))
    }

    /// The host path of a place, for `--show-host-paths`.
    pub(crate) fn host_path(&self, place: &Place) -> Option<PathBuf> {
        let root = self.roots.get(place.root).filter(|_| !matches!(place.object, Object::Top))?;
        Some(root.resolved.join(place.real.as_str()))
    }

    /// The path from the top that a client's text stands for.
    pub(crate) fn path(&self, text: &str) -> Result<RelPath> {
        let Some(absolute) = RelPath::parse_absolute(text)? else { return RelPath::parse(text) };
        let below = |root| Some((self.below_root(root, absolute.as_str().as_bytes())?, root));
        let nearest = (0..self.roots.len()).filter_map(below).min_by_key(|(rest, _)| rest.len());
        let (rest, root) = nearest.ok_or_else(|| {
            let why = "the absolute path lies outside every root; use a path relative to the root, \
                       see list_roots";
            ToolError::new(Code::PathExcluded, why)
        })?;
        let rest = RelPath::parse(&String::from_utf8_lossy(&rest.join(&b'/')))?;
        Ok(self.path_of(root, &rest))
    }

    /// A path below one root as seen from the top.
    fn path_of(&self, root: usize, below: &RelPath) -> RelPath {
        let root = self.roots.get(root).filter(|_| self.roots.len() > 1);
        let above = root.and_then(|root| RelPath::top().child(root.alias.as_bytes()));
        above.unwrap_or_default().join(below)
    }

    /// The handle of a root; one that was removed and made anew is opened again.
    pub(crate) fn root_pin(&self, index: usize) -> Result<Arc<Pin>> {
        let gone = || ToolError::new(Code::RootUnavailable, "the root directory is not there now");
        let root = self.roots.get(index).ok_or_else(gone)?;
        let mut pin = root.pin.borrow_mut();
        if pin.is_removed() {
            *pin = Arc::new(disk::open_root(&root.resolved).map_err(|_| gone())?);
        }
        Ok(pin.clone())
    }

    /// Finds what `spelled` names. The caller still has to ask [`Place::is_included`]; what cannot
    /// be found and no include matches is already refused here.
    pub(crate) fn resolve(&self, spelled: &RelPath, last: Last) -> Result<Place> {
        if self.roots.len() > 1 && spelled.is_top() {
            let (spelled, real, scopes) = (RelPath::top(), RelPath::top(), Default::default());
            return Ok(Place { spelled, real, root: 0, scopes, chain: None, object: Object::Top });
        }
        let (root, below) = self.split(spelled)?;
        let refuse = |why: Withheld| why.refusal(spelled);
        let scope = self.policy.decide(&below).map_err(refuse)?;
        let chain = Chain::new(self.root_pin(root)?);
        match self.follow(root, chain, spelled, &below, last) {
            Ok(place) => Ok(Place { scopes: [place.scopes[0], scope], ..place }),
            Err(_) if !below.is_top() && !scope.included => Err(refuse(Withheld::NotIncluded)),
            Err(error) => Err(error),
        }
    }

    /// Which root a path names, and what follows its alias.
    pub(crate) fn split(&self, spelled: &RelPath) -> Result<(usize, RelPath)> {
        let Some((first, below)) = spelled.split_first().filter(|_| self.roots.len() > 1) else {
            return Ok((0, spelled.clone()));
        };
        let root = self.roots.iter().position(|root| root.alias == first).ok_or_else(|| {
            let aliases: Vec<_> = self.roots().map(|(alias, _)| alias).collect();
            let (first, aliases) = (quoted(first), aliases.join(", "));
            let why = format!("{first} is no root; a path begins with one of: {aliases}");
            ToolError::new(Code::UnknownRoot, why)
        })?;
        Ok((root, below))
    }

    /// Goes down from the root, one component at a time, each judged before it is looked up.
    fn follow(
        &self,
        root: usize,
        mut chain: Chain,
        spelled: &RelPath,
        below: &RelPath,
        last: Last,
    ) -> Result<Place> {
        let fail = |fault| tool_error(fault, spelled);
        let outside =
            || about(spelled, Code::PathExcluded, "leads out of the root by a symbolic link");
        let (mut real, mut scope) = (RelPath::top(), Scope::default());
        let (mut links, mut object) = (0, Object::Dir);
        let mut todo: Vec<Vec<u8>> = below.components().rev().map(|name| name.into()).collect();
        while let Some(name) = todo.pop() {
            if name == b".." {
                real = real.parent().ok_or_else(outside)?;
                scope = self.policy.decide(&real).unwrap_or_default();
                chain.pop();
                continue;
            }
            let next = real.child(&name).ok_or_else(|| match links {
                0 => about(spelled, Code::InvalidArgument, "holds a name that no path can hold"),
                _ => outside(),
            })?;
            let judged = self.policy.step(scope, next.as_str());
            let judged = judged.map_err(|why| why.refusal(spelled))?;
            let here = chain.here(&self.mounts).map_err(fail)?;
            let pin = here.child(&name, &self.mounts).map_err(|fault| match fault {
                Fault::Missing if links == 0 && judged.included => {
                    self.missing(root, spelled, &here, &next)
                }
                fault => fail(fault),
            })?;
            match pin.facts.kind {
                Kind::Dir => chain.push(name, pin),
                Kind::Link if last == Last::Follow || !todo.is_empty() => {
                    links += 1;
                    if links > LINKS_MAX {
                        let why = format!("goes through more than {LINKS_MAX} symbolic links");
                        return Err(about(spelled, Code::LimitExceeded, why));
                    }
                    let text = here.link_text(&name).map_err(fail)?;
                    let rest = self.link_rest(root, &text).ok_or_else(outside)?;
                    todo.extend(rest.into_iter().rev().map(Vec::from));
                    if text.starts_with(b"/") {
                        (real, scope) = (RelPath::top(), Scope::default());
                        chain.levels.clear();
                    }
                    continue;
                }
                _ if todo.is_empty() => object = Object::Leaf(pin),
                // What no include covers is not told apart from what is not there.
                _ if !judged.included => return Err(fail(Fault::Missing)),
                kind => {
                    let why = format!("is a {}, so nothing is below it", kind.word());
                    return Err(about(&self.path_of(root, &next), Code::NotADirectory, why));
                }
            }
            (real, scope) = (next, judged);
        }
        let (spelled, scopes, chain) = (spelled.clone(), [scope; 2], Some(chain));
        Ok(Place { spelled, real, root, scopes, chain, object })
    }

    /// The error for `missing`, a component that the client typed and that is not in `here`: with
    /// the entry that differs only in case, if there is one.
    fn missing(&self, root: usize, spelled: &RelPath, here: &Pin, missing: &RelPath) -> ToolError {
        let typed = folded(missing.name().unwrap_or_default());
        let (mut twin, mut looked_at) = (None, 0);
        let listed = here.entries(|entry, _| {
            let is_twin = str::from_utf8(entry).is_ok_and(|entry| folded(entry) == typed);
            twin = missing.parent().filter(|_| is_twin).and_then(|above| above.child(entry));
            looked_at += 1;
            twin.is_none() && looked_at < TWIN_ENTRIES_MAX
        });
        let is_served = |twin: &RelPath| self.policy.decide(twin).is_ok_and(|scope| scope.included);
        let is_shown = |twin: &RelPath| listed.is_ok() && is_served(twin);
        let Some(twin) = twin.filter(is_shown) else { return tool_error(Fault::Missing, spelled) };
        let twin = quoted(self.path_of(root, &twin).as_str());
        let why = format!("does not exist; the entry {twin} differs only in case");
        about(spelled, Code::FileNotFound, why)
    }

    /// The components of an absolute path below a root, as typed or as resolved.
    fn below_root<'t>(&self, root: usize, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        let (root, text) = (self.roots.get(root)?, parts(text));
        let below = [&root.typed, &root.resolved].into_iter().filter_map(|above| {
            let above = parts(above.as_os_str().as_bytes());
            text.starts_with(&above).then(|| text[above.len()..].to_vec())
        });
        below.min_by_key(Vec::len)
    }

    /// The components of a link's text; of an absolute one those below the root, if it lies there.
    fn link_rest<'t>(&self, root: usize, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        if text.starts_with(b"/") { self.below_root(root, text) } else { Some(parts(text)) }
    }

    /// Where a link in `directory` leads by its text, one hop, without asking the disk, as rows
    /// show it: from the top, or why it is not shown.
    pub(crate) fn link_target(&self, root: usize, directory: &RelPath, text: &[u8]) -> String {
        let start = if text.starts_with(b"/") { RelPath::top() } else { directory.clone() };
        let next = |above: RelPath, name: &[u8]| {
            if name == b".." { above.parent() } else { above.child(name) }
        };
        let rest = self.link_rest(root, text);
        let target = rest.and_then(|rest| rest.into_iter().try_fold(start, next));
        let Some(target) = target else { return "(outside)".into() };
        let is_served = self.policy.decide(&target).is_ok_and(|scope| scope.included);
        if !target.is_top() && !is_served {
            return "(withheld)".into();
        }
        match self.path_of(root, &target).as_str() {
            "" => ".".into(),
            // A name must not pass for one of the two words above.
            target if target.starts_with('(') => json_string(target),
            target => shown(target).into_owned(),
        }
    }
}

impl Place {
    /// Whether some include covers it, along both spellings; the top of a root always is.
    pub(crate) fn is_included(&self) -> bool {
        self.real.is_top() || self.scopes.iter().all(|scope| scope.included)
    }

    /// What it is.
    pub(crate) fn kind(&self) -> Kind {
        match &self.object {
            Object::Top | Object::Dir => Kind::Dir,
            Object::Leaf(pin) => pin.facts.kind,
        }
    }
}

/// Directories from a root down, of which only the deepest few keep their handle. One that was let
/// go is pinned again by its names, under the same rules, when it is needed.
pub(crate) struct Chain {
    root: Arc<Pin>,
    levels: Vec<Level>,
}

struct Level {
    name: Vec<u8>,
    facts: Facts,
    pin: Option<Arc<Pin>>,
}

impl Chain {
    pub(crate) fn new(root: Arc<Pin>) -> Self {
        Self { root, levels: Vec::new() }
    }

    /// Goes down into a directory that is already pinned.
    pub(crate) fn push(&mut self, name: Vec<u8>, pin: Pin) {
        if let Some(old) = self.levels.len().checked_sub(HANDLES_MAX - 1) {
            self.levels[old].pin = None;
        }
        self.levels.push(Level { name, facts: pin.facts, pin: Some(Arc::new(pin)) });
    }

    /// Goes up by one; by our own stack, never by asking a directory where its parent is now.
    pub(crate) fn pop(&mut self) {
        self.levels.pop();
    }

    /// The deepest directory. One that was let go and is another object by now is missing.
    pub(crate) fn here(&mut self, mounts: &Mounts) -> core::result::Result<Arc<Pin>, Fault> {
        let held = self.levels.iter().rposition(|level| level.pin.is_some());
        let (above, below) = self.levels.split_at_mut(held.map_or(0, |last| last + 1));
        let held = above.last().and_then(|level| level.pin.clone());
        let mut pin = held.unwrap_or_else(|| self.root.clone());
        for level in &*below {
            let next = pin.child(&level.name, mounts)?;
            if !next.facts.is_same_object(&level.facts) {
                return Err(Fault::Missing);
            }
            pin = Arc::new(next);
        }
        if let Some(level) = below.last_mut() {
            level.pin = Some(pin.clone());
        }
        Ok(pin)
    }
}

/// Non-empty components other than `.`.
fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect()
}

/// An error about a path: the path, and what is wrong with it.
pub(crate) fn about(path: &RelPath, code: Code, why: impl Display) -> ToolError {
    let path = if path.is_top() { "." } else { path.as_str() };
    ToolError::new(code, format!("{} {why}", quoted(path)))
}

/// A fault of the disk as the model is told it.
pub(crate) fn tool_error(fault: Fault, path: &RelPath) -> ToolError {
    let (code, why) = match fault {
        Fault::Missing => (Code::FileNotFound, "does not exist"),
        Fault::Denied => (Code::PermissionDenied, "may not be read by this server's user"),
        Fault::NotADirectory => (Code::NotADirectory, "is not a directory"),
        Fault::Handles => (Code::LimitExceeded, "needs more open files than this server may have"),
        Fault::Busy => (Code::IoError, "is held by another process; try again"),
        Fault::PseudoFileSystem => (Code::PathExcluded, "lies on a file system of kernel objects"),
        Fault::NotAFile => (Code::NotAFile, "is not a regular file"),
        Fault::Failed => (Code::IoError, "could not be read"),
    };
    about(path, code, why)
}

/// A fault of the disk as the operator is told it.
fn root_fault(typed: &Path, fault: Fault) -> String {
    let why = match fault {
        Fault::Missing if typed.to_string_lossy().starts_with(['~', '$']) => {
            "does not exist; only a shell expands ~ and $NAME, so write the whole path"
        }
        Fault::Missing => "does not exist; name an existing directory",
        Fault::Denied => "may not be read by this user",
        Fault::NotADirectory => "is not a directory; name the directory that holds it",
        Fault::PseudoFileSystem => "lies on a file system of kernel objects, which is never served",
        _ => "cannot be opened",
    };
    format!("the root {} {why}", quoted(&typed.to_string_lossy()))
}
