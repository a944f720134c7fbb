//! The ordered walk: every entry below a directory, component by component in byte order, a
//! directory followed at once by what is in it. It holds a bounded number of handles and one
//! directory's names per level, follows no links, and never skips anything without counting it.

use std::sync::Arc;

use crate::cursor::{START_AGAIN, stale};
use crate::disk::{Facts, Fault, Kind, Pin};
use crate::error::{Result, ToolError};
use crate::limits::{
    ENTRIES_MAX, LOOK_AHEAD_ENTRIES_MAX, PATH_BYTES_MAX, SORT_BATCH_ENTRIES, WALK_DEPTH_MAX,
};
use crate::page::{Omission, Omitted};
use crate::path::RelPath;
use crate::policy::Scope;
use crate::tool::{Call, Deadline};
use crate::tree::{Chain, Object, Place, tool_error};

/// What the disk gives, or why it does not.
type Disk<T> = core::result::Result<T, Fault>;

/// What one step of a walk met.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An entry that is served; see the accessors of [`Walk`].
    Entry,
    /// An entry that is not shown; where it has to be counted, it was.
    Skipped,
    /// Nothing is left.
    End,
    /// The time budget or the entry limit is used up; the walk can go on from its position.
    Stopped,
}

/// A walk in progress. Steps are the unit of its position: after the same number of steps over the
/// same tree it stands at the same place.
pub(crate) struct Walk<'a> {
    call: &'a Call<'a>,
    frames: Vec<Frame>,
    chain: Option<Chain>,
    root: usize,
    /// The path of the current entry as the client sees it, and below its root after links.
    spelled: String,
    real: String,
    /// Where in `spelled` the part below the start, and the part below the root, begin.
    base: usize,
    alias: usize,
    /// The start was reached through a link, so both paths are judged.
    linked: bool,
    /// The start is the virtual directory of several roots.
    from_top: bool,
    depth_max: usize,
    enters_noise: bool,
    /// Of the current entry: where its name begins in `spelled`, and what was judged.
    name: usize,
    kind: Kind,
    scopes: [Scope; 2],
    /// A noise directory: shown, not entered.
    pub(crate) is_noise: bool,
    /// It is a directory that the next step enters first.
    pending: bool,
    /// Steps since [`Walk::begin`], and how many there may be.
    pub(crate) visited: u64,
    visited_max: u64,
    deadline: Option<Deadline>,
    counts: bool,
    pub(crate) omitted: Omitted,
    /// What the last step left out and where, if [`Walk::begin_check`] wants to know.
    pub(crate) notes: Option<Vec<(Omission, String)>>,
}

/// A directory that was entered: what is left of it, and the lengths of its two paths.
struct Frame {
    names: Names,
    lengths: [usize; 2],
    scopes: [Scope; 2],
}

impl<'a> Walk<'a> {
    /// A walk below `place`, which must be a directory, entering `depth_max` levels. It counts
    /// nothing and has no time limit until [`Walk::begin`].
    pub(crate) fn new(call: &'a Call<'a>, mut place: Place, depth_max: usize) -> Result<Self> {
        let names = match &mut place.chain {
            None => Ok(Names::of_roots(call)),
            Some(chain) => chain.here(&call.tree.mounts).and_then(|here| Names::read(&here)),
        };
        let names = names.map_err(|fault| tool_error(fault, &place.spelled))?;
        let (spelled, real) = (place.spelled.as_str(), place.real.as_str());
        let first = spelled.split('/').next().filter(|_| call.tree.roots().len() > 1);
        let alias = first.map_or(0, |alias| alias.len() + 1);
        let from_top = matches!(place.object, Object::Top);
        let mut walk = Self {
            call,
            frames: Vec::new(),
            chain: place.chain,
            root: place.root,
            base: if spelled.is_empty() { 0 } else { spelled.len() + 1 },
            alias,
            linked: !from_top && spelled.get(alias..).unwrap_or_default() != real,
            spelled: spelled.into(),
            real: real.into(),
            from_top,
            depth_max,
            enters_noise: false,
            name: 0,
            kind: Kind::Dir,
            scopes: place.scopes,
            is_noise: false,
            pending: false,
            visited: 0,
            visited_max: u64::MAX,
            deadline: None,
            counts: false,
            omitted: Omitted::default(),
            notes: None,
        };
        walk.push(names);
        Ok(walk)
    }

