//! `read_multiple_files`: several files under one budget. One failure never sinks the others.

use crate::arguments::{COUNT, LOSSY_DESCRIPTION, Shape, tool};
use crate::error::{Result, quoted};
use crate::escape::shown;
use crate::limits::{CURSOR_CHARS_MAX, HEADER_CHARS_MAX, PATHS_MAX};
use crate::page::{Omission, Page};
use crate::path::{RelPath, is_absolute};
use crate::reading::{At, Reading, Style, cursor, read};
use crate::tool::Call;

tool! {
    name: "read_multiple_files",
    title: "Read several files",
    description: "Reads up to 50 text files in one result. Each begins with [FILE] \
                  path  bytes, then exactly that many bytes of text and a newline, or \
                  is [ERROR] path  code: sentence. A file that does not fit is cut; its \
                  row ends in a cursor for read_file. Those after it are [LEFT OUT]: call again \
                  with them. For one file use read_file.",
    paths: Vec<String> = required Shape::Texts { max: PATHS_MAX }, "files to read";
    max_chars: Option<u64> = optional COUNT, "smaller page, in characters";
    lossy: bool = optional Shape::Flag, LOSSY_DESCRIPTION;
}

/// Characters of a row besides its path: the tag, a number, a cursor and what is between.
const ROW_CHARS_MAX: usize = "[FILE]   \n\n".len() + 20 + "  cursor: ".len() + CURSOR_CHARS_MAX;

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let style = Style { numbers: false, lossy: arguments.lossy };
    let mut page = Page::new(call, arguments.max_chars, HEADER_CHARS_MAX);
    let found: Vec<_> = arguments.paths.iter().map(|text| call.tree.path(text)).collect();
    let names = arguments.paths.iter().zip(&found).map(|(text, path)| name(text, path));
    let names: Vec<_> = names.collect();
    // Room to name what will be left out, but not at the cost of the files.
    let rows = names.iter().map(|name| name.chars().count() + "[LEFT OUT] \n".len());
    let room = rows.sum::<usize>().min(page.room() / 4);
    page.reserve(room);
    let (mut files, mut complete) = (0, true);
    let mut paths = found.iter().zip(&names).peekable();
    while let Some((path, name)) = paths.peek() {
        let path = path.as_ref().map_err(Clone::clone);
        let file = path.and_then(|path| file(call, &mut page, path, name, style));
        let is_full = match file {
            Ok(Some(reading)) => {
                (files, complete) = (files + 1, complete && reading.at_end);
                // A file that ends before a bad byte leaves room for those after it.
                !reading.at_end && !reading.before_bad
            }
            Err(error) if page.add(&format!("[ERROR] {name}  {error}\n")) => false,
            // What not even an empty page could hold must not keep the others from their turn.
            Ok(None) | Err(_) if page.is_empty() => {
                page.omitted.add(Omission::TooLong, 1);
                false
            }
            Ok(None) | Err(_) => break,
        };
        paths.next();
        if is_full {
            break;
        }
    }
    page.release(room);
    for (_, name) in paths {
        complete = false;
        if !page.add(&format!("[LEFT OUT] {name}\n")) {
            page.omitted.add(Omission::TooLong, 1);
        }
    }
    page.fact("entries", format_args!("{files} of {}", names.len()));
    page.complete = complete;
    Ok(page)
}

/// How a client's text, and the path that it stands for, is named in its row: never an absolute one.
fn name(text: &str, path: &Result<RelPath>) -> String {
    match path {
        Ok(path) if path.is_top() => ".".into(),
        Ok(path) => shown(path.as_str()).into_owned(),
        Err(_) if is_absolute(text) => "(absolute path)".into(),
        Err(_) => quoted(text),
    }
}

/// Adds the row and the text of one file, as much as fits; nothing if the page has no room.
fn file(
    call: &Call<'_>,
    page: &mut Page,
    path: &RelPath,
    name: &str,
    style: Style,
) -> Result<Option<Reading>> {
    let (content, facts) = call.file(path)?;
    let row_chars = ROW_CHARS_MAX + name.chars().count();
    if page.room() <= row_chars {
        return Ok(None);
    }
    let place = page.reserve(row_chars);
    let reading = read(page, &content, path, &facts, At::START, style);
    page.release(row_chars);
    let reading = reading?;
    let mut row = format!("[FILE] {name}  {}", reading.shown);
    if !reading.at_end {
        row += &format!("  cursor: {}", cursor(call, path, &facts, reading.end)?);
    }
    page.put("\n");
    page.insert(place, &(row + "\n"));
    Ok(Some(reading))
}
