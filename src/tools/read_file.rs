//! `read_file`: text from the start or a cursor, page by page. Never decodes anything but UTF-8.

use serde_json::{Map, Value};

use crate::arguments::{
    COUNT, CURSOR_DESCRIPTION, LOSSY_DESCRIPTION, OPTIONAL_TEXT, PATH, Shape, arguments,
};
use crate::error::Result;
use crate::page::{Header, Page};
use crate::reading::{Style, cursor, read, resume};
use crate::tool::{Answer, Call, Tool};

pub(crate) const TOOL: Tool = Tool {
    name: "read_file",
    title: "Read a file",
    description: "Reads a text file from its start; the first line \
                  tells lines and bytes, the exact text follows. If it says more, call again with \
                  the same path and its cursor. With line_numbers each line begins N|. For the \
                  middle of a long file use read_file_range, for the end or a growing log \
                  tail_file.",
    parameters: Arguments::TABLE,
    run,
};

arguments! {
    path: String = required PATH, "file to read";
    cursor: Option<String> = optional OPTIONAL_TEXT, CURSOR_DESCRIPTION;
    max_chars: Option<u64> = optional COUNT, "smaller page, in characters";
    line_numbers: bool = optional Shape::Flag, "begin lines with N|";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

fn run(call: &Call<'_>, given: &Map<String, Value>) -> Result<Answer> {
    let arguments = Arguments::parse(given)?;
    let path = call.tree.path(&arguments.path)?;
    let (content, facts, start) = resume(call, &path, arguments.cursor.as_deref())?;
    let style = Style { numbers: arguments.line_numbers, lossy: arguments.lossy };
    let mut page = Page::of_text(call, arguments.max_chars);
    let reading = read(&mut page, &content, &path, &facts, start, style)?;
    let mut header = Header::default();
    reading.facts(&mut header, facts.size, None);
    if !reading.at_end {
        header.cursor = Some(cursor(call, &path, &facts, reading.end)?);
    }
    Ok(page.answer(header, reading.at_end, true))
}
