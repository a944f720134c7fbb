//! The search loop: matching lines of one file after the other, in one reused buffer. Lines are
//! located only around hits; a line is never copied unless it is shown.

use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

use crate::disk::Content;
use crate::glob::folded;
use crate::limits::{
    BINARY_CHECK_BYTES, BLOCK_BYTES, LONG_LINE_BYTES, QUERY_BYTES_MAX, ROW_LINE_CHARS_MAX,
    WINDOW_CHARS,
};
use crate::lines::{Read, newlines};
use crate::tool::Deadline;

/// Blocks of a long line overlap by this, so that a hit and its window lie in one of them whole.
const OVERLAP_BYTES: usize = 8 * 1024;
const _: () = assert!(16 * (QUERY_BYTES_MAX + WINDOW_CHARS) < OVERLAP_BYTES);

/// What is searched for.
pub(crate) struct Query {
    finder: Finder<'static>,
    ignore_case: bool,
    whole_word: bool,
}

impl Query {
    pub(crate) fn new(text: &str, ignore_case: bool, whole_word: bool) -> Self {
        let needle = if ignore_case { folded(text) } else { text.into() };
        Self { finder: Finder::new(needle.as_bytes()).into_owned(), ignore_case, whole_word }
    }

    /// Whether the text holds it.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.find(text, &self.fold(text), 0).is_some()
    }

    /// The text with every character in lower case, if case is ignored; bytes that are no character
    /// stay.
    fn fold(&self, text: &[u8]) -> Folded {
        let mut folded = Folded::default();
        if !self.ignore_case {
            return folded;
        }
        if text.is_ascii() {
            folded.bytes = text.to_ascii_lowercase();
            return folded;
        }
        let mut at = 0..text.len() as u32;
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_ascii() {
                    folded.bytes.push(character.to_ascii_lowercase() as u8);
                } else {
                    for lower in character.to_lowercase() {
                        folded.bytes.extend(lower.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
                folded.origins.resize(folded.bytes.len(), at.start);
                at.start += character.len_utf8() as u32;
            }
            folded.bytes.extend(chunk.invalid());
            folded.origins.extend(at.by_ref().take(chunk.invalid().len()));
        }
        folded
    }

    /// The next occurrence from an index of the text in which it is looked for, the folded one if
    /// case is ignored: its index there, and its range in the text itself.
    fn find(&self, text: &[u8], folded: &Folded, mut from: usize) -> Option<(usize, Range<usize>)> {
        let hay = if self.ignore_case { &folded.bytes } else { text };
        let origin = |at| folded.origins.get(at).map_or(at, |origin| *origin as usize);
        loop {
            let at = from + self.finder.find(hay.get(from..)?)?;
            let end = origin(at + self.finder.needle().len() - 1) + 1;
            let rest = text[end..].iter().take_while(|byte| is_continuation(byte)).count();
            let hit = origin(at)..end + rest;
            if !self.whole_word || is_word(text, &hit) {
                return Some((at, hit));
            }
            from = at + 1;
        }
    }

    /// Around the first occurrence that begins in a part of a long line and can be shown; and
    /// whether one was passed that cannot, since what is around it is not UTF-8.
    fn window(&self, line: &[u8], part: Range<usize>) -> (Option<Window>, bool) {
        let folded = self.fold(line);
        let (mut from, mut undecodable) = (0, false);
        while let Some((at, hit)) = self.find(line, &folded, from) {
            from = at + 1;
            if part.contains(&hit.start) {
                match Window::around(line, &hit) {
                    // Goes on behind what was looked at, so that each byte is looked at once.
                    None => (from, undecodable) = (at + WINDOW_CHARS, true),
                    found => return (found, undecodable),
                }
            }
        }
        (None, undecodable)
    }
}

/// See [`Query::fold`].
#[derive(Default)]
struct Folded {
    bytes: Vec<u8>,
    /// Where in the text each byte comes from; nothing if every byte comes from its own place.
    origins: Vec<u32>,
}

