//! `search_text`: lines that hold a literal text. Follows no links, opens regular files only, and
//! never reads again what earlier pages have searched.

use crate::arguments::{COUNT, CURSOR_DESCRIPTION, PATH_OR_TOP, Shape, TEXT, tool};
use crate::cursor::{Position, START_AGAIN, Seal, Tag};
use crate::disk::{Content, Facts, Fault, Kind, Pin};
use crate::error::{Result, ToolError};
use crate::escape::shown as shown_path;
use crate::glob::Glob;
use crate::limits::{self, BLOCK_BYTES, CONTEXT_LINES_MAX, LONG_LINE_BYTES};
use crate::lines::{Block, last_lines, newlines};
use crate::listing::Paging;
use crate::page::{Omission, Page};
use crate::path::RelPath;
use crate::reading::stale_if_gone;
use crate::search::{Found, Hit, Scan, shown, without_end};
use crate::tool::Call;
use crate::tree::{Disk, Place};
use crate::walk::Walk;
use memchr::memchr;
use std::sync::Arc;
use std::time::Instant;

tool! {
    name: "search_text",
    title: "Search text in files",
    description: "Finds lines that hold query, literal text, in a file or in all files below \
                  path. Rows: [FILE] path, then N:line (N-line for context), numbered as in \
                  read_file_range. output: files gives paths, count numbers. glob narrows to \
                  files such as *.rs. The first line tells what was not searched; if it says \
                  more, call again with its cursor. Not for names (search_files).",
    query: String = required TEXT, "text to find, one line, 1 to 256 bytes";
    path: String = optional PATH_OR_TOP, "file or directory to search";
    glob: Option<String> = optional TEXT, "only files that match, such as *.md or src/**";
    ignore_case: bool = optional Shape::Flag, "upper and lower case are the same";
    whole_word: bool = optional Shape::Flag, "no letter, digit or _ beside the match";
    context: u64 = optional Shape::Integer { min: 0, max: CONTEXT_LINES_MAX, default: Some(0) },
        "lines to show before and after";
    output: String = optional Shape::Word(&["lines", "files", "count"]), "what to show";
    cursor: Option<String> = optional TEXT, CURSOR_DESCRIPTION;
    limit: Option<u64> = optional COUNT, "most matching lines (or files) on a page";
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let Arguments { query, glob, ignore_case, whole_word, context, output, .. } = &arguments;
    let (bytes, breaks) = (query.len(), query.matches(['\n', '\r']).count());
    if bytes == 0 || bytes > limits::QUERY_BYTES_MAX || breaks > 0 {
        let has = format!("query has {bytes} bytes and {breaks} line breaks");
        return Err(ToolError::invalid(format!("{has}; it must be one line of 1 to 256 bytes")));
    }
    let options = format!("{query:?} {glob:?} {ignore_case} {whole_word} {context} {output}");
    let glob = glob.as_deref().map(Glob::new).transpose();
    let glob = glob.map_err(|why| ToolError::invalid(format!("glob {why}")))?;
    let path = call.tree.path(&arguments.path)?;
    let binding = call.seal.tag(TOOL.name).with(path.as_str()).with(&options);
    let cursor = arguments.cursor.as_deref().map(|text| Seal::open(&binding, text)).transpose()?;
    let numbers = cursor.as_ref().map(|cursor: &Position<8>| cursor.numbers);
    let [_, _, total, inside @ ..] = numbers.unwrap_or_default();
    let place = stale_if_gone(cursor.is_some(), call.place(&path, true), START_AGAIN)?;
    let mut search = Search {
        call,
        scan: Scan::new(query, *ignore_case, *whole_word),
        arguments,
        glob,
        deadline: call.deadline(),
        page: Page::new(call, None, limits::HEADER_CHARS_MAX),
        inside,
        total,
        matches: 0,
        rows: 0,
        searched: 0,
        printed: 0,
        has_row: false,
    };
    let passed = match place.leaf {
        Some(_) => search.leaf(&path, place, &cursor)?,
        None => search.tree(&path, place, &cursor)?,
    };
    if let Some(([items, since], state)) = passed {
        let numbers = [&[items, since, search.total][..], &search.inside].concat();
        search.page.cursor = Some(Seal::seal(&binding, &numbers, &state)?);
    }
    Ok(search.finish())
}

