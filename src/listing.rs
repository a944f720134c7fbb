//! Pages of a walk: where one ends, and how the next goes on there, after checking that what was
//! passed is still the same; and pages of rows, one for an entry. It never looks into files.

use crate::cursor::{Position, START_AGAIN, Seal, Tag};
use crate::error::Result;
use crate::limits::HEADER_CHARS_MAX;
use crate::page::{Omission, Omitted, Page};
use crate::reading::stale_if_gone;
use crate::walk::Walk;

/// A walk, and what its pages have passed: items, and other entries after the last of them.
pub(crate) struct Paging<'a> {
    pub(crate) walk: Walk<'a>,
    pub(crate) state: Tag,
    items: u64,
    since: u64,               // entries after the last item, on earlier pages
    accepted: (u64, Omitted), // when this page passed its last item: visited, and left out
}

impl<'a> Paging<'a> {
    /// Goes on where the page before ended. `tag` gives what must not change of the current entry,
    /// if it is an item. `stale-cursor` when the items that were passed are no longer the same.
    pub(crate) fn new<const N: usize, T: AsRef<[u64]>>(
        walk: Walk<'a>,
        position: &Option<Position<N>>,
        mut tag: impl FnMut(&mut Walk<'_>) -> Option<T>,
    ) -> Result<Self> {
        let state = walk.call.seal.tag("state");
        let mut paging = Self { walk, state, items: 0, since: 0, accepted: Default::default() };
        if let Some(position) = position {
            let (items, since) = (position.numbers[0], position.numbers[1]);
            loop {
                // An item among the entries since would change the state.
                if paging.items == items {
                    paging.walk.visited_max = paging.accepted.0.saturating_add(since);
                }
                if !paging.walk.step() {
                    break;
                }
                if let Some(tag) = tag(&mut paging.walk) {
                    paging.accept(tag.as_ref());
                }
            }
            position.expect(&paging.state, START_AGAIN)?;
            (paging.since, paging.accepted) = (since, Default::default());
        }
        paging.walk.begin();
        Ok(paging)
    }

    /// The current entry is an item of this page.
    pub(crate) fn accept(&mut self, tag: &[u64]) {
        self.state.add(self.walk.below(), tag);
        (self.items, self.since) = (self.items + 1, 0);
        self.accepted = (self.walk.visited, self.walk.omitted.clone());
    }

    /// The page ends after its last item: what was met since is met again on the next one.
    pub(crate) fn back(&mut self) {
        (self.walk.visited, self.walk.omitted) = self.accepted.clone();
    }

    /// What a cursor says of this position.
    pub(crate) fn numbers(&self) -> [u64; 2] {
        [self.items, self.since + self.walk.visited - self.accepted.0]
    }
}

/// Fills a page. `wanted` tells which entries are shown; `row` prints one, or nothing if it has
/// vanished. Gives the page, its rows, and how many entries it looked at.
pub(crate) fn fill(
    walk: Result<Walk<'_>>,
    binding: &Tag,
    cursor: &Option<String>,
    limit: Option<u64>,
    wanted: impl Fn(&Walk<'_>) -> bool,
    row: impl Fn(&mut Walk<'_>) -> Option<String>,
) -> Result<(Page, u64, u64)> {
    let position = cursor.as_deref().map(|text| Seal::open::<2>(binding, text)).transpose()?;
    let walk = stale_if_gone(cursor.is_some(), walk, START_AGAIN)?;
    let (mut page, mut rows) = (Page::new(walk.call, None, HEADER_CHARS_MAX), 0);
    let tag = |walk: &mut Walk<'_>| (wanted(walk) && walk.is_shown()).then_some([walk.kind as u64]);
    let mut paging = Paging::new(walk, &position, tag)?;
    while paging.walk.step() {
        let walk = &mut paging.walk;
        let Some(tag) = tag(walk) else { continue };
        let is_full = limit.is_some_and(|limit| limit <= rows);
        let row = if is_full { None } else { row(walk) };
        match row.map(|row| page.rows(&row)) {
            None if !is_full => continue,
            Some(true) => rows += 1,
            Some(false) if page.is_empty() => walk.count(Omission::TooLong),
            _ => {
                paging.back();
                break;
            }
        }
        paging.accept(&tag);
    }
    let visited = paging.walk.visited;
    if !paging.walk.is_done() {
        page.cursor = Some(Seal::seal(binding, &paging.numbers(), &paging.state)?);
    }
    page.omitted = paging.walk.omitted;
    Ok((page, rows, visited))
}
