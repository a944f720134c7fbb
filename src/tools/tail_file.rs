//! `tail_file`: the last lines, read backwards in blocks. Never reads the whole of a large file and
//! is bound to nothing, so it suits logs.

use std::borrow::Cow;

use crate::arguments::{COUNT, LOSSY_DESCRIPTION, Shape, TEXT, tool};
use crate::disk::Content;
use crate::error::Result;
use crate::limits::{BLOCK_BYTES, READ_HEADER_CHARS_MAX};
use crate::lines::{Ending, Read, bad_byte_error, last_lines, newlines, text};
use crate::page::Page;
use crate::reading::{At, Reading, open_text};
use crate::tool::Call;
use crate::tree::tool_error;
use memchr::memchr;

tool! {
    name: "tail_file",
    title: "Read the end of a file",
    description: "Reads the last lines of a text file of any size, such as a growing log. The \
                  first line tells which lines or bytes these are; the exact text follows. If \
                  they do not fit, the newest are given and, where known, the read_file_range \
                  call for the rest. Not for the start (read_file) or the middle \
                  (read_file_range).",
    path: String = required TEXT, "file to read";
    last_lines: u64 = required COUNT, "how many lines";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let (path, content, facts) = open_text(call, &arguments.path)?;
    let mut page = Page::new(call, None, READ_HEADER_CHARS_MAX);
    let fail = |fault| tool_error(fault, &path);
    let (size, last_lines) = (facts.size, arguments.last_lines);
    let region = Region::read(&content, size, last_lines, page.bytes_max()).map_err(fail)?;
    let bytes = &region.bytes[region.begin..];
    let shown = match text(bytes, true) {
        (shown, Ending::Whole) => shown.into(),
        _ if arguments.lossy => String::from_utf8_lossy(bytes),
        (valid, _) => {
            let at = region.begin + valid.len();
            return Err(bad_byte_error(&path, region.start + at as u64, region.line_at(at)));
        }
    };
    let (begin, is_cut) = region.newest(&page, &shown, matches!(shown, Cow::Borrowed(_)));
    let (bytes, offset) = (&region.bytes[begin..], region.start + begin as u64);
    let shown = String::from_utf8_lossy(bytes);
    let whole = region.has_all && begin == region.begin;
    // Where lines are left out it is worth counting those before, to tell where they are.
    let line = match region.line_at(begin) {
        None if !whole => count_before(call, &content, offset).map_err(fail)?,
        line => line,
    };
    let mut reading = Reading::new(At { offset, line: line.unwrap_or(1), inside: false });
    reading.at_end = true;
    page.put(&shown);
    reading.pass(&mut page, bytes, &shown);
    let given = newlines(bytes) + u64::from(!bytes.ends_with(b"\n"));
    if let Some(line) = line.filter(|_| !whole) {
        let asked = (line + given).saturating_sub(last_lines).max(1);
        let count = line - asked + u64::from(is_cut);
        page.next = Some(format!("read_file_range start_line={asked} line_count={count}"));
    }
    reading.facts(&mut page, size, line.is_none().then(|| format!("last {given}")));
    page.complete = whole;
    Ok(page)
}

/// The end of a file, with at least the lines that could be shown.
struct Region {
    bytes: Vec<u8>,
    /// Where in the file the bytes begin, and where in the bytes the lines to show do.
    start: u64,
    begin: usize,
    /// All lines that were asked for, and that exist, are in the bytes.
    has_all: bool,
}

impl Region {
    fn read(content: &Content, end: u64, lines: u64, bytes_max: usize) -> Read<Self> {
        let (mut bytes, mut size) = (Vec::new(), BLOCK_BYTES / 4);
        loop {
            let start = end.saturating_sub(size as u64);
            bytes.resize((end - start) as usize, 0);
            let count = content.read_at(&mut bytes, start)?;
            bytes.truncate(count);
            let all = last_lines(&bytes, lines).or((start == 0).then_some(0));
            if all.is_some() || bytes_max < size {
                // More than a page: the first line may have begun before, so it does not count.
                let first = memchr(b'\n', &bytes[..count.saturating_sub(1)]);
                let inside = || bytes.iter().take_while(|byte| *byte & 0xc0 == 0x80).count();
                let begin = first.map(|newline| newline + 1);
                let begin = all.or(begin).unwrap_or_else(|| inside().min(3));
                return Ok(Self { begin, bytes, start, has_all: all.is_some() });
            }
            size = (4 * size).min(bytes_max.saturating_add(1));
        }
    }

    /// The number of the line that begins or goes on at an index, if the file's start was seen.
    fn line_at(&self, index: usize) -> Option<u64> {
        (self.start == 0).then(|| newlines(&self.bytes[..index]) + 1)
    }

    /// Where the newest lines that fit begin, and whether the one line there is cut at its start.
    fn newest(&self, page: &Page, shown: &str, is_exact: bool) -> (usize, bool) {
        let fit = page.fit_end(shown);
        let left_out = shown.len() - fit;
        if left_out == 0 {
            let begins =
                self.start == 0 || self.has_all || self.bytes[..self.begin].ends_with(b"\n");
            return (self.begin, !begins);
        }
        // Newlines are the same in the bytes and in what is shown of them.
        let lines = newlines(&shown.as_bytes()[left_out - 1..shown.len() - 1]);
        if let Some(begin) = last_lines(&self.bytes, lines).filter(|_| lines > 0) {
            return (begin, false);
        }
        // One line exceeds the page: its end is the newest text.
        let room = if is_exact { fit } else { page.room().min(self.bytes.len() - self.begin) };
        let end = &self.bytes[self.bytes.len() - room..];
        let rest = end.iter().take_while(|byte| *byte & 0xc0 == 0x80).count();
        (self.bytes.len() - room + rest, true)
    }
}

/// The number of the line at an offset, if the time budget suffices to count those before it.
fn count_before(call: &Call<'_>, content: &Content, offset: u64) -> Read<Option<u64>> {
    let (deadline, mut at, mut line) = (call.deadline(), 0, 1);
    let mut block = vec![0; BLOCK_BYTES];
    while at < offset {
        let size = (offset - at).min(BLOCK_BYTES as u64) as usize;
        let count = content.read_at(&mut block[..size], at)?;
        if count < size || deadline.is_over() {
            return Ok(None);
        }
        (at, line) = (at + count as u64, line + newlines(&block[..count]));
    }
    Ok(Some(line))
}
