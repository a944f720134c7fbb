//! The search loop: matching lines of one file after the other, in one reused buffer. Lines are
//! located only around hits; a line is never copied unless it is shown.

use std::ops::Range;
use std::time::Instant;

use memchr::{memchr, memmem::Finder, memrchr};

use crate::disk::Content;
use crate::glob::folded;
use crate::limits::{self, BLOCK_BYTES, LONG_LINE_BYTES, WINDOW_CHARS};
use crate::lines::{Block, binary_kind, is_continuation, newlines};
use crate::tree::Disk;

/// On both sides of a piece of a long line, so that the window of a hit lies in one piece whole.
const MARGIN_BYTES: usize = 4 * 1024;
const _: () = assert!(8 * (limits::QUERY_BYTES_MAX + WINDOW_CHARS) < MARGIN_BYTES);

/// Text in lower case, and where in the text each byte comes from: nothing if from its own place.
type Folded = (Vec<u8>, Vec<u32>);

/// Neither neighbour is alphanumeric or `_`.
fn is_word(text: &[u8], hit: &Range<usize>) -> bool {
    let before = String::from_utf8_lossy(&text[hit.start.saturating_sub(4)..hit.start]);
    let after = String::from_utf8_lossy(&text[hit.end..text.len().min(hit.end + 4)]);
    let part = |character: char| character.is_alphanumeric() || character == '_';
    !before.ends_with(part) && !after.starts_with(part)
}

pub(crate) struct Hit {
    /// From where it would be found again, as [`Scan::begin`] takes it.
    pub(crate) offset: u64,
    pub(crate) line: u64,
    pub(crate) inside: u64,
    pub(crate) end: u64,     // where the next line begins
    pub(crate) text: String, // the line without its end, or a window of it, ready to show
    pub(crate) crlf: bool,
}

/// What a search comes to next.
pub(crate) enum Found {
    Hit(Hit),
    Binary, // a NUL in the first block: nothing of the file is searched
    End,
    Stopped, // the time budget is used up
}

/// The search for one text, in one file after the other.
pub(crate) struct Scan {
    finder: Finder<'static>,
    ignore_case: bool,
    whole_word: bool,
    block: Block, // up to where it is used its lines are whole
    folded: Folded,
    next: usize, // where in the block the next line to look at begins
    line: u64,   // its number
    /// Inside a long line: 1 where it was shown, else 2 and the characters of it before the block.
    inside: u64,
    pub(crate) bad_lines: u64, // passed, but not searched: they are not UTF-8
}

