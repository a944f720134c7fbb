//! File text onto a page: from some position to the page's end, and where to go on. Shared by the
//! tools that read. Never holds more of a file than one block.

use memchr::{memmem, memrchr};

use crate::cursor::{Position, Seal, Tag};
use crate::disk::{Content, Facts};
use crate::error::{Code, Result, ToolError};
use crate::limits::{BINARY_CHECK_BYTES, BLOCK_BYTES};
use crate::lines::{Ending, bad_byte_error, newlines, refuse_binary_start, text};
use crate::page::Page;
use crate::path::RelPath;
use crate::tool::Call;
use crate::tree::tool_error;

/// A position in a text file.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct At {
    pub(crate) offset: u64,
    /// The line, from 1.
    pub(crate) line: u64,
    /// The line began before the offset.
    pub(crate) inside: bool,
}

impl At {
    pub(crate) const START: Self = Self { offset: 0, line: 1, inside: false };

    /// Goes past some text.
    fn pass(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.line += newlines(bytes);
        self.inside = bytes.last().map_or(self.inside, |last| *last != b'\n');
    }
}

fn binding(call: &Call<'_>, path: &RelPath) -> Tag {
    call.seal.tag("read_file").with(path.as_str())
}

fn state(call: &Call<'_>, facts: &Facts) -> Tag {
    let mut state = call.seal.tag("state");
    state.pass("", &facts.stamp);
    state
}

/// A cursor with which `read_file` goes on.
pub(crate) fn cursor(call: &Call<'_>, path: &RelPath, facts: &Facts, at: At) -> Result<String> {
    let line = at.line.saturating_mul(2) | u64::from(at.inside);
    Seal::seal(&binding(call, path), &[at.offset, line], &state(call, facts))
}

/// Opens a file at the position in such a cursor, if it is unchanged, or at its start.
pub(crate) fn resume(
    call: &Call<'_>,
    path: &RelPath,
    cursor: Option<&str>,
) -> Result<(Content, Facts, At)> {
    let open = |text| Seal::open(&binding(call, path), text);
    let position: Option<Position<2>> = cursor.map(open).transpose()?;
    let advice = "leave cursor out to read it again; read_file_range reads growing files";
    let (content, facts) = stale_if_gone(position.is_some(), call.file(path), advice)?;
    let Some(position) = position else { return Ok((content, facts, At::START)) };
    position.expect(&state(call, &facts), advice)?;
    let [offset, line] = position.numbers;
    Ok((content, facts, At { offset, line: line / 2, inside: line % 2 == 1 }))
}

/// How text is shown.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) numbers: bool,
    pub(crate) lossy: bool,
}

/// What came onto the page.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) start: At,
    pub(crate) end: At,
    /// The end of the file was seen.
    pub(crate) at_end: bool,
    /// It ends before a byte that is not text.
    pub(crate) before_bad: bool,
    /// Bytes of text as shown.
    pub(crate) shown: usize,
    crlf: bool,
    bom: bool,
    last: Option<u8>,
}

impl Reading {
    pub(crate) fn new(start: At) -> Self {
        Self { start, end: start, ..Self::default() }
    }

    /// Nothing was passed yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Takes note of bytes that are returned.
    pub(crate) fn pass(&mut self, page: &mut Page, bytes: &[u8], shown: &str) {
        page.hash(bytes);
        self.bom |= self.end.offset == 0 && bytes.starts_with(b"\xef\xbb\xbf");
        self.crlf |= self.last == Some(b'\r') && bytes.starts_with(b"\n");
        self.crlf |= !self.crlf && memmem::find(bytes, b"\r\n").is_some();
        self.shown += shown.len();
        self.last = bytes.last().copied().or(self.last);
        self.end.pass(bytes);
    }

    /// The facts of a header about this text; `lines` where their numbers are not known.
    pub(crate) fn facts(&self, page: &mut Page, size: u64, lines: Option<String>) {
        let (from, start, end) = (self.start.line, self.start.offset, self.end.offset);
        let last = if self.end.inside { self.end.line } else { self.end.line - 1 };
        let total = if self.at_end { format!(" of {last}") } else { String::new() };
        let numbers = if start == end { "0".into() } else { format!("{from}-{last}") };
        page.fact("lines", lines.unwrap_or(numbers + &total));
        page.fact("bytes", format_args!("{start}-{end} of {}", size.max(end)));
        let no_newline = self.at_end && self.last.is_some_and(|last| last != b'\n');
        page.notes.extend(self.crlf.then_some("line ends: CRLF"));
        page.notes.extend(self.bom.then_some("BOM"));
        page.notes.extend(no_newline.then_some("no final newline"));
    }
}

