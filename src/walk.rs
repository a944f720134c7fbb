//! The ordered walk: every entry below a directory, component by component in byte order, a
//! directory followed at once by what is in it. It holds a bounded number of handles and one
//! directory's names per level, follows no links, and never leaves out anything without counting
//! it, but for what no include covers and what has vanished.

use std::sync::Arc;
use std::time::Instant;

use crate::disk::{Facts, Fault, Kind, Pin};
use crate::error::Result;
use crate::limits;
use crate::page::{Omission, Omitted};
use crate::path::RelPath;
use crate::tool::Call;
use crate::tree::{Disk, Place, tool_error};

/// A walk in progress. Its position is the number of entries visited, whether served or not.
pub(crate) struct Walk<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) place: Place, // the current entry
    pub(crate) kind: Kind,
    pub(crate) is_noise: bool, // a noise directory: shown, not entered
    pending: bool,             // it is a directory that the next step enters first
    names: Vec<Names>,         // what is left of the directories that were entered
    /// The start as the client spelled it, if links led elsewhere: then both paths are judged.
    spelled: Option<RelPath>,
    start_length: usize,         // of its path after links
    pub(crate) depth_max: usize, // how many levels are entered
    enters_noise: bool,
    pub(crate) visited: u64, // since [`Walk::begin`]
    pub(crate) visited_max: u64,
    deadline: Option<Instant>,
    pub(crate) omitted: Omitted,
    /// What was left out and where, after links, if somebody wants to know.
    pub(crate) notes: Option<Vec<(Omission, RelPath)>>,
}

impl<'a> Walk<'a> {
    /// A walk below `place`, a directory spelled as `start`, without a limit until [`Walk::begin`].
    pub(crate) fn new(call: &'a Call<'a>, start: &RelPath, mut place: Place) -> Result<Self> {
        let names = if place.is_top() {
            let roots = call.tree.roots.iter().rev();
            let sorted = roots.map(|root| (root.alias.as_bytes().into(), Kind::Dir)).collect();
            Names { sorted, ..Names::default() }
        } else {
            let names = place.here(&call.tree.mounts).and_then(|here| Names::read(&here));
            names.map_err(|fault| tool_error(fault, start))?
        };
        Ok(Self {
            call,
            kind: Kind::Dir,
            is_noise: false,
            pending: false,
            names: vec![names],
            spelled: (place.path != *start).then(|| start.clone()),
            start_length: place.path.as_str().len(),
            place,
            depth_max: limits::WALK_DEPTH_MAX,
            enters_noise: false,
            visited: 0,
            visited_max: u64::MAX,
            deadline: None,
            omitted: Omitted::default(),
            notes: None,
        })
    }

    /// From here on entries are counted, and limited in number and time.
    pub(crate) fn begin(&mut self) {
        (self.visited, self.visited_max) = (0, limits::ENTRIES_MAX);
        (self.omitted, self.deadline) = (Omitted::default(), Some(self.call.deadline()));
    }