    /// The current entry becomes the directory whose names come next.
    fn push(&mut self, names: Names) {
        let lengths = [self.spelled.len(), self.real.len()];
        self.frames.push(Frame { names, lengths, scopes: self.scopes });
    }

    /// From here on steps are counted, and limited in number and time.
    pub(crate) fn begin(&mut self) {
        (self.counts, self.visited, self.visited_max) = (true, 0, ENTRIES_MAX);
        self.deadline = Some(self.call.deadline());
    }

    /// From here on steps are counted and noted, without a limit.
    pub(crate) fn begin_check(&mut self) {
        (self.counts, self.notes) = (true, Some(Vec::new()));
    }

    /// The time budget, once [`Walk::begin`] has started it.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// True once the time is used up.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }

    /// Whether the current entry is a root, in the virtual directory of several.
    fn is_root(&self) -> bool {
        self.from_top && self.frames.len() == 1
    }

    /// Goes on by one entry. The limits are checked before anything is done, so that what a step
    /// counts belongs to one page, unless the caller takes it back; the first is always taken.
    pub(crate) fn step(&mut self) -> Step {
        // The clock is read on every sixteenth step: a step is microseconds.
        let reads_clock = self.visited > 0 && self.visited.is_multiple_of(16);
        if self.visited >= self.visited_max || reads_clock && self.is_over() {
            return Step::Stopped;
        }
        if core::mem::take(&mut self.pending) {
            match self.enter() {
                Ok(names) => self.push(names),
                // It is gone, or no directory any more: there is nothing to leave out.
                Err(Fault::Missing | Fault::NotADirectory) => (),
                Err(Fault::PseudoFileSystem) => self.count(Omission::PseudoFileSystem),
                Err(_) => self.count(Omission::Unreadable),
            }
        }
        loop {
            let is_root = self.is_root();
            let Some(frame) = self.frames.last_mut() else { return Step::End };
            self.spelled.truncate(frame.lengths[0]);
            self.real.truncate(frame.lengths[1]);
            if let Some((name, kind)) = frame.names.next() {
                self.visited += 1;
                let appended = append(&mut self.spelled, &mut self.real, is_root, name);
                return appended.and_then(|name| self.judge(name, kind)).unwrap_or_else(|why| {
                    self.count(why);
                    Step::Skipped
                });
            }
            self.frames.pop();
            // A root has no level in the chain: then there is none to go up by.
            self.chain.iter_mut().for_each(Chain::pop);
        }
    }

    /// Judges the entry whose name begins at `name`, and decides whether the next step enters it.
    fn judge(&mut self, name: usize, kind: Kind) -> core::result::Result<Step, Omission> {
        let policy = &self.call.tree.policy;
        let mut scopes = self.frames.last().map(|frame| frame.scopes).unwrap_or_default();
        if !self.is_root() {
            let withheld = |_| Omission::Withheld;
            let above = scopes;
            scopes = [policy.step(above[0], &self.real).map_err(withheld)?; 2];
            if self.linked {
                let path = self.spelled.get(self.alias..).unwrap_or_default();
                scopes[1] = policy.step(above[1], path).map_err(withheld)?;
            }
        }
        (self.name, self.kind, self.scopes, self.is_noise) = (name, kind, scopes, false);
        if kind != Kind::Dir {
            return Ok(if self.is_included() { Step::Entry } else { Step::Skipped });
        }
        self.is_noise = !self.is_root() && policy.is_noise(scopes[0], self.name());
        match self.frames.len() {
            WALK_DEPTH_MAX.. => self.count(Omission::TooDeep),
            depth if depth >= self.depth_max => (),
            _ if !self.is_noise || self.enters_noise => self.pending = true,
            _ if self.counts => self.omitted.not_searched(&self.spelled[name..]),
            _ => (),
        }
        Ok(Step::Entry)
    }

