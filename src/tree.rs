//! The served roots as one tree: from what a client wrote to the object it names. Policy is asked
//! here, on every component, so that no tool can forget it. It never opens a file and never lets
//! the kernel see `..` or follow a link: links are read as text and walked like any other path.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::disk::{self, Facts, Fault, Kind, Mounts, Pin};
use crate::error::{Code, ConfigError, Result, ToolError, quoted};
use crate::escape::{json_string, shown};
use crate::glob::folded;
use crate::limits::{HANDLES_MAX, LINKS_MAX, TWIN_ENTRIES_MAX};
use crate::path::RelPath;
use crate::policy::{Policy, Scope, Withheld};

pub(crate) type Disk<T> = core::result::Result<T, Fault>;

/// One served directory. Its handle lives as long as the process.
pub(crate) struct Root {
    pub(crate) alias: String,
    pub(crate) top: RelPath, // what paths in it begin with: nothing, or its alias beside others
    typed: PathBuf,          // made absolute without following anything
    pub(crate) resolved: PathBuf,
    pin: RefCell<Arc<Pin>>,
}

/// All roots and the policy over them.
pub(crate) struct Tree {
    pub(crate) roots: Vec<Root>, // in alias order
    pub(crate) policy: Policy,
    pub(crate) mounts: Mounts,
}

/// An object, and the directories that lead to it. Of these only the deepest few keep their handle;
/// another is pinned again by its name, under the same rules, when it is needed.
#[derive(Clone, Default)]
pub(crate) struct Place {
    pub(crate) path: RelPath, // after links: of the deepest directory, or of an entry in it
    pub(crate) scopes: [Scope; 2], // decided along it, and along the path as the client spelled it
    levels: Vec<Level>,       // from the root down; none in the virtual directory of several roots
    pub(crate) leaf: Option<Arc<Pin>>, // what it is, if it is no directory
}

#[derive(Clone)]
struct Level {
    length: usize, // of its path
    scopes: [Scope; 2],
    facts: Facts,
    pin: Option<Arc<Pin>>, // the root's is never let go
}

impl Tree {
    pub(crate) fn open(config: &Config) -> core::result::Result<Self, ConfigError> {
        let mut roots: Vec<Root> = Vec::new();
        for root in &config.roots {
            let fail = |fault| root_fault(&root.directory, fault);
            let resolved = disk::resolve_root(&root.directory).map_err(fail)?;
            let typed = std::path::absolute(&root.directory).map_err(|fault| fail(fault.into()))?;
            let alias = root.alias(&resolved);
            if roots.iter().any(|other| other.alias == alias) {
                let why = format!("two roots have the alias {alias}; name them: --root NAME=DIR");
                return Err(ConfigError(why));
            }
            let pin = disk::open_root(&resolved).map_err(fail)?;
            pin.entries(1).map_err(fail)?;
            let top = RelPath::default().with(if config.roots.len() > 1 { &alias } else { "" });
            let pin = RefCell::new(Arc::new(pin));
            roots.push(Root { alias, top, typed, resolved, pin });
        }
        if roots.is_empty() {
            let why = "no root: name the directory to serve, as in readonly-mcp DIR";
            return Err(ConfigError(why.into()));
        }
        roots.sort_by(|a, b| a.alias.cmp(&b.alias));
        let Config { include, exclude, allow, default_excludes, .. } = config.clone();
        let policy = Policy::new(include, exclude, allow, default_excludes);
        Ok(Self { roots, policy, mounts: Mounts::default() })
    }

    /// The root that holds a path from the top, and what follows; none for the top of several.
    pub(crate) fn root(&self, path: &RelPath) -> Option<(&Root, RelPath)> {
        let first = path.as_str().split('/').next();
        let holds = |root: &&Root| root.top.is_top() || first == Some(root.top.as_str());
        let root = self.roots.iter().find(holds)?;
        Some((root, RelPath::default().with(path.after(root.top.as_str().len()))))
    }