impl Scan {
    pub(crate) fn new(query: &str, ignore_case: bool, whole_word: bool) -> Self {
        let query = if ignore_case { folded(query) } else { query.into() };
        let finder = Finder::new(query.as_bytes()).into_owned();
        let (block, folded, next, line, inside, bad_lines) = Default::default();
        Self { finder, ignore_case, whole_word, block, folded, next, line, inside, bad_lines }
    }

    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.find(text, &self.fold(text), 0).is_some()
    }

    /// Goes to a position as [`Scan::position`] gives it; `inside` is 0 where a line begins.
    pub(crate) fn begin(&mut self, offset: u64, line: u64, inside: u64) {
        let bytes = core::mem::take(&mut self.block.bytes);
        self.block = Block { bytes, start: offset, ..Block::default() };
        (self.next, self.line, self.inside) = (0, line, inside);
    }

    /// The offset and the number of the next line, or the position inside a long one.
    pub(crate) fn position(&self) -> (u64, u64, u64) {
        (self.block.offset(self.next), self.line, self.inside)
    }

    /// The next matching line of the file in which it was begun.
    pub(crate) fn next(&mut self, content: &Content, deadline: Instant) -> Disk<Found> {
        loop {
            if self.inside > 0 {
                if let Some(found) = self.long_line(content, deadline)? {
                    return Ok(found);
                }
            } else if self.next < self.block.used {
                if let Some(hit) = self.next_in_block() {
                    return Ok(Found::Hit(hit));
                }
            } else if self.block.at_end && self.block.used == self.block.filled {
                return Ok(Found::End);
            } else if self.block.filled > 0 && deadline <= Instant::now() {
                // The first block is always searched.
                return Ok(Found::Stopped);
            } else {
                self.block.fill(content, BLOCK_BYTES)?;
                let bytes = self.block.rest();
                if self.block.start == 0 && binary_kind(bytes).is_some() {
                    return Ok(Found::Binary);
                }
                let whole = memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
                let used = if self.block.at_end { bytes.len() } else { whole };
                self.folded = self.fold(&bytes[..used]);
                self.inside = if used == 0 && !self.block.at_end { 2 } else { 0 };
                (self.block.used, self.next) = (used, 0);
            }
        }
    }

    /// The next hit in whole lines; none as well at one in a long line, which is then gone into.
    fn next_in_block(&mut self) -> Option<Hit> {
        let region = &self.block.bytes[..self.block.used];
        while let Some(hit) = self.find(region, &self.folded, self.next) {
            let before = &region[self.next..hit.start];
            let start = self.next + memrchr(b'\n', before).map_or(0, |newline| newline + 1);
            let end = memchr(b'\n', &region[hit.end..]).map_or(region.len(), |n| hit.end + n + 1);
            self.line += newlines(before);
            self.bad_lines += bad_lines(&region[self.next..end]);
            if end - start > LONG_LINE_BYTES {
                (self.block.used, self.next, self.inside) = (start, start, 2);
                return None;
            }
            (self.line, self.next) = (self.line + 1, end);
            let (text, crlf) = without_end(&region[start..end]);
            if let Ok(text) = str::from_utf8(text) {
                let text = shown(text, &(hit.start - start..hit.end - start));
                let (offset, end) = (self.block.offset(start), self.block.offset(end));
                return Some(Hit { line: self.line - 1, offset, inside: 0, end, text, crlf });
            }
        }
        // Lines have to be counted only where more of the file follows.
        if !self.block.at_end {
            self.line += newlines(&region[self.next..]);
        }
        self.bad_lines += bad_lines(&region[self.next..]);
        self.next = region.len();
        None
    }

    /// Goes through a long line, in pieces. None if it is passed, and held nothing to show.
    fn long_line(&mut self, content: &Content, deadline: Instant) -> Disk<Option<Found>> {
        let (offset, inside) = (self.block.offset(self.block.used), self.inside);
        let (mut window, mut undecodable, mut before) = (None, false, inside.saturating_sub(2));
        let mut from = if inside == 2 { 0 } else { MARGIN_BYTES };
        let (is_last, crlf) = loop {
            self.block.fill(content, BLOCK_BYTES)?;
            let bytes = self.block.rest();
            let newline = memchr(b'\n', bytes).map(|newline| newline + 1);
            let is_last = newline.is_some() || self.block.at_end;
            let used = newline.unwrap_or(bytes.len());
            let (line, crlf) = without_end(&bytes[..used]);
            let margin = if is_last { 0 } else { MARGIN_BYTES };
            if window.is_none() && inside != 1 {
                let folded = self.fold(line);
                while window.is_none()
                    && let Some(hit) = self.find(line, &folded, from)
                    && hit.start < line.len() - margin
                {
                    window = around(line, &hit, before);
                    undecodable |= window.is_none();
                    // Goes on behind what was looked at, so that each byte is looked at once.
                    from = hit.start + WINDOW_CHARS;
                }
            }
            let passed = line.len() - 2 * margin;
            (before, from) = (before + chars(&line[..passed]), MARGIN_BYTES);
            self.block.used = if is_last { used } else { passed };
            if is_last || deadline <= Instant::now() {
                break (is_last, crlf);
            }
        };
        let (line, mut end) = (self.line, u64::MAX);
        self.next = self.block.used;
        if is_last {
            (end, self.line, self.inside) = (self.block.offset(self.block.used), line + 1, 0);
            self.bad_lines += u64::from(undecodable && window.is_none());
        } else {
            self.inside = if inside == 1 || window.is_some() { 1 } else { 2 + before };
        }
        let Some(show) = window else { return Ok((!is_last).then_some(Found::Stopped)) };
        let text = show(before, if is_last { "" } else { "at least " });
        Ok(Some(Found::Hit(Hit { line, offset, inside, end, text, crlf })))
    }

    /// The text in lower case, if case is ignored; bytes that are no character stay.
    fn fold(&self, text: &[u8]) -> Folded {
        let (mut bytes, mut origins) = Folded::default();
        if !self.ignore_case {
            return (bytes, origins);
        }
        if text.is_ascii() {
            return (text.to_ascii_lowercase(), origins);
        }
        let mut at = 0..text.len() as u32;
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                // Most text is ASCII but for a few characters.
                let mut push = |c: char| bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
                match character.is_ascii() {
                    true => push(character.to_ascii_lowercase()),
                    false => character.to_lowercase().for_each(push),
                }
                origins.resize(bytes.len(), at.start);
                at.start += character.len_utf8() as u32;
            }
            bytes.extend(chunk.invalid());
            origins.extend(at.by_ref().take(chunk.invalid().len()));
        }
        (bytes, origins)
    }

    /// The next occurrence that begins at or after a place in the text.
    fn find(&self, text: &[u8], (lower, origins): &Folded, from: usize) -> Option<Range<usize>> {
        let hay = if self.ignore_case { lower } else { text };
        let origin = |at| origins.get(at).map_or(at, |origin| *origin as usize);
        let before = origins.partition_point(|origin| (*origin as usize) < from);
        let mut from = if origins.is_empty() { from } else { before };
        loop {
            let at = from + self.finder.find(hay.get(from..)?)?;
            let end = origin(at + self.finder.needle().len() - 1) + 1;
            let rest = text[end..].iter().take_while(|byte| is_continuation(byte)).count();
            let hit = origin(at)..end + rest;
            if !self.whole_word || is_word(text, &hit) {
                return Some(hit);
            }
            from = at + 1;
        }
    }
}

