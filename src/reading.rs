//! File text onto a page: from some position to the page's end, and where to go on. Shared by the
//! tools that read. Never holds more of a file than one block.

use std::time::Instant;

use memchr::{memchr_iter, memmem, memrchr};

use crate::cursor::{Seal, Tag};
use crate::error::{Code, Result, ToolError};
use crate::limits::{BINARY_CHECK_BYTES, BLOCK_BYTES};
use crate::lines::{At, File, text};
use crate::page::Page;
use crate::path::RelPath;
use crate::tool::Call;

/// What a cursor of `read_file` belongs to.
pub(crate) fn binding(call: &Call<'_>, path: &RelPath) -> Tag {
    call.seal.tag("read_file").with(path.as_str())
}

/// A cursor with which `read_file` goes on.
pub(crate) fn cursor(call: &Call<'_>, file: &File, at: At) -> Result<String> {
    let state = call.seal.file_state(&file.facts.stamp);
    let line = at.line.saturating_mul(2) | u64::from(at.inside);
    Seal::seal(&binding(call, &file.path), &[at.offset, line], &state)
}

/// Where a line begins or an offset is, whichever comes first, or how far the file or time reach.
pub(crate) fn find(file: &File, line: u64, offset: u64, deadline: Instant) -> Result<At> {
    let (mut at, mut block) = (At::START, vec![0; BLOCK_BYTES]);
    while at.line < line && at.offset < offset {
        let size = (offset - at.offset).min(BLOCK_BYTES as u64) as usize;
        let count = file.ok(file.content.read_at(&mut block[..size], at.offset))?;
        let (before, bytes) = (at, &block[..count]);
        at.pass(bytes);
        if line <= at.line {
            let last = memchr_iter(b'\n', bytes).nth((line - before.line - 1) as usize);
            at = before;
            at.pass(&bytes[..last.map_or(count, |newline| newline + 1)]);
        }
        if count < size || deadline <= Instant::now() {
            break;
        }
    }
    Ok(at)
}

/// What came onto the page.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) start: At,
    pub(crate) end: At,
    pub(crate) at_end: bool,     // the end of the file was seen
    pub(crate) before_bad: bool, // it ends before a byte that is not text, or not readable
    pub(crate) shown: usize,     // bytes of text as shown
    crlf: bool,
    bom: bool,
    last: [u8; 1], // the last byte passed
}

impl Reading {
    pub(crate) fn new(start: At) -> Self {
        Self { start, end: start, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Takes note of bytes that are returned.
    pub(crate) fn pass(&mut self, page: &mut Page, bytes: &[u8], shown: &str) {
        page.hash(bytes);
        self.bom |= self.end.offset == 0 && bytes.starts_with(b"\xef\xbb\xbf");
        self.crlf |= self.last == *b"\r" && bytes.starts_with(b"\n");
        self.crlf |= !self.crlf && memmem::find(bytes, b"\r\n").is_some();
        self.shown += shown.len();
        self.last = bytes.last().map_or(self.last, |last| [*last]);
        self.end.pass(bytes);
    }

    /// The facts of a header about this text; `lines` where their numbers are not known.
    pub(crate) fn facts(&self, page: &mut Page, size: u64, lines: Option<String>) {
        let (from, start, end) = (self.start.line, self.start.offset, self.end.offset);
        let last = (self.end.line + u64::from(self.end.inside)).saturating_sub(1);
        let total = if self.at_end { format!(" of {last}") } else { String::new() };
        let numbers = if start == end { "0".into() } else { format!("{from}-{last}") };
        page.fact("lines", lines.unwrap_or(numbers + &total));
        page.fact("bytes", format_args!("{start}-{end} of {}", size.max(end)));
        let no_newline = self.at_end && self.end.inside && !self.is_empty();
        page.notes.extend(self.crlf.then_some("line ends: CRLF"));
        page.notes.extend(self.bom.then_some("BOM"));
        page.notes.extend(no_newline.then_some("no final newline"));
    }
}

/// Reads until the page is full, the file ends, or a byte is bad; an error if it is the first.
pub(crate) fn read(page: &mut Page, file: &File, start: At, numbers: bool) -> Result<Reading> {
    let mut reading = Reading::new(start);
    // The page before may have ended between CR and LF.
    if let Some(before) = start.offset.checked_sub(1) {
        file.ok(file.content.read_at(&mut reading.last, before))?;
    }
    // One byte more than fits, or than there is, tells whether something follows.
    let left = file.facts.size.saturating_sub(start.offset).saturating_add(1).max(64);
    let size = page.bytes_max().saturating_add(1).clamp(BINARY_CHECK_BYTES, BLOCK_BYTES);
    let mut buffer = vec![0; left.min(size as u64) as usize];
    while !reading.at_end {
        let count = match file.content.read_at(&mut buffer, reading.end.offset) {
            Err(_) if !reading.is_empty() => return Ok(Reading { before_bad: true, ..reading }),
            count => file.ok(count)?,
        };
        let (mut rest, at_end) = (&buffer[..count], count < buffer.len());
        loop {
            let (valid, bad) = text(rest, at_end);
            let (bytes, after) = rest.split_at(valid.len());
            if !put(page, &mut reading, bytes, valid, numbers) {
                return Ok(reading);
            }
            if bad == 0 {
                break;
            }
            let (bytes, after) = after.split_at(bad);
            if reading.is_empty() {
                file.decoded(bytes, start)?;
            }
            if !file.lossy || !put(page, &mut reading, bytes, "\u{fffd}", numbers) {
                return Ok(Reading { before_bad: !file.lossy, ..reading });
            }
            rest = after;
        }
        reading.at_end = at_end;
    }
    Ok(reading)
}

/// Puts as much of the text of some bytes as fits; gives whether that is all of it.
fn put(page: &mut Page, reading: &mut Reading, bytes: &[u8], text: &str, numbers: bool) -> bool {
    let mut taken = 0;
    if numbers {
        let mut at = reading.end;
        for line in text.split_inclusive('\n') {
            let number = if at.inside { String::new() } else { format!("{}|", at.line) };
            let numbered = format!("{number}{line}");
            let fit = page.fit(&numbered);
            // A line is begun only if it fits, or has the page for itself.
            if fit == numbered.len() || at.inside || at == reading.start {
                page.put(&numbered[..fit]);
                taken += fit.saturating_sub(number.len());
            }
            if fit < numbered.len() {
                break;
            }
            at.pass(line.as_bytes());
        }
    } else {
        taken = page.fit(text);
        if taken < text.len() {
            // A page that is full ends after a line, unless that would give up half of it.
            let newline = memrchr(b'\n', &text.as_bytes()[..taken]);
            taken = newline.filter(|at| taken / 2 <= *at).map_or(taken, |at| at + 1);
        }
        page.put(&text[..taken]);
    }
    let is_all = taken == text.len();
    reading.pass(page, if is_all { bytes } else { &bytes[..taken] }, &text[..taken]);
    is_all
}

/// With a cursor, something that is no longer there makes the cursor stale.
pub(crate) fn stale_if_gone<T>(has_cursor: bool, found: Result<T>, advice: &str) -> Result<T> {
    found.map_err(|error| match error.code {
        Code::FileNotFound | Code::NotADirectory | Code::NotAFile | Code::NotText if has_cursor => {
            ToolError::new(Code::StaleCursor, format!("{}; {advice}", error.sentence))
        }
        _ => error,
    })
}