    /// Decides every component of a path from the top that is below its root.
    pub(crate) fn decide(&self, path: &RelPath) -> core::result::Result<Scope, Withheld> {
        let below = self.root(path).map(|(_, below)| below);
        self.policy.decide(&below.unwrap_or_default())
    }

    /// The path from the top that a client's text stands for.
    pub(crate) fn path(&self, text: &str) -> Result<RelPath> {
        let Some(absolute) = RelPath::parse_absolute(text)? else { return RelPath::parse(text) };
        let absolute = Path::new("/").join(absolute.as_str());
        let below = self.roots.iter().filter_map(|root| Some((root, root.below(&absolute)?)));
        let Some((root, rest)) = below.min_by_key(|(_, rest)| rest.as_os_str().len()) else {
            let why = "the absolute path lies outside every root; list_roots shows what is served";
            return Err(ToolError::new(Code::PathExcluded, why));
        };
        Ok(root.top.with(RelPath::parse(&rest.to_string_lossy())?.as_str()))
    }

    /// Finds what `spelled` names; a link at its end is followed, or not. The caller still has to
    /// ask [`Place::is_included`]; what is not found and no include matches is refused here.
    pub(crate) fn resolve(&self, spelled: &RelPath, follow: bool) -> Result<Place> {
        let Some((root, below)) = self.root(spelled) else {
            if spelled.is_top() {
                return Ok(Place::default());
            }
            let aliases: Vec<_> = self.roots.iter().map(|root| &*root.alias).collect();
            let why = format!("begins with no root; use one of: {}", aliases.join(", "));
            return Err(about(spelled, Code::UnknownRoot, why));
        };
        let refuse = |why: Withheld| why.refusal(spelled);
        let scope = self.policy.decide(&below).map_err(refuse)?;
        match self.descend(root, scope, spelled, follow) {
            Err(_) if !below.is_top() && !scope.included => Err(refuse(Withheld::NotIncluded)),
            found => found,
        }
    }

