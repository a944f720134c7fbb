//! Pages of entries: what `list_directory` and `search_files` share. A page is rows of a walk up to
//! a limit; the next one goes on where it ended, after checking that what was passed is the same.

use crate::cursor::{Position, START_AGAIN, Seal, Tag};
use crate::error::Result;
use crate::limits::HEADER_CHARS_MAX;
use crate::page::{Omission, Page};
use crate::tool::Call;
use crate::walk::{Step, Walk, pass};

/// One page of rows.
pub(crate) struct Listing {
    pub(crate) page: Page,
    /// Rows on this page.
    pub(crate) rows: u64,
    /// Entries that this page looked at.
    pub(crate) visited: u64,
}

/// Fills a page. `is_item` says whether the current entry is wanted; `row` prints it, or nothing if
/// it has vanished.
pub(crate) fn fill(
    call: &Call<'_>,
    mut walk: Walk<'_>,
    binding: &Tag,
    position: Option<Position<2>>,
    limit: Option<u64>,
    is_item: impl Fn(&Walk<'_>) -> bool,
    mut row: impl FnMut(&mut Walk<'_>) -> Option<String>,
) -> Result<Listing> {
    let mut state = call.seal.tag("state");
    let (mut items, mut since) = (0, 0);
    if let Some(position) = position {
        [items, since] = position.numbers;
        pass(&mut walk, items, since, |walk| {
            let wanted = is_item(walk) && walk.is_shown() == Some(true);
            if wanted {
                state.pass(walk.below(), &[walk.kind() as u64]);
            }
            Ok(wanted)
        })?;
        position.expect(&state, START_AGAIN)?;
    }
    walk.begin();
    let (mut page, mut rows) = (Page::new(call, None, HEADER_CHARS_MAX), 0);
    // What was looked at and left out up to the last item: what comes after it is met again, and
    // counted, on the next page.
    let mut accepted = (0, walk.omitted.clone());
    let (complete, visited) = loop {
        let step = walk.step();
        match step {
            Step::End => break (true, walk.visited),
            Step::Stopped => break (false, walk.visited),
            Step::Entry | Step::Skipped => since += 1,
        }
        if step == Step::Skipped || !is_item(&walk) {
            continue;
        }
        match walk.is_shown() {
            Some(true) => (),
            Some(false) => continue,
            // The time ran out in the look-ahead: the next page begins with this entry.
            None if walk.is_over() && walk.visited > 1 => {
                since -= 1;
                break (false, walk.visited - 1);
            }
            None => {
                walk.count(Omission::NotChecked);
                continue;
            }
        }
        let mut is_full = limit.is_some_and(|limit| limit <= rows);
        if !is_full {
            let Some(row) = row(&mut walk) else { continue };
            match page.rows(&row) {
                true => rows += 1,
                false if page.is_empty() => walk.count(Omission::TooLong),
                false => is_full = true,
            }
        }
        if is_full {
            (since, walk.omitted) = (0, accepted.1);
            break (false, accepted.0);
        }
        (items, since) = (items + 1, 0);
        state.pass(walk.below(), &[walk.kind() as u64]);
        accepted = (walk.visited, walk.omitted.clone());
    };
    page.omitted = walk.omitted;
    if !complete {
        page.cursor = Some(Seal::seal(binding, &[items, since], &state)?);
    }
    Ok(Listing { page, rows, visited })
}
