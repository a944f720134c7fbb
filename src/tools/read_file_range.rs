//! `read_file_range`: lines by number. Bound to nothing, so it suits growing files. Never splits a
//! line, unless one alone exceeds the page.

use crate::arguments::{COUNT, LOSSY_DESCRIPTION, Shape, TEXT, tool};
use crate::error::Result;
use crate::limits::READ_HEADER_CHARS_MAX;
use crate::lines::{Ending, Line, Lines, bad_byte_error, text};
use crate::page::Page;
use crate::path::RelPath;
use crate::reading::{At, Reading, Style, cursor, open_text, read};
use crate::tool::Call;
use crate::tree::tool_error;

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
    let (path, content, facts) = open_text(call, &arguments.path)?;
    let fail = |fault| tool_error(fault, &path);
    let style = Style { numbers: arguments.line_numbers, lossy: arguments.lossy };
    let mut page = Page::new(call, None, READ_HEADER_CHARS_MAX);
    let (deadline, before) = (call.deadline(), arguments.start_line - 1);
    let mut lines = Lines::new(&content, 0);
    let (skipped, inside) = lines.skip(before, || deadline.is_over()).map_err(fail)?;
    let start = At { offset: lines.offset(), line: skipped + 1, inside };
    let mut reading = Reading::new(start);
    let is_late = skipped < before && !lines.is_at_end().map_err(fail)?;
    let count = arguments.line_count;
    let complete = !is_late && take(&mut page, &mut lines, &mut reading, &path, style, count)?;
    if complete {
        reading.at_end = lines.is_at_end().map_err(fail)?;
    } else if !reading.is_empty() {
        page.next = Some(format!("start_line={}", reading.end.line));
    } else {
        // read_file goes on where the time ran out, or inside a line that exceeds the page.
        if !is_late {
            reading = read(&mut page, &content, &path, &facts, start, style)?;
        }
        let cursor = cursor(call, &path, &facts, reading.end)?;
        page.next = Some(format!("read_file; cursor: {cursor}"));
    }
    let reached = is_late.then(|| format!("0 (line {} reached)", start.line));
    reading.facts(&mut page, facts.size, reached);
    Ok(page)
}

/// Puts up to `count` whole lines; gives whether all that exist of them are there.
fn take(
    page: &mut Page,
    lines: &mut Lines<'_>,
    reading: &mut Reading,
    path: &RelPath,
    style: Style,
    count: u64,
) -> Result<bool> {
    for _ in 0..count {
        let At { offset, line: number, .. } = reading.end;
        let line = match lines.next(page.bytes_max()).map_err(|fault| tool_error(fault, path))? {
            Line::End => return Ok(true),
            Line::Long => return Ok(false),
            Line::Whole(line) => line,
        };
        let shown = match text(line, true) {
            (text, Ending::Whole) => text.into(),
            _ if style.lossy => String::from_utf8_lossy(line),
            (valid, _) if reading.is_empty() => {
                return Err(bad_byte_error(path, offset + valid.len() as u64, Some(number)));
            }
            _ => return Ok(false),
        };
        let number = if style.numbers { format!("{number}|") } else { String::new() };
        if !page.add(&(number + &shown)) {
            return Ok(false);
        }
        reading.pass(page, line, &shown);
    }
    Ok(true)
}