/// Lines that are not UTF-8; long ones are judged at hits.
fn bad_lines(bytes: &[u8]) -> u64 {
    if str::from_utf8(bytes).is_ok() {
        return 0;
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let short = lines.filter(|line| line.len() <= LONG_LINE_BYTES);
    short.filter(|line| str::from_utf8(line).is_err()).count() as u64
}

/// What shows a hit, once it is known how many characters the line has.
type Window = Box<dyn Fn(u64, &str) -> String>;

/// About [`WINDOW_CHARS`] characters around a hit in bytes before which the line has `skipped`
/// characters. None if they are not UTF-8.
fn around(bytes: &[u8], hit: &Range<usize>, skipped: u64) -> Option<Window> {
    let is_start = |at: &usize| bytes.get(*at).is_none_or(|byte| !is_continuation(byte));
    let back = |from, most| (0..from).rev().filter(is_start).take(most).last().unwrap_or(from);
    let room = WINDOW_CHARS.saturating_sub(chars(&bytes[hit.clone()]) as usize);
    let first = back(hit.start, room / 2);
    let end = (first + 1..=bytes.len()).filter(is_start).take(WINDOW_CHARS).last();
    let end = end.unwrap_or(0).max(hit.end);
    let start = back(end, WINDOW_CHARS).min(hit.start);
    let text = str::from_utf8(&bytes[start..end]).ok()?.to_owned();
    let [before, at, end] = [start, hit.start, end].map(|at| skipped + chars(&bytes[..at]));
    Some(Box::new(move |line_chars, at_least| {
        // The file may have become shorter since.
        let after = line_chars.saturating_sub(end);
        format!("[column {}, {before} before, {at_least}{after} after] {text}", at + 1)
    }))
}

/// Characters of text; of bytes that are not, those that would begin one.
fn chars(bytes: &[u8]) -> u64 {
    // A sum that is checked for overflow is counted byte by byte.
    bytes.iter().fold(0, |count: u64, byte| count.wrapping_add(u64::from(!is_continuation(byte))))
}

/// A line without its newline and the CR before it, and whether it ended in both.
pub(crate) fn without_end(line: &[u8]) -> (&[u8], bool) {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    let text = body.strip_suffix(b"\r").unwrap_or(body);
    (text, text.len() + 2 == line.len())
}

/// A line as rows show it: whole, or a window around the hit.
pub(crate) fn shown(line: &str, hit: &Range<usize>) -> String {
    let (bytes, count) = (line.as_bytes(), chars(line.as_bytes()));
    let window = || around(bytes, hit, 0).map(|show| show(count, "")).unwrap_or_default();
    if count <= limits::ROW_LINE_CHARS_MAX as u64 { line.into() } else { window() }
}