    pub(crate) fn is_done(&self) -> bool {
        self.names.is_empty()
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Goes on to the next entry that is served; false if there is none, or if the time budget or
    /// the entry limit is used up. They are checked before each entry, so that what it counts
    /// belongs to one page, unless the caller takes it back; the first is always taken.
    pub(crate) fn step(&mut self) -> bool {
        loop {
            // The clock is read at every sixteenth entry: one takes microseconds.
            let reads_clock = self.visited > 0 && self.visited.is_multiple_of(16);
            if self.visited >= self.visited_max || reads_clock && self.is_over() {
                return false;
            }
            if core::mem::take(&mut self.pending) {
                match self.pin().and_then(|pin| Ok((Names::read(&pin)?, pin))) {
                    Ok((names, pin)) => {
                        self.names.push(names);
                        self.place.enter(pin);
                    }
                    // It is gone, or no directory any more: there is nothing to leave out.
                    Err(Fault::Missing | Fault::NotADirectory) => (),
                    Err(fault) => self.count(fault.into()),
                }
            }
            self.place.back();
            let Some(names) = self.names.last_mut() else { return false };
            let Some((name, kind)) = names.next() else {
                self.names.pop();
                self.place.leave();
                continue;
            };
            self.visited += 1;
            match self.judge(&name, kind) {
                Ok(true) => return true,
                Ok(false) => (),
                Err(why) => self.count(why),
            }
        }
    }

    /// Judges an entry, which becomes the current one: is it served, and is it entered next?
    fn judge(&mut self, name: &[u8], kind: Kind) -> core::result::Result<bool, Omission> {
        let (place, policy) = (&mut self.place, &self.call.tree.policy);
        if !place.path.push(name) {
            let is_long = limits::PATH_BYTES_MAX < place.path.as_str().len();
            return Err(if is_long { Omission::TooLong } else { Omission::NotUtf8 });
        }
        // The roots themselves are above every rule.
        let is_root = place.is_top();
        if !is_root {
            let withheld = |_| Omission::Withheld;
            let [real, spelled] = place.scopes;
            place.scopes = [policy.step(real, place.below_root(&place.path)).map_err(withheld)?; 2];
            if let Some(start) = &self.spelled {
                let path = start.with(place.path.after(self.start_length));
                if limits::PATH_BYTES_MAX < path.as_str().len() {
                    return Err(Omission::TooLong);
                }
                place.scopes[1] =
                    policy.step(spelled, place.below_root(&path)).map_err(withheld)?;
            }
        }
        (self.kind, self.is_noise) = (kind, false);
        if kind != Kind::Dir {
            return Ok(self.place.is_included());
        }
        self.is_noise = !is_root && policy.is_noise(self.place.scopes[0], self.place.name());
        match self.names.len() {
            limits::WALK_DEPTH_MAX.. => self.count(Omission::TooDeep),
            depth if depth >= self.depth_max => (),
            _ if !self.is_noise || self.enters_noise => self.pending = true,
            _ => self.omitted.not_searched(self.place.name()),
        }
        Ok(true)
    }

    pub(crate) fn count(&mut self, omission: Omission) {
        self.omitted.add(omission, 1);
        let note = || (omission, self.place.path.clone());
        self.notes.iter_mut().for_each(|notes| notes.push(note()));
    }

    /// The path of the current entry below the start.
    pub(crate) fn below(&self) -> &str {
        self.place.path.after(self.start_length)
    }

    /// The path of the current entry from the top, as the client spells it.
    pub(crate) fn path(&self) -> RelPath {
        let start = self.spelled.as_ref();
        start.map_or_else(|| self.place.path.clone(), |start| start.with(self.below()))
    }

    pub(crate) fn pin(&mut self) -> Disk<Arc<Pin>> {
        let tree = &self.call.tree;
        if self.place.is_top() {
            let (root, _) = tree.root(&self.place.path).ok_or(Fault::Missing)?;
            return root.pin().map_err(|_| Fault::Failed);
        }
        let here = self.place.here(&tree.mounts)?;
        here.child(self.place.name().as_bytes(), &tree.mounts).map(Arc::new)
    }

    /// The facts of the current entry, not followed.
    pub(crate) fn facts(&mut self) -> Disk<Facts> {
        let here = self.place.here(&self.call.tree.mounts)?;
        here.child_facts(self.place.name().as_bytes())
    }

    /// Whether the current entry is shown: it is no directory, some include covers it, or a
    /// look-ahead finds something served in it. If the entry limit stops that, it is counted.
    pub(crate) fn is_shown(&mut self) -> bool {
        if self.kind != Kind::Dir || self.place.is_included() {
            return true;
        }
        let Ok(pin) = self.pin() else { return false };
        let mut place = self.place.clone();
        place.enter(pin);
        let Ok(mut ahead) = Self::new(self.call, &self.path(), place) else { return false };
        // At the first entry of a page only the entry limit stops it, as on every later page.
        ahead.deadline = self.deadline.filter(|_| self.visited > 1);
        match ahead.finds_served() {
            Some(true) => return true,
            Some(false) => (),
            // The time is used up: the next page begins with this entry.
            None if self.visited > 1 && self.is_over() => {
                self.visited -= 1;
                self.visited_max = self.visited;
            }
            None => self.count(Omission::NotChecked),
        }
        self.pending = false;
        false
    }

    /// Whether anything below the start is covered by an include. `None`: a limit was reached.
    pub(crate) fn finds_served(mut self) -> Option<bool> {
        (self.enters_noise, self.visited_max) = (true, limits::LOOK_AHEAD_ENTRIES_MAX);
        while self.step() {
            if self.place.is_included() {
                return Some(true);
            }
        }
        self.is_done().then_some(false)
    }
}

type Entry = (Box<[u8]>, Kind);

/// The names of one directory, sorted a part at a time: a first page does not wait for a full sort.
#[derive(Default)]
struct Names {
    left: Vec<Entry>,
    sorted: Vec<Entry>, // those before all that are left, the next one last
}

impl Names {
    fn read(directory: &Pin) -> Disk<Self> {
        if directory.facts.kind != Kind::Dir {
            return Err(Fault::NotADirectory);
        }
        Ok(Self { left: directory.entries(usize::MAX)?, ..Self::default() })
    }

    fn next(&mut self) -> Option<Entry> {
        if self.sorted.is_empty() && !self.left.is_empty() {
            let count = self.left.len();
            let rest = count.saturating_sub(limits::SORT_BATCH_ENTRIES.max(count / 8));
            self.left.select_nth_unstable_by(rest, |a, b| b.0.cmp(&a.0));
            self.sorted = self.left.split_off(rest);
            self.sorted.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        }
        self.sorted.pop()
    }
}