    /// Opens the current entry, a directory.
    fn enter(&mut self) -> Disk<Names> {
        if self.is_root() {
            let root = self.call.tree.roots().position(|(alias, _)| alias == self.name());
            self.root = root.ok_or(Fault::Missing)?;
            let pin = self.call.tree.root_pin(self.root).map_err(|_| Fault::Failed)?;
            let names = Names::read(&pin)?;
            (self.alias, self.chain) = (self.spelled.len() + 1, Some(Chain::new(pin)));
            return Ok(names);
        }
        let pin = self.pin()?;
        let names = Names::read(&pin)?;
        let name = self.name().as_bytes().to_vec();
        self.chain.as_mut().ok_or(Fault::Missing)?.push(name, pin);
        Ok(names)
    }

    /// Counts something that is left out, once the walk counts.
    pub(crate) fn count(&mut self, omission: Omission) {
        if self.counts {
            self.omitted.add(omission, 1);
        }
        self.notes.iter_mut().for_each(|notes| notes.push((omission, self.spelled.clone())));
    }

    /// The path of the current entry from the top.
    pub(crate) fn path(&self) -> &str {
        &self.spelled
    }

    /// The path of the current entry below the start.
    pub(crate) fn below(&self) -> &str {
        self.spelled.get(self.base..).unwrap_or_default()
    }

    /// The base name of the current entry.
    pub(crate) fn name(&self) -> &str {
        &self.spelled[self.name..]
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    fn is_included(&self) -> bool {
        self.scopes.iter().all(|scope| scope.included)
    }

    /// The directory that holds the current entry.
    fn here(&mut self) -> Disk<Arc<Pin>> {
        let is_root = self.is_root();
        let chain = self.chain.as_mut().filter(|_| !is_root);
        chain.ok_or(Fault::Missing)?.here(&self.call.tree.mounts)
    }

    /// Pins the current entry.
    pub(crate) fn pin(&mut self) -> Disk<Pin> {
        self.here()?.child(self.name().as_bytes(), &self.call.tree.mounts)
    }

    /// The facts of the current entry, not followed.
    pub(crate) fn facts(&mut self) -> Disk<Facts> {
        self.here()?.child_facts(self.name().as_bytes())
    }

    /// Where the current entry, a symbolic link, leads, as rows show it.
    pub(crate) fn link_target(&mut self) -> Disk<String> {
        let text = self.here()?.link_text(self.name().as_bytes())?;
        let directory = self.frames.last().map_or("", |frame| &self.real[..frame.lengths[1]]);
        let directory = RelPath::parse(directory).map_err(|_| Fault::Missing)?;
        Ok(self.call.tree.link_target(self.root, &directory, &text))
    }

    /// Whether the current directory is to be shown: some include covers it, or a look-ahead finds
    /// something served in it. `None`: the limits stopped the look-ahead.
    pub(crate) fn is_shown(&mut self) -> Option<bool> {
        if self.kind != Kind::Dir || self.is_root() || self.is_included() {
            return Some(true);
        }
        let Some(ahead) = self.look_ahead() else { return Some(false) };
        let shown = ahead.finds_served();
        self.pending &= shown == Some(true);
        shown
    }

    /// A walk below the current entry, if it can be read.
    fn look_ahead(&mut self) -> Option<Self> {
        let chain = Some(Chain::new(Arc::new(self.pin().ok()?)));
        let [spelled, real] = [&self.spelled, &self.real].map(|path| RelPath::parse(path));
        let (spelled, real, scopes) = (spelled.ok()?, real.ok()?, self.scopes);
        let place = Place { spelled, real, root: self.root, scopes, chain, object: Object::Dir };
        let ahead = Self::new(self.call, place, WALK_DEPTH_MAX).ok()?;
        // At the first entry of a page only the entry limit stops it, as on every later page.
        Some(Self { deadline: self.deadline.filter(|_| self.visited > 1), ..ahead })
    }

    /// Whether anything below the start is covered by an include.
    pub(crate) fn finds_served(mut self) -> Option<bool> {
        (self.enters_noise, self.visited_max) = (true, LOOK_AHEAD_ENTRIES_MAX);
        loop {
            match self.step() {
                Step::Entry if self.is_included() => return Some(true),
                Step::Entry | Step::Skipped => (),
                Step::End => return Some(false),
                Step::Stopped => return None,
            }
        }
    }
}

/// Appends a name to the paths, if it has a spelling; gives where it begins in `spelled`. A root is
/// the top of its own `real` path.
fn append(
    spelled: &mut String,
    real: &mut String,
    is_root: bool,
    name: &[u8],
) -> core::result::Result<usize, Omission> {
    let plain = str::from_utf8(name).ok().filter(|name| !name.contains('\\'));
    let name = plain.ok_or(Omission::NotUtf8)?;
    for path in [&mut *spelled, &mut *real].into_iter().take(if is_root { 1 } else { 2 }) {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
    }
    match spelled.len() {
        // A drive letter at the top.
        _ if real.len() == 2 && RelPath::parse(real).is_err() => Err(Omission::NotUtf8),
        ..=PATH_BYTES_MAX => Ok(spelled.len() - name.len()),
        _ => Err(Omission::TooLong),
    }
}

/// The names of one directory, put in order in batches as they are asked for: the first page of a
/// huge directory does not wait for a full sort.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    entries: Vec<(u32, u16, Kind)>,
    next: usize,
    sorted: usize,
    batch: usize,
}

