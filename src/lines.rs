//! Text in blocks: UTF-8 judged at block edges, lines found without holding a file in memory, kinds
//! of binary told by their first bytes. Works on bytes that were read; never opens anything.

use memchr::{memchr, memchr_iter, memrchr};

use crate::disk::{Content, Fault};
use crate::error::{Code, Result, ToolError};
use crate::limits::{BINARY_CHECK_BYTES, BLOCK_BYTES};
use crate::path::RelPath;
use crate::tree::about;

/// How the valid beginning of some bytes ends.
pub(crate) enum Ending {
    /// All bytes are text.
    Whole,
    /// A character is cut by the end of the bytes.
    Cut,
    /// A sequence of so many bytes is not UTF-8.
    Bad(usize),
}

/// The valid beginning of the bytes. At the end of a file a cut character is a bad one.
pub(crate) fn text(bytes: &[u8], at_end: bool) -> (&str, Ending) {
    let error = match str::from_utf8(bytes) {
        Ok(text) => return (text, Ending::Whole),
        Err(error) => error,
    };
    let (valid, rest) = bytes.split_at(error.valid_up_to());
    let ending = match error.error_len() {
        None if !at_end => Ending::Cut,
        length => Ending::Bad(length.unwrap_or(rest.len())),
    };
    (str::from_utf8(valid).unwrap_or_default(), ending)
}

/// Newlines in some bytes.
pub(crate) fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// What kind of binary file begins like this; none if it does not look binary.
pub(crate) fn binary_kind(start: &[u8]) -> Option<&'static str> {
    /// Where which bytes stand. UTF-32 begins like UTF-16, so it is asked first.
    const MAGIC: [(usize, &[u8], &str); 16] = [
        (0, b"\x89PNG\r\n\x1a\n", "png"),
        (0, b"\xff\xd8\xff", "jpeg"),
        (0, b"GIF8", "gif"),
        (8, b"WEBP", "webp"),
        (0, b"%PDF-", "pdf"),
        (0, b"PK\x03\x04", "zip"),
        (0, b"\x1f\x8b", "gzip"),
        (0, b"\x7fELF", "elf"),
        (0, b"SQLite format 3\0", "sqlite"),
        (0, b"BZh", "bzip2"),
        (0, b"\xfd7zXZ\0", "xz"),
        (0, b"\x28\xb5\x2f\xfd", "zstd"),
        (0, b"\xff\xfe\0\0", "UTF-32"),
        (0, b"\0\0\xfe\xff", "UTF-32"),
        (0, b"\xff\xfe", "UTF-16"),
        (0, b"\xfe\xff", "UTF-16"),
    ];
    memchr(0, &start[..start.len().min(BINARY_CHECK_BYTES)])?;
    let known = |(at, magic, _): &&(usize, &[u8], _)| {
        start.get(*at..).is_some_and(|rest| rest.starts_with(magic))
    };
    Some(MAGIC.iter().find(known).map_or("unknown", |(_, _, name)| name))
}

/// `not-text` for a file whose beginning looks binary.
pub(crate) fn refuse_binary_start(start: &[u8], path: &RelPath, size: u64) -> Result<()> {
    let Some(kind) = binary_kind(start) else { return Ok(()) };
    let why = format!("is binary (type: {kind}, {size} bytes), not UTF-8 text");
    Err(about(path, Code::NotText, why))
}

/// `not-text` for a bad byte.
pub(crate) fn bad_byte_error(path: &RelPath, offset: u64, line: Option<u64>) -> ToolError {
    let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
    let lossy = "lossy: true shows such bytes as U+FFFD";
    about(path, Code::NotText, format!("is not UTF-8 at byte {offset}{line}; {lossy}"))
}

/// A line as [`Lines`] meets it.
pub(crate) enum Line<'b> {
    /// A whole line with its newline, if it has one.
    Whole(&'b [u8]),
    /// A line that is longer than was asked for.
    Long,
    /// The end of the file.
    End,
}

/// What reading from the disk gives.
pub(crate) type Read<T> = core::result::Result<T, Fault>;

/// Lines of a file from some offset on, in bounded memory.
pub(crate) struct Lines<'c> {
    content: &'c Content,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins, and what of it is not used yet.
    start: u64,
    used: usize,
    filled: usize,
    at_end: bool,
}

impl<'c> Lines<'c> {
    pub(crate) fn new(content: &'c Content, offset: u64) -> Self {
        let buffer = Vec::new();
        Self { content, buffer, start: offset, used: 0, filled: 0, at_end: false }
    }

    /// Where the next line begins.
    pub(crate) fn offset(&self) -> u64 {
        self.start + self.used as u64
    }

    /// Whether nothing follows.
    pub(crate) fn is_at_end(&mut self) -> Read<bool> {
        if self.used == self.filled && !self.at_end {
            self.fill(BLOCK_BYTES)?;
        }
        Ok(self.used == self.filled && self.at_end)
    }

    /// The next line, if it has at most `bytes_max` bytes; a longer one is not passed.
    pub(crate) fn next(&mut self, bytes_max: usize) -> Read<Line<'_>> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.used..self.filled];
            let newline = memchr(b'\n', &rest[searched..]).map(|at| searched + at + 1);
            let is_over = self.at_end || newline.is_some();
            searched = newline.unwrap_or(rest.len());
            if searched > bytes_max {
                return Ok(Line::Long);
            }
            if is_over {
                self.used += searched;
                let line = &self.buffer[self.used - searched..self.used];
                return Ok(if line.is_empty() { Line::End } else { Line::Whole(line) });
            }
            self.fill(bytes_max.saturating_add(1).min(searched + BLOCK_BYTES))?;
        }
    }

    /// Skips whole lines until `count` were skipped, the file ends, or `is_over` says so; gives how
    /// many were skipped, and whether it stopped inside a line.
    pub(crate) fn skip(&mut self, count: u64, is_over: impl Fn() -> bool) -> Read<(u64, bool)> {
        let (mut left, mut inside) = (count, false);
        while left > 0 && !self.is_at_end()? {
            let rest = &self.buffer[self.used..self.filled];
            let here = newlines(rest);
            if left <= here {
                let last = memchr_iter(b'\n', rest).nth((left - 1) as usize);
                self.used += last.map_or(rest.len(), |at| at + 1);
                return Ok((count, false));
            }
            (left, inside, self.used) = (left - here, !rest.ends_with(b"\n"), self.filled);
            if is_over() {
                break;
            }
        }
        Ok((count - left, inside))
    }

    /// Drops what is used and reads on, up to `size` bytes in the buffer.
    fn fill(&mut self, size: usize) -> Read<()> {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.start += self.used as u64;
        (self.filled, self.used) = (self.filled - self.used, 0);
        self.buffer.resize(self.buffer.len().max(size).max(self.filled + 1), 0);
        let offset = self.start + self.filled as u64;
        self.filled += self.content.read_at(&mut self.buffer[self.filled..], offset)?;
        self.at_end = self.filled < self.buffer.len();
        Ok(())
    }
}

/// Where the last `count` lines of the bytes begin, if they hold so many whole ones. A newline at
/// the very end ends the last line and begins none.
pub(crate) fn last_lines(bytes: &[u8], count: u64) -> Option<usize> {
    let mut end = bytes.len().saturating_sub(usize::from(bytes.ends_with(b"\n")));
    for _ in 0..count {
        end = memrchr(b'\n', &bytes[..end])?;
    }
    Some(end + 1)
}
