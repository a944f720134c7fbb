//! `read_multiple_files`: several files under one budget. One failure never sinks the others.

use crate::arguments::{COUNT, LOSSY_DESCRIPTION, Shape, tool};
use crate::error::{Result, quoted};
use crate::escape::shown;
use crate::limits::{CURSOR_CHARS_MAX, PATHS_MAX, READ_HEADER_CHARS_MAX};
use crate::lines::At;
use crate::page::{Omission, Page};
use crate::path::{RelPath, is_absolute};
use crate::reading::{Reading, cursor, read};
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
    let mut page = Page::new(call, arguments.max_chars, READ_HEADER_CHARS_MAX);
    let found: Vec<_> = arguments.paths.iter().map(|text| named(call, text)).collect();
    // Room to name what will be left out, but not at the cost of the files.
    let rows = found.iter().map(|(name, _)| name.chars().count() + "[LEFT OUT] \n".len());
    page.reserved = rows.sum::<usize>().min(page.room() / 4);
    let (mut files, mut is_full, mut left_out) = (0, false, Vec::new());
    for (name, path) in found {
        let read = |path| file(call, &mut page, path, arguments.lossy);
        let file = if is_full { Ok(None) } else { path.and_then(read) };
        match file {
            Ok(Some(reading)) => {
                files += 1;
                page.complete &= reading.at_end;
                // A text that ends before a bad byte leaves room for those after it.
                is_full = !reading.at_end && !reading.before_bad;
            }
            Err(error) if page.add(&format!("[ERROR] {name}  {error}\n")) => (),
            // What not even an empty page could hold must not keep the others from their turn.
            Ok(None) | Err(_) if page.is_empty() => page.omitted.add(Omission::TooLong, 1),
            Ok(None) | Err(_) => {
                (is_full, page.complete) = (true, false);
                left_out.push(name);
            }
        }
    }
    page.reserved = 0;
    for name in left_out {
        let fits = page.add(&format!("[LEFT OUT] {name}\n"));
        page.omitted.add(Omission::TooLong, u64::from(!fits));
    }
    page.fact("entries", format_args!("{files} of {}", arguments.paths.len()));
    Ok(page)
}

/// The path that a client's text stands for, and how a row names it: never an absolute one.
fn named(call: &Call<'_>, text: &str) -> (String, Result<RelPath>) {
    let path = call.tree.path(text);
    let name = match &path {
        Ok(path) if path.is_top() => ".".into(),
        Ok(path) => shown(path.as_str()).into_owned(),
        Err(_) if is_absolute(text) => "(absolute path)".into(),
        Err(_) => quoted(text),
    };
    (name, path)
}

/// Adds the row and the text of one file, as much as fits; nothing if the page has no room.
fn file(call: &Call<'_>, page: &mut Page, path: RelPath, lossy: bool) -> Result<Option<Reading>> {
    let file = call.text_file(path, lossy)?;
    let name = shown(file.path.as_str());
    let row_chars = ROW_CHARS_MAX + name.chars().count();
    if page.room() <= row_chars {
        return Ok(None);
    }
    let place = page.out.len();
    page.reserved += row_chars;
    let reading = read(page, &file, At::START, false);
    page.reserved -= row_chars;
    let reading = reading?;
    let mut row = format!("[FILE] {name}  {}", reading.shown);
    if !reading.at_end {
        row += &format!("  cursor: {}", cursor(call, &file, reading.end)?);
    }
    page.put("\n");
    page.insert(place, &(row + "\n"));
    Ok(Some(reading))
}