type Cursor = Option<Position<8>>;
/// If something is left: how many files were passed, entries since, and what the files were.
type Passed = Option<([u64; 2], Tag)>;

struct Search<'a> {
    call: &'a Call<'a>,
    arguments: Arguments,
    scan: Scan,
    glob: Option<Glob>,
    deadline: Instant,
    page: Page,
    /// Where the search of a file goes on: offset, line, how far inside a long one, lines shown
    /// from `context` before it on, and, for `output: count`, matches before it. Else all are 0.
    inside: [u64; 5],
    total: u64,    // matching lines on all pages, for `output: count`
    matches: u64,  // lines, on this page
    rows: u64,     // of files, on this page
    searched: u64, // files, to their end, on this page
    printed: u64,  // the last line shown of the file in progress
    has_row: bool, // this page has the row of that file
}

impl Search<'_> {
    fn finish(mut self) -> Page {
        let (matches, rows, searched) = (self.matches, self.rows, self.searched);
        match self.arguments.output.as_str() {
            "lines" => self.page.fact("matches", format_args!("{matches} in {rows} files")),
            "files" => self.page.fact("matches", format_args!("{rows} files")),
            _ => self.page.fact("matches", format_args!("{}; entries: {rows}", self.total)),
        }
        self.page.fact("searched", format_args!("{searched} files"));
        self.page.omitted.add(Omission::LineNotUtf8, self.scan.bad_lines);
        let Arguments { query, ignore_case, glob, cursor, .. } = &self.arguments;
        let case = if *ignore_case { "ignoring case" } else { "case-sensitive" };
        let files = if glob.is_some() { "files that match glob" } else { "files" };
        let patterns = "| .* \\b \\s ^ $";
        let is_like_one = patterns.split(' ').any(|pattern| query.contains(pattern));
        let literal = format!("; the query is literal text: {patterns} have no meaning in it");
        let literal = if is_like_one { &*literal } else { "" };
        let rule = format!("the lines of {searched} {files} at or below path, {case}{literal}");
        self.page.tell_no_match(cursor.is_none(), &rule);
        self.page
    }

    /// Searches one file that was named.
    fn leaf(&mut self, path: &RelPath, place: Place, cursor: &Cursor) -> Result<Passed> {
        let (name, is_file) = (path.name().unwrap_or_default(), place.kind() == Kind::File);
        if is_file && self.glob.as_ref().is_some_and(|glob| !glob.matches(name)) {
            return Ok(None);
        }
        let stamp = place.facts().map(|facts| facts.stamp).unwrap_or_default();
        let state = self.call.seal.file_state(&stamp);
        cursor.as_ref().map_or(Ok(()), |cursor| cursor.expect(&state, START_AGAIN))?;
        // What is no file, or too large, is an error here, as it is when read.
        let file = self.call.open(place, path.clone())?;
        let complete = file.ok(self.file(&file.content, path.as_str()))?;
        Ok((!complete).then_some(([1, 0], state)))
    }

    /// Searches below a directory.
    fn tree(&mut self, path: &RelPath, place: Place, cursor: &Cursor) -> Result<Passed> {
        let walk = Walk::new(self.call, path, place)?;
        // Names and stamps of what was passed, never contents.
        let mut paging = Paging::new(walk, cursor, |walk| {
            (walk.kind == Kind::File && self.is_wanted(walk)).then(|| stamp(walk.facts())).flatten()
        })?;
        self.deadline = self.call.deadline();
        let mut finished = true;
        if self.inside != [0; 5] {
            // The walk stands at the file in which the page before ended.
            let pin = paging.walk.pin();
            finished = self.search(&mut paging.walk, pin);
        }
        while finished && paging.walk.step() {
            let walk = &mut paging.walk;
            let is_wanted = self.is_wanted(walk);
            let is_special = !matches!(walk.kind, Kind::File | Kind::Dir | Kind::Link);
            walk.omitted.add(Omission::SpecialFile, u64::from(is_wanted && is_special));
            if !is_wanted || walk.kind != Kind::File {
                continue;
            }
            let pin = walk.pin();
            let facts = pin.as_ref().map(|pin| pin.facts).or_else(|_| walk.facts());
            let Some(stamp) = stamp(facts) else { continue };
            finished = self.search(walk, pin);
            if finished || self.inside != [0; 5] {
                paging.accept(&stamp);
            } else {
                // The page ends before the file, which is still to come.
                paging.back();
            }
        }
        let (is_done, numbers) = (paging.walk.is_done(), paging.numbers());
        paging.walk.omitted.append(&self.page.omitted);
        self.page.omitted = paging.walk.omitted;
        Ok((!is_done).then_some((numbers, paging.state)))
    }

    fn is_wanted(&self, walk: &Walk<'_>) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.covers(walk.below()))
    }

    fn search(&mut self, walk: &mut Walk<'_>, pin: Disk<Arc<Pin>>) -> bool {
        let max = self.call.config.max_file_bytes.unwrap_or(u64::MAX);
        let read = |pin: Arc<Pin>| match pin.facts.size <= max {
            true => self.file(&pin.open()?, walk.path().as_str()).map(Some),
            false => Ok(None),
        };
        let omission = match pin.and_then(read) {
            Ok(Some(finished)) => return finished,
            Ok(None) => Omission::TooLarge,
            Err(fault) => fault.into(),
        };
        self.inside = Default::default();
        walk.count(omission);
        true
    }

    /// Searches one file on. If it is not finished the page ends in it, at `inside`, or before it.
    fn file(&mut self, content: &Content, path: &str) -> Disk<bool> {
        let [offset, line, inside, shown, mut count] = core::mem::take(&mut self.inside);
        let (reach, bad_lines) = (self.arguments.context + 1, self.scan.bad_lines);
        (self.printed, self.has_row) = ((line + shown).saturating_sub(reach), false);
        let output = self.arguments.output.clone();
        self.scan.begin(offset, line.max(1), inside);
        let left = loop {
            match self.scan.next(content, self.deadline)? {
                Found::Hit(hit) => {
                    let shown = self.matches.max(self.rows);
                    let wanted = self.arguments.limit.is_none_or(|limit| shown < limit);
                    let is_near = line == 0 && hit.offset < BLOCK_BYTES as u64;
                    match output.as_str() {
                        "lines" if wanted && self.show(content, path, &hit) => (),
                        "count" if wanted || count > 0 => count += 1,
                        "files" if wanted && self.row(path, "") => break None,
                        // Where nothing of the file was given out it is still to come, unless
                        // more than a block would be read again.
                        _ if is_near && !self.has_row => {
                            self.scan.bad_lines = bad_lines;
                            return Ok(false);
                        }
                        _ => break Some((hit.offset, hit.line, hit.inside)),
                    }
                }
                Found::Binary => {
                    self.page.omitted.add(Omission::Binary, 1);
                    return Ok(true);
                }
                Found::End if count == 0 || self.row(path, &format!(": {count}")) => break None,
                Found::End | Found::Stopped => break Some(self.scan.position()),
            }
        };
        let Some((offset, line, inside)) = left else {
            (self.total, self.searched) = (self.total + count, self.searched + 1);
            return Ok(true);
        };
        let shown = (self.printed + reach).saturating_sub(line);
        self.inside = [offset, line, inside, shown, count];
        Ok(false)
    }

    /// Adds the row of a file; false if the page is full. A row that no page could hold is counted.
    fn row(&mut self, path: &str, count: &str) -> bool {
        let fits = self.page.rows(&format!("[FILE] {}{count}\n", shown_path(path)));
        let fits_none = !fits && self.page.is_empty();
        self.rows += u64::from(fits);
        self.page.omitted.add(Omission::TooLong, u64::from(fits_none));
        fits || fits_none
    }

    /// Adds a matching line with its context, as [`Search::row`] does.
    fn show(&mut self, content: &Content, path: &str, hit: &Hit) -> bool {
        let (before, after, mut lost) = self.context(content, hit);
        let [rows_before, mut rows_after] = [&before, &after].map(|rows| newlines(rows.as_bytes()));
        let is_apart = self.arguments.context > 0 && self.printed + 1 + rows_before < hit.line;
        let gap = if is_apart { "--\n".into() } else { String::new() };
        let head = if self.has_row { gap } else { format!("[FILE] {}\n", shown_path(path)) };
        let row = format!("{}:{}\n", hit.line, hit.text);
        if !self.page.rows(&[&*head, &before, &row, &after].concat()) {
            if !self.page.is_empty() {
                return false;
            }
            // No page holds all of it: the context is left out, then the line.
            if !self.page.rows(&(head + &row)) {
                self.page.omitted.add(Omission::TooLong, 1);
                return true;
            }
            (lost, rows_after) = (lost + rows_before + rows_after, 0);
        }
        self.page.omitted.add(Omission::TooLong, lost);
        self.rows += u64::from(!self.has_row);
        (self.printed, self.has_row) = (hit.line + rows_after, true);
        self.matches += 1;
        if hit.crlf {
            self.page.notes = vec!["line ends: CRLF"];
        }
        true
    }

    /// The rows before a match that were not shown yet, those after it up to the next one, and how
    /// many are left out since a line is too long.
    fn context(&self, content: &Content, hit: &Hit) -> (String, String, u64) {
        let (mut before, mut after, mut lost) = (String::new(), String::new(), 0);
        let context = self.arguments.context;
        let count = context.min((hit.line - 1).saturating_sub(self.printed));
        // Inside a long line the offset is not where the lines before it end.
        if count > 0 && hit.inside <= 2 {
            let start = hit.offset.saturating_sub(LONG_LINE_BYTES as u64);
            let mut block = Block { start, ..Block::default() };
            let read = block.fill(content, (hit.offset - start) as usize);
            let bytes = read.map_or(&[][..], |()| block.rest());
            let first = if start == 0 { Some(0) } else { memchr(b'\n', bytes).map(|at| at + 1) };
            let begin = last_lines(bytes, count).or(first).unwrap_or(bytes.len());
            let lines: Vec<_> = bytes[begin..].split_inclusive(|byte| *byte == b'\n').collect();
            let numbers = hit.line - lines.len() as u64..;
            lost = count - lines.len() as u64;
            before = numbers.zip(lines).map(|(number, line)| context_row(number, line)).collect();
        }
        let mut block = Block { start: hit.end, ..Block::default() };
        for number in hit.line + 1..=hit.line + context {
            let line = block.line(content, LONG_LINE_BYTES);
            lost += u64::from(matches!(line, Ok(None)));
            let Ok(Some(line @ [_, ..])) = line else { break };
            if str::from_utf8(line).is_ok() && self.scan.is_in(without_end(line).0) {
                break;
            }
            after += &context_row(number, line);
        }
        (before, after, lost)
    }
}

/// What must not change of a file that was searched; none if it is no file, or gone.
fn stamp(facts: Disk<Facts>) -> Option<[u64; 7]> {
    match facts {
        Ok(facts) => (facts.kind == Kind::File).then_some(facts.stamp),
        Err(Fault::Missing) => None,
        Err(_) => Some([0; 7]),
    }
}

fn context_row(number: u64, line: &[u8]) -> String {
    let text = str::from_utf8(without_end(line).0);
    let text = text.map_or_else(|_| "[not UTF-8]".into(), |text| shown(text, &(0..0)));
    format!("{number}-{text}\n")
}