fn is_continuation(byte: &u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Neither neighbour is alphanumeric or `_`.
fn is_word(text: &[u8], hit: &Range<usize>) -> bool {
    let before = &text[hit.start.saturating_sub(4)..hit.start];
    let before = before.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let before = before.and_then(|chunk| chunk.valid().chars().next_back());
    let after = &text[hit.end..text.len().min(hit.end + 4)];
    let after = after.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    let part = |character: char| character.is_alphanumeric() || character == '_';
    !before.is_some_and(part) && !after.is_some_and(part)
}

/// A matching line.
pub(crate) struct Hit {
    pub(crate) line: u64,
    /// From where it would be found again, and where the next line begins.
    pub(crate) offset: u64,
    pub(crate) inside: u64,
    pub(crate) end: u64,
    /// The line without its end, or a window of it, ready to show.
    pub(crate) text: String,
    pub(crate) crlf: bool,
}

/// What a search comes to next.
pub(crate) enum Found {
    Hit(Hit),
    /// A NUL in the first block: nothing of the file is searched.
    Binary,
    End,
    /// The time budget is used up.
    Stopped,
}

/// The search of one file after the other.
pub(crate) struct Scan {
    pub(crate) query: Query,
    block: Vec<u8>,
    folded: Folded,
    at: At,
    /// Lines passed that are not UTF-8, and so were not searched.
    pub(crate) bad_lines: u64,
}

/// Where a search stands.
#[derive(Default)]
struct At {
    /// Where in the file the block begins; what of it is filled; up to where its lines are whole.
    base: u64,
    filled: usize,
    region: usize,
    at_end: bool,
    /// The next line to look at: its number, its index in the block and in what the query sees.
    line: u64,
    next: usize,
    from: usize,
    /// Inside a line that is longer than a block: 1 where it was shown, else 2 and the characters
    /// of it that come before `base`.
    inside: u64,
}

impl Scan {
    pub(crate) fn new(query: Query) -> Self {
        let (block, folded) = (vec![0; BLOCK_BYTES], Folded::default());
        Self { query, block, folded, at: At::default(), bad_lines: 0 }
    }

    /// Goes to a position in a file, as [`Scan::position`] gives it; `inside` is 0 where a line
    /// begins.
    pub(crate) fn begin(&mut self, offset: u64, line: u64, inside: u64) {
        self.at = At { base: offset, line, inside, ..At::default() };
        self.folded = Folded::default();
    }

    /// The offset and the number of the next line, or the position inside a long one.
    pub(crate) fn position(&self) -> (u64, u64, u64) {
        (self.at.base + self.at.next as u64, self.at.line, self.at.inside)
    }

    /// The next matching line of the file in which it was begun.
    pub(crate) fn next(&mut self, content: &Content, deadline: Deadline) -> Read<Found> {
        loop {
            if self.at.inside > 0 {
                match self.long_line(content, deadline)? {
                    Found::End => continue,
                    found => return Ok(found),
                }
            }
            if let Some(hit) = self.next_in_block() {
                return Ok(Found::Hit(hit));
            }
            if self.at.at_end && self.at.region == self.at.filled {
                return Ok(Found::End);
            }
            // The first block is always searched.
            if self.at.filled > 0 && deadline.is_over() {
                return Ok(Found::Stopped);
            }
            self.load(content)?;
            let start = &self.block[..self.at.filled.min(BINARY_CHECK_BYTES)];
            if self.at.base == 0 && memchr(0, start).is_some() {
                return Ok(Found::Binary);
            }
            if self.at.region == 0 && !self.at.at_end {
                self.at.inside = 2;
            }
        }
    }

    /// Reads the next block, after what is left of this one.
    fn load(&mut self, content: &Content) -> Read<()> {
        let (block, at) = (&mut self.block, &mut self.at);
        block.copy_within(at.region..at.filled, 0);
        (at.base, at.filled) = (at.base + at.region as u64, at.filled - at.region);
        at.filled += content.read_at(&mut block[at.filled..], at.base + at.filled as u64)?;
        at.at_end = at.filled < block.len();
        let whole = memrchr(b'\n', &block[..at.filled]).map_or(0, |newline| newline + 1);
        at.region = if at.at_end { at.filled } else { whole };
        (at.next, at.from) = (0, 0);
        self.folded = self.query.fold(&block[..at.region]);
        Ok(())
    }

    fn next_in_block(&mut self) -> Option<Hit> {
        loop {
            let region = &self.block[..self.at.region];
            let Some((at, hit)) = self.query.find(region, &self.folded, self.at.from) else {
                // Lines have to be counted only where more of the file follows.
                if !self.at.at_end {
                    self.at.line += newlines(&region[self.at.next..]);
                }
                self.judge(self.at.next..self.at.region);
                (self.at.next, self.at.from) = (self.at.region, usize::MAX);
                return None;
            };
            let before = &region[self.at.next..hit.start];
            let start = self.at.next + memrchr(b'\n', before).map_or(0, |newline| newline + 1);
            let end = memchr(b'\n', &region[hit.end..]).map_or(region.len(), |n| hit.end + n + 1);
            self.at.line += newlines(before) + 1;
            self.at.from = match self.query.ignore_case {
                true => memchr(b'\n', &self.folded.bytes[at..]).map_or(usize::MAX, |n| at + n + 1),
                false => end,
            };
            self.judge(self.at.next..start);
            self.at.next = end;
            let (line, crlf) = without_end(&self.block[start..end]);
            let text = if line.len() > LONG_LINE_BYTES {
                self.query
                    .window(line, 0..line.len())
                    .0
                    .map(|window| window.shown(0, chars(line), ""))
            } else {
                let hit = hit.start - start..hit.end - start;
                str::from_utf8(line).ok().map(|line| shown(line, &hit))
            };
            if let Some(text) = text {
                let (offset, end) = (self.at.base + start as u64, self.at.base + end as u64);
                return Some(Hit { line: self.at.line - 1, offset, inside: 0, end, text, crlf });
            }
            self.bad_lines += 1;
        }
    }

    /// Counts the lines of a range of the block that are not UTF-8; long ones are judged at hits.
    fn judge(&mut self, range: Range<usize>) {
        let bytes = &self.block[range];
        if str::from_utf8(bytes).is_err() {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let short = lines.filter(|line| line.len() <= LONG_LINE_BYTES);
            self.bad_lines += short.filter(|line| str::from_utf8(line).is_err()).count() as u64;
        }
    }

    /// Goes through a line that is longer than a block, in windows: to a hit, to its end, or until
    /// the time is over. `Found::End`: it is passed, and held nothing to show.
    fn long_line(&mut self, content: &Content, deadline: Deadline) -> Read<Found> {
        let at = &mut self.at;
        let (offset, inside) = (at.base, at.inside);
        let (mut before, is_shown) = (inside.saturating_sub(2), inside == 1);
        let (mut found, mut undecodable) = (None, false);
        loop {
            at.filled = content.read_at(&mut self.block, at.base)?;
            at.at_end = at.filled < self.block.len();
            let newline = memchr(b'\n', &self.block[..at.filled]);
            let is_last = newline.is_some() || at.at_end;
            at.region = newline.map_or(at.filled, |newline| newline + 1);
            let (line, crlf) = without_end(&self.block[..at.region]);
            let half = if is_last { 0 } else { OVERLAP_BYTES / 2 };
            if found.is_none() && !is_shown {
                let from = if at.base == offset && inside == 2 { 0 } else { OVERLAP_BYTES / 2 };
                let (window, bad) = self.query.window(line, from..line.len() - half);
                (found, undecodable) = (window.map(|window| (window, before)), undecodable | bad);
            }
            let passed = line.len() - 2 * half;
            before += chars(&line[..passed]);
            let mut end = u64::MAX;
            if is_last {
                end = at.base + at.region as u64;
                (at.line, at.next, at.from, at.inside) = (at.line + 1, at.region, usize::MAX, 0);
                self.bad_lines += u64::from(undecodable && found.is_none());
            } else {
                at.base += passed as u64;
                if !deadline.is_over() {
                    continue;
                }
                (at.filled, at.region, at.next) = (0, 0, 0);
                at.inside = if is_shown || found.is_some() { 1 } else { 2 + before };
            }
            let Some((window, skipped)) = found else {
                return Ok(if is_last { Found::End } else { Found::Stopped });
            };
            let text = window.shown(skipped, before, if is_last { "" } else { "at least " });
            let line = at.line - u64::from(is_last);
            return Ok(Found::Hit(Hit { line, offset, inside, end, text, crlf }));
        }
    }
}

/// What is shown of a long line: some text, and how many characters come before it and the hit.
struct Window {
    column: u64,
    before: u64,
    text: String,
}

impl Window {
    /// About [`WINDOW_CHARS`] characters around a hit; none if they are not UTF-8.
    fn around(line: &[u8], hit: &Range<usize>) -> Option<Self> {
        let is_start = |at: &usize| line.get(*at).is_none_or(|byte| !is_continuation(byte));
        let back = |most| (0..hit.start).rev().filter(is_start).take(most).last();
        let back = |most| back(most).unwrap_or(hit.start);
        let room = WINDOW_CHARS.saturating_sub(chars(&line[hit.clone()]) as usize);
        let most = room - chars(&line[back(room / 2)..hit.start]) as usize;
        let end = (hit.end + 1..=line.len()).filter(is_start).take(most).last();
        let end = end.unwrap_or(hit.end);
        let start = back(room - chars(&line[hit.end..end]) as usize);
        let text = str::from_utf8(&line[start..end]).ok()?.into();
        Some(Self { column: chars(&line[..hit.start]), before: chars(&line[..start]), text })
    }

    /// The window of a line of which so many characters come before the bytes looked at.
    fn shown(&self, skipped: u64, line_chars: u64, at_least: &str) -> String {
        let (column, before) = (skipped + self.column + 1, skipped + self.before);
        // The file may have become shorter since the window was read.
        let after = line_chars.saturating_sub(before + chars(self.text.as_bytes()));
        format!("[column {column}, {before} before, {at_least}{after} after] {}", self.text)
    }
}

/// Characters of text; of bytes that are not, those that would begin one.
fn chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| !is_continuation(byte)).count() as u64
}

/// A line without its newline and the CR before it, and whether it ended in both.
pub(crate) fn without_end(line: &[u8]) -> (&[u8], bool) {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    let text = body.strip_suffix(b"\r").unwrap_or(body);
    (text, text.len() + 2 == line.len())
}

/// A line as rows show it: whole, or a window around the hit.
pub(crate) fn shown(line: &str, hit: &Range<usize>) -> String {
    if line.len() <= ROW_LINE_CHARS_MAX || line.chars().count() <= ROW_LINE_CHARS_MAX {
        return line.into();
    }
    let window = Window::around(line.as_bytes(), hit);
    window.map_or_else(String::new, |window| window.shown(0, chars(line.as_bytes()), ""))
}