/// Opens the file that a client's text names, unless its beginning looks binary.
pub(crate) fn open_text(call: &Call<'_>, text: &str) -> Result<(RelPath, Content, Facts)> {
    let path = call.tree.path(text)?;
    let (content, facts) = call.file(&path)?;
    let mut start = [0; BINARY_CHECK_BYTES];
    let count = content.read_at(&mut start, 0).map_err(|fault| tool_error(fault, &path))?;
    refuse_binary_start(&start[..count], &path, facts.size)?;
    Ok((path, content, facts))
}

/// Reads onto the page until it is full, the file ends, or a byte is not text. `not-text` if the
/// very first byte is not, or if the file is binary.
pub(crate) fn read(
    page: &mut Page,
    content: &Content,
    path: &RelPath,
    facts: &Facts,
    start: At,
    style: Style,
) -> Result<Reading> {
    let mut reading = Reading::new(start);
    // One byte more than fits, or than there is, tells whether something follows.
    let size = page.bytes_max().saturating_add(1).clamp(BINARY_CHECK_BYTES, BLOCK_BYTES);
    let left = facts.size.saturating_sub(start.offset).saturating_add(1);
    let size = usize::try_from(left).map_or(size, |left| size.min(left.max(64)));
    let mut buffer = vec![0; size];
    while !reading.at_end {
        let count = content.read_at(&mut buffer, reading.end.offset);
        let mut rest = &buffer[..count.map_err(|fault| tool_error(fault, path))?];
        let at_end = rest.len() < size;
        if reading.end.offset == 0 {
            refuse_binary_start(rest, path, facts.size)?;
        } else if reading.is_empty() && rest.starts_with(b"\n") {
            // The page before may have ended between CR and LF.
            let mut before = [0];
            let count = content.read_at(&mut before, start.offset - 1);
            reading.last = count.ok().map(|_| before[0]);
        }
        loop {
            let (valid, ending) = text(rest, at_end);
            let taken = put(page, &reading, valid, style.numbers);
            reading.pass(page, &rest[..taken], &valid[..taken]);
            rest = &rest[taken..];
            match ending {
                _ if taken < valid.len() => return Ok(reading),
                Ending::Whole | Ending::Cut => break,
                Ending::Bad(length) if style.lossy => {
                    if put(page, &reading, "\u{fffd}", style.numbers) == 0 {
                        return Ok(reading);
                    }
                    reading.pass(page, &rest[..length], "\u{fffd}");
                    rest = &rest[length..];
                }
                Ending::Bad(_) if reading.is_empty() => {
                    return Err(bad_byte_error(path, start.offset, Some(start.line)));
                }
                Ending::Bad(_) => return Ok(Reading { before_bad: true, ..reading }),
            }
        }
        reading.at_end = at_end;
    }
    Ok(reading)
}

/// Puts as much of the text as fits, with the numbers of its lines if they are asked for; gives the
/// bytes of the text that were put.
fn put(page: &mut Page, reading: &Reading, text: &str, numbers: bool) -> usize {
    if !numbers {
        let taken = cut(text, page.fit(text));
        page.put(&text[..taken]);
        return taken;
    }
    let (mut at, mut taken) = (reading.end, 0);
    for line in text.split_inclusive('\n') {
        let number = if at.inside { String::new() } else { format!("{}|", at.line) };
        let numbered = format!("{number}{line}");
        let fit = page.fit(&numbered);
        // A line is begun only if it fits, or has the page for itself.
        if fit < numbered.len() && !at.inside && at != reading.start {
            break;
        }
        page.put(&numbered[..fit]);
        taken += fit.saturating_sub(number.len());
        if fit < numbered.len() {
            break;
        }
        at.pass(line.as_bytes());
    }
    taken
}

/// Ends a page that is full after a line, unless that would give up half of it.
fn cut(text: &str, fit: usize) -> usize {
    let newline = if fit < text.len() { memrchr(b'\n', &text.as_bytes()[..fit]) } else { None };
    newline.filter(|at| fit / 2 <= *at).map_or(fit, |at| at + 1)
}

/// With a cursor, something that is no longer there makes the cursor stale.
pub(crate) fn stale_if_gone<T>(has_cursor: bool, found: Result<T>, advice: &str) -> Result<T> {
    found.map_err(|error| match error.code {
        Code::FileNotFound | Code::NotADirectory | Code::NotAFile if has_cursor => {
            ToolError::new(Code::StaleCursor, format!("{}; {advice}", error.sentence))
        }
        _ => error,
    })
}
