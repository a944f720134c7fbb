//! `read_file`: text from the start or a cursor, page by page. Never decodes anything but UTF-8.

use crate::arguments::{COUNT, CURSOR_DESCRIPTION, LOSSY_DESCRIPTION, Shape, TEXT, tool};
use crate::cursor::Seal;
use crate::error::Result;
use crate::limits::READ_HEADER_CHARS_MAX;
use crate::lines::At;
use crate::page::Page;
use crate::reading::{binding, cursor, read, stale_if_gone};
use crate::tool::Call;

tool! {
    name: "read_file",
    title: "Read a file",
    description: "Reads a text file from its start; the first line tells lines and bytes, the exact \
                  text follows. If it says more, call again with the same path and its cursor. \
                  With line_numbers each line begins N|. For the middle of a long file use \
                  read_file_range, for the end or a growing log tail_file.",
    path: String = required TEXT, "file to read";
    cursor: Option<String> = optional TEXT, CURSOR_DESCRIPTION;
    max_chars: Option<u64> = optional COUNT, "smaller page, in characters";
    line_numbers: bool = optional Shape::Flag, "begin lines with N|";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let path = call.tree.path(&arguments.path)?;
    let open = |text: String| Seal::open(&binding(call, &path), &text);
    let position = arguments.cursor.map(open).transpose()?;
    let advice = "leave cursor out to read it again; read_file_range reads growing files";
    let file = stale_if_gone(position.is_some(), call.text_file(path, arguments.lossy), advice)?;
    let mut start = At::START;
    if let Some(position) = position {
        position.expect(&call.seal.file_state(&file.facts.stamp), advice)?;
        let [offset, line] = position.numbers;
        start = At { offset, line: line / 2, inside: line % 2 == 1 };
    }
    let mut page = Page::new(call, arguments.max_chars, READ_HEADER_CHARS_MAX);
    let reading = read(&mut page, &file, start, arguments.line_numbers)?;
    reading.facts(&mut page, file.facts.size, None);
    if !reading.at_end {
        page.cursor = Some(cursor(call, &file, reading.end)?);
    }
    Ok(page)
}
