//! `read_file_range`: lines by number. Bound to nothing, so it suits growing files. Never splits a
//! line, unless one alone exceeds the page.

use crate::arguments::{COUNT, LOSSY_DESCRIPTION, Shape, TEXT, tool};
use crate::error::Result;
use crate::limits::READ_HEADER_CHARS_MAX;
use crate::lines::Block;
use crate::page::Page;
use crate::reading::{Reading, cursor, find, read};
use crate::tool::Call;

tool! {
    name: "read_file_range",
    title: "Read lines of a file",
    description: "Reads line_count lines of a text file from start_line on, counted from 1 as in \
                  search_text. The first line tells which lines these are; the exact text \
                  follows. If it ends in next: start_line=N, call again from there. Past the end \
                  it tells how many lines there are. For a whole file use read_file, for the last \
                  lines tail_file.",
    path: String = required TEXT, "file to read";
    start_line: u64 = required COUNT, "first line, from 1";
    line_count: u64 = required COUNT, "how many lines";
    line_numbers: bool = optional Shape::Flag, "begin lines with N|";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let file = call.text_file(call.tree.path(&arguments.path)?, arguments.lossy)?;
    let mut page = Page::new(call, None, READ_HEADER_CHARS_MAX);
    let start = find(&file, arguments.start_line, u64::MAX, call.deadline())?;
    let mut block = Block { start: start.offset, ..Block::default() };
    let mut reading = Reading::new(start);
    let more = file.ok(block.line(&file.content, 0))?.is_none();
    let is_late = more && start.line < arguments.start_line;
    // Whether all that exist of the lines asked for are there.
    let complete = 'lines: {
        for _ in 0..if is_late { 0 } else { arguments.line_count } {
            let line = file.ok(block.line(&file.content, page.bytes_max()))?;
            let Some(line) = line else { break 'lines false };
            if line.is_empty() {
                break;
            }
            let shown = match file.decoded(line, reading.end) {
                Err(_) if !reading.is_empty() => break 'lines false,
                shown => shown?,
            };
            let number = arguments.line_numbers.then(|| format!("{}|", reading.end.line));
            if !page.add(&(number.unwrap_or_default() + &shown)) {
                break 'lines false;
            }
            reading.pass(&mut page, line, &shown);
        }
        !is_late
    };
    if complete {
        reading.at_end = file.ok(block.line(&file.content, 0))?.is_some();
    } else if !reading.is_empty() {
        page.next = Some(format!("start_line={}", reading.end.line));
    } else {
        // read_file goes on where the time ran out, or inside a line that exceeds the page.
        if !is_late {
            reading = read(&mut page, &file, start, arguments.line_numbers)?;
        }
        page.next = Some(format!("read_file; cursor: {}", cursor(call, &file, reading.end)?));
    }
    let reached = is_late.then(|| format!("0 (line {} reached)", start.line));
    reading.facts(&mut page, file.facts.size, reached);
    Ok(page)
}