    /// Goes down from the root, one component at a time, each judged before it is looked up.
    fn descend(&self, root: &Root, scope: Scope, spelled: &RelPath, follow: bool) -> Result<Place> {
        let fail = |fault| tool_error(fault, spelled);
        let out = || about(spelled, Code::PathExcluded, "leads out of the root by a symbolic link");
        let scopes = [Scope::default(), scope];
        let mut place = Place { path: root.top.clone(), scopes, ..Place::default() };
        place.enter(root.pin()?);
        let mut todo = names(Path::new(place.below_root(spelled)));
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == ".." {
                place.leave();
                if place.levels.is_empty() {
                    return Err(out());
                }
                continue;
            }
            // The client's own names are those of a path; what a link names may have no spelling.
            if !place.path.push(name.as_bytes()) {
                return Err(out());
            }
            let scope = self.policy.step(place.scopes[0], place.below_root(&place.path));
            place.scopes[0] = scope.map_err(|why| why.refusal(spelled))?;
            let included = place.scopes[0].included;
            let here = place.here(&self.mounts).map_err(fail)?;
            let pin = match here.child(name.as_bytes(), &self.mounts) {
                Err(Fault::Missing) if links == 0 && included => {
                    return Err(self.missing(spelled, &here, &place.path));
                }
                pin => pin.map_err(fail)?,
            };
            match pin.facts.kind {
                Kind::Dir => place.enter(Arc::new(pin)),
                Kind::Link if follow || !todo.is_empty() => {
                    links += 1;
                    if links > LINKS_MAX {
                        let why = format!("goes through more than {LINKS_MAX} symbolic links");
                        return Err(about(spelled, Code::LimitExceeded, why));
                    }
                    let text = here.link_text(name.as_bytes()).map_err(fail)?;
                    if text.is_absolute() {
                        place.levels.truncate(1);
                    }
                    todo.extend(root.link_rest(&text).ok_or_else(out)?);
                    place.back();
                }
                _ if todo.is_empty() => place.leaf = Some(Arc::new(pin)),
                // What no include covers is not told apart from what is not there.
                _ if !included => return Err(fail(Fault::Missing)),
                kind => {
                    let why = format!("is a {}, so nothing is below it", kind.word());
                    return Err(about(&place.path, Code::NotADirectory, why));
                }
            }
        }
        Ok(place)
    }

    /// The error for a component that is not in `here`, with an entry that differs only in case.
    fn missing(&self, spelled: &RelPath, here: &Pin, missing: &RelPath) -> ToolError {
        let (above, typed) = (missing.parent().unwrap_or_default(), folded(missing.as_str()));
        let entries = here.entries(TWIN_ENTRIES_MAX).unwrap_or_default();
        let mut twins = entries.iter().filter_map(|(name, _)| above.child(name));
        let twin = twins.find(|twin| folded(twin.as_str()) == typed);
        let twin = twin.filter(|twin| self.is_served(twin)).map(|twin| quoted(twin.as_str()));
        let twin = twin.map(|twin| format!("; the entry {twin} differs only in case"));
        let why = format!("does not exist{}", twin.unwrap_or_default());
        about(spelled, Code::FileNotFound, why)
    }

    fn is_served(&self, path: &RelPath) -> bool {
        self.decide(path).is_ok_and(|scope| scope.included)
    }

    /// Where a link leads, one hop by its text, as rows show it: a path, or why there is none.
    pub(crate) fn link_target(&self, link: &mut Place) -> Disk<String> {
        let text = link.here(&self.mounts)?.link_text(link.name().as_bytes())?;
        let (root, _) = self.root(&link.path).ok_or(Fault::Missing)?;
        let above = if text.is_absolute() { Some(root.top.clone()) } else { link.path.parent() };
        let target = root.link_rest(&text).and_then(|rest| {
            rest.iter().rev().try_fold(above?, |above, name| match name.as_bytes() {
                b".." => above.parent().filter(|above| self.root(above).is_some()),
                name => above.child(name),
            })
        });
        let Some(target) = target else { return Ok("(outside)".into()) };
        Ok(match target.as_str() {
            _ if target != root.top && !self.is_served(&target) => "(withheld)".into(),
            "" => ".".into(),
            // A name must not pass for one of the two words above.
            target if target.starts_with('(') => json_string(target),
            target => shown(target).into_owned(),
        })
    }
}

impl Root {
    /// The handle; of a directory that was removed and made anew it is opened again.
    pub(crate) fn pin(&self) -> Result<Arc<Pin>> {
        let mut pin = self.pin.borrow_mut();
        if pin.is_removed() {
            let why = "the root directory is not there now";
            let gone = |_| ToolError::new(Code::RootUnavailable, why);
            *pin = Arc::new(disk::open_root(&self.resolved).map_err(gone)?);
        }
        Ok(pin.clone())
    }

    /// What is left of an absolute path below this root, as typed or as resolved.
    fn below<'t>(&self, path: &'t Path) -> Option<&'t Path> {
        let above = [&self.typed, &self.resolved];
        let below = above.into_iter().filter_map(|above| path.strip_prefix(above).ok());
        below.min_by_key(|below| below.as_os_str().len())
    }

    /// The names to go through for a link's text; of an absolute one, those below the root.
    fn link_rest(&self, text: &Path) -> Option<Vec<OsString>> {
        Some(names(if text.is_absolute() { self.below(text)? } else { text }))
    }
}

impl Place {
    pub(crate) fn kind(&self) -> Kind {
        self.leaf.as_ref().map_or(Kind::Dir, |pin| pin.facts.kind)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.name().unwrap_or_default()
    }

    /// Those of when it was pinned; none of the virtual directory of several roots.
    pub(crate) fn facts(&self) -> Option<Facts> {
        self.leaf.as_ref().map(|pin| pin.facts).or(self.levels.last().map(|level| level.facts))
    }

    /// The virtual directory of several roots: its entries are the roots.
    pub(crate) fn is_top(&self) -> bool {
        self.levels.is_empty()
    }