impl Names {
    fn of_roots(call: &Call<'_>) -> Self {
        let mut names = Self::default();
        call.tree.roots().for_each(|(alias, _)| names.add(alias.as_bytes(), Kind::Dir));
        names
    }

    fn read(directory: &Pin) -> Disk<Self> {
        if directory.facts.kind != Kind::Dir {
            return Err(Fault::NotADirectory);
        }
        let mut names = Self::default();
        directory.entries(|name, kind| {
            names.add(name, kind);
            true
        })?;
        // Nobody could hold names that need more than 32 bits of room.
        if u32::try_from(names.bytes.len()).is_ok() { Ok(names) } else { Err(Fault::Failed) }
    }

    fn add(&mut self, name: &[u8], kind: Kind) {
        self.entries.push((self.bytes.len() as u32, name.len() as u16, kind));
        self.bytes.extend_from_slice(name);
    }

    fn next(&mut self) -> Option<(&[u8], Kind)> {
        if self.next == self.sorted {
            self.sort_batch();
        }
        let (start, length, kind) = *self.entries.get(self.next)?;
        self.next += 1;
        Some((&self.bytes[start as usize..][..usize::from(length)], kind))
    }

    fn sort_batch(&mut self) {
        let bytes = &self.bytes;
        let name = |entry: &(u32, u16, Kind)| &bytes[entry.0 as usize..][..usize::from(entry.1)];
        let rest = &mut self.entries[self.sorted..];
        self.batch = (self.batch * 4).max(SORT_BATCH_ENTRIES);
        let batch = self.batch.min(rest.len());
        if batch < rest.len() {
            rest.select_nth_unstable_by(batch, |a, b| name(a).cmp(name(b)));
        }
        rest[..batch].sort_unstable_by(|a, b| name(a).cmp(name(b)));
        self.sorted += batch;
    }
}

/// Goes through what earlier pages passed: `items` items and then `since` further steps. `is_item`
/// says whether the current entry is an item and folds it into the state. `stale-cursor` when the
/// tree has too few, or an item where there was none.
pub(crate) fn pass(
    walk: &mut Walk<'_>,
    items: u64,
    since: u64,
    mut is_item: impl FnMut(&mut Walk<'_>) -> core::result::Result<bool, ToolError>,
) -> Result<()> {
    let (mut passed, mut after) = (0, 0);
    while passed < items || after < since {
        let found = match walk.step() {
            Step::Entry => is_item(walk)?,
            Step::Skipped => false,
            Step::End | Step::Stopped => return Err(stale(START_AGAIN)),
        };
        match (passed < items, found) {
            (true, _) => passed += u64::from(found),
            (false, true) => return Err(stale(START_AGAIN)),
            (false, false) => after += 1,
        }
    }
    Ok(())
}
