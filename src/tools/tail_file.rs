//! `tail_file`: the last lines, read backwards in blocks. Never reads the whole of a large file and
//! is bound to nothing, so it suits logs.

use memchr::memchr;

use crate::arguments::{COUNT, LOSSY_DESCRIPTION, Shape, TEXT, tool};
use crate::error::Result;
use crate::limits::{BLOCK_BYTES, READ_HEADER_CHARS_MAX};
use crate::lines::{At, Block, File, is_continuation, last_lines, newlines};
use crate::page::Page;
use crate::reading::{Reading, find};
use crate::tool::Call;
use crate::tree::Disk;

tool! {
    name: "tail_file",
    title: "Read the end of a file",
    description: "Reads the last lines of a text file of any size, such as a growing log. The \
                  first line tells which lines or bytes these are; the exact text follows. If they \
                  do not fit, the newest are given and, where known, the read_file_range call for \
                  the rest. Not for the start (read_file) or the middle (read_file_range).",
    path: String = required TEXT, "file to read";
    last_lines: u64 = required COUNT, "how many lines";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let file = call.text_file(call.tree.path(&arguments.path)?, arguments.lossy)?;
    let mut page = Page::new(call, None, READ_HEADER_CHARS_MAX);
    let (block, has_all) = file.ok(end(&file, arguments.last_lines, page.bytes_max()))?;
    // The line is known if the file's start was seen.
    let place = |index: usize| {
        let line = if block.start == 0 { newlines(&block.bytes[..index]) + 1 } else { 0 };
        At { offset: block.offset(index), line, inside: false }
    };
    let shown = file.decoded(block.rest(), place(block.used))?;
    let begin = newest(&block, &page, &shown);
    let (bytes, mut start) = (&block.bytes[begin..block.filled], place(begin));
    let is_cut = start.offset > 0 && !block.bytes[..begin].ends_with(b"\n");
    let shown = String::from_utf8_lossy(bytes);
    page.complete = has_all && begin == block.used;
    // Where lines are left out it is worth counting those before, to tell where they are.
    if !page.complete && start.line == 0 {
        let found = find(&file, u64::MAX, start.offset, call.deadline())?;
        start.line = if found.offset == start.offset { found.line } else { 0 };
    }
    let mut reading = Reading::new(start);
    reading.at_end = true;
    page.put(&shown);
    reading.pass(&mut page, bytes, &shown);
    let given = reading.end.line - start.line + u64::from(reading.end.inside);
    if !page.complete && start.line > 0 {
        let asked = (start.line + given).saturating_sub(arguments.last_lines).max(1);
        let count = start.line - asked + u64::from(is_cut);
        page.next = Some(format!("read_file_range start_line={asked} line_count={count}"));
    }
    reading.facts(&mut page, file.facts.size, (start.line == 0).then(|| format!("last {given}")));
    Ok(page)
}

/// The end of the file, used up to the lines to show; and whether it holds all that were asked for.
fn end(file: &File, lines: u64, bytes_max: usize) -> Disk<(Block, bool)> {
    let (mut block, mut size) = (Block::default(), BLOCK_BYTES / 4);
    loop {
        let start = file.facts.size.saturating_sub(size as u64);
        (block.start, block.filled) = (start, 0);
        block.fill(&file.content, (file.facts.size - start) as usize)?;
        let bytes = block.rest();
        let all = last_lines(bytes, lines).or((start == 0).then_some(0));
        if all.is_some() || bytes_max < size {
            // More than a page: the first line may have begun before, so it does not count.
            let first = memchr(b'\n', &bytes[..bytes.len().saturating_sub(1)]);
            let inside = bytes.iter().take(3).take_while(|byte| is_continuation(byte)).count();
            block.used = all.or(first.map(|newline| newline + 1)).unwrap_or(inside);
            return Ok((block, all.is_some()));
        }
        size = (4 * size).min(bytes_max.saturating_add(1));
    }
}

/// Where the newest lines that fit begin, or the newest text of the last one.
fn newest(block: &Block, page: &Page, shown: &str) -> usize {
    let (bytes, fit) = (&block.bytes[..block.filled], page.fit_of(shown.chars().rev()));
    let left_out = shown.len() - fit;
    if left_out == 0 {
        return block.used;
    }
    // Newlines are the same in the bytes and in what is shown of them.
    let lines = newlines(&shown.as_bytes()[left_out - 1..shown.len() - 1]);
    if let Some(begin) = last_lines(bytes, lines).filter(|_| lines > 0) {
        return begin;
    }
    let rest = block.rest().len();
    let room = if shown.len() == rest { fit } else { page.room().min(rest) };
    let begin = bytes.len() - room;
    begin + bytes[begin..].iter().take_while(|byte| is_continuation(byte)).count()
}