    /// What policy judges of a path from the top in the same root.
    pub(crate) fn below_root<'p>(&self, path: &'p RelPath) -> &'p str {
        self.levels.first().map_or("", |root| path.after(root.length))
    }

    /// Whether some include covers it, along both spellings; a root always is.
    pub(crate) fn is_included(&self) -> bool {
        self.below_root(&self.path).is_empty() || self.scopes.iter().all(|scope| scope.included)
    }

    /// Goes down into the entry that the path names, a directory that was judged and pinned.
    pub(crate) fn enter(&mut self, pin: Arc<Pin>) {
        let old = self.levels.len().saturating_sub(HANDLES_MAX - 1);
        if 0 < old {
            self.levels[old].pin = None;
        }
        let (length, scopes, facts) = (self.path.as_str().len(), self.scopes, pin.facts);
        self.levels.push(Level { length, scopes, facts, pin: Some(pin) });
    }

    /// Goes back from an entry to the directory that holds it.
    pub(crate) fn back(&mut self) {
        let level = self.levels.last();
        self.path.truncate(level.map_or(0, |level| level.length));
        self.scopes = level.map_or_else(Default::default, |level| level.scopes);
    }

    /// Goes up by one; by our own stack, never by asking a directory where its parent is now.
    pub(crate) fn leave(&mut self) {
        self.levels.pop();
        self.back();
    }

    /// The deepest directory. One that was let go and is another object by now is missing.
    pub(crate) fn here(&mut self, mounts: &Mounts) -> Disk<Arc<Pin>> {
        let held = self.levels.iter().enumerate().rev();
        let held = held.flat_map(|(at, level)| Some((at, level.pin.clone()?))).next();
        let (held, mut pin) = held.ok_or(Fault::Missing)?;
        for (above, level) in self.levels[held..].iter().zip(&self.levels[held + 1..]) {
            let name = self.path.after(above.length).split('/').next().unwrap_or_default();
            pin = Arc::new(pin.child(name.as_bytes(), mounts)?);
            if !pin.facts.is_same_object(&level.facts) {
                return Err(Fault::Missing);
            }
        }
        if let Some(deepest) = self.levels.last_mut() {
            deepest.pin = Some(pin.clone());
        }
        Ok(pin)
    }
}

/// Components other than `.`, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    path.iter().rev().filter(|name| *name != ".").map(Into::into).collect()
}

/// An error about a path: the path, and what is wrong with it.
pub(crate) fn about(path: &RelPath, code: Code, why: impl Display) -> ToolError {
    let path = if path.is_top() { "." } else { path.as_str() };
    ToolError::new(code, format!("{} {why}", quoted(path)))
}

/// A fault of the disk as the model is told it.
pub(crate) fn tool_error(fault: Fault, path: &RelPath) -> ToolError {
    let (code, why) = words(fault);
    about(path, code, why)
}

fn words(fault: Fault) -> (Code, &'static str) {
    match fault {
        Fault::Missing => (Code::FileNotFound, "does not exist"),
        Fault::Denied => (Code::PermissionDenied, "may not be read by this server's user"),
        Fault::NotADirectory => (Code::NotADirectory, "is not a directory"),
        Fault::Handles => (Code::LimitExceeded, "needs more open files than this server may have"),
        Fault::Busy => (Code::IoError, "is held by another process; try again"),
        Fault::PseudoFileSystem => (Code::PathExcluded, "lies on a file system of kernel objects"),
        Fault::NotAFile => (Code::NotAFile, "is not a regular file"),
        Fault::Failed => (Code::IoError, "could not be read"),
    }
}

/// The same about a root, as the operator is told it.
fn root_fault(typed: &Path, fault: Fault) -> ConfigError {
    let (typed, (_, why)) = (typed.to_string_lossy(), words(fault));
    let advice = match fault {
        Fault::Missing if typed.starts_with(['~', '$']) => "; write it whole, without ~ or $NAME",
        Fault::Missing | Fault::NotADirectory => "; name an existing directory",
        _ => "",
    };
    ConfigError(format!("the root {} {why}{advice}", quoted(&typed)))
}
