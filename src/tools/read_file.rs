//! `read_file`: text from the start or a cursor, page by page. Never decodes anything but UTF-8.

use crate::arguments::{COUNT, CURSOR_DESCRIPTION, LOSSY_DESCRIPTION, Shape, TEXT, tool};
use crate::error::Result;
use crate::limits::READ_HEADER_CHARS_MAX;
use crate::page::Page;
use crate::reading::{Style, cursor, read, resume};
use crate::tool::Call;

tool! {
    name: "read_file",
    title: "Read a file",
    description: "Reads a text file from its start; the first line \
                  tells lines and bytes, the exact text follows. If it says more, call again with \
                  the same path and its cursor. With line_numbers each line begins N|. For the \
                  middle of a long file use read_file_range, for the end or a growing log \
                  tail_file.",
    path: String = required TEXT, "file to read";
    cursor: Option<String> = optional TEXT, CURSOR_DESCRIPTION;
    max_chars: Option<u64> = optional COUNT, "smaller page, in characters";
    line_numbers: bool = optional Shape::Flag, "begin lines with N|";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let path = call.tree.path(&arguments.path)?;
    let (content, facts, start) = resume(call, &path, arguments.cursor.as_deref())?;
    let style = Style { numbers: arguments.line_numbers, lossy: arguments.lossy };
    let mut page = Page::new(call, arguments.max_chars, READ_HEADER_CHARS_MAX);
    let reading = read(&mut page, &content, &path, &facts, start, style)?;
    reading.facts(&mut page, facts.size, None);
    if !reading.at_end {
        page.cursor = Some(cursor(call, &path, &facts, reading.end)?);
    }
    Ok(page)
}
