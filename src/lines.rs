//! Text in blocks: UTF-8 judged at block edges, lines found without holding a file in memory, kinds
//! of binary told by their first bytes. Works on bytes that were read; never opens anything.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memrchr};

use crate::disk::{Content, Facts};
use crate::error::{Code, Result};
use crate::limits::{BINARY_CHECK_BYTES, BLOCK_BYTES};
use crate::path::RelPath;
use crate::tree::{Disk, about, tool_error};

/// The valid beginning of the bytes, and how many after it are not UTF-8. A character that their
/// end cuts is left, but at the end of a file it is bad as well.
pub(crate) fn text(bytes: &[u8], at_end: bool) -> (&str, usize) {
    str::from_utf8(bytes).map(|text| (text, 0)).unwrap_or_else(|error| {
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        let cut = if at_end { rest.len() } else { 0 };
        (str::from_utf8(valid).unwrap_or_default(), error.error_len().unwrap_or(cut))
    })
}

pub(crate) fn is_continuation(byte: &u8) -> bool {
    byte & 0xc0 == 0x80
}

pub(crate) fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// What kind of binary file begins like this; none if it does not look binary.
pub(crate) fn binary_kind(start: &[u8]) -> Option<&'static str> {
    memchr(0, &start[..start.len().min(BINARY_CHECK_BYTES)])?;
    Some(match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', ..] => "png",
        [0xff, 0xd8, 0xff, ..] => "jpeg",
        [b'G', b'I', b'F', b'8', ..] => "gif",
        [_, _, _, _, _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        [b'%', b'P', b'D', b'F', b'-', ..] => "pdf",
        [b'P', b'K', 3, 4, ..] => "zip",
        [0x1f, 0x8b, ..] => "gzip",
        [0x7f, b'E', b'L', b'F', ..] => "elf",
        [b'S', b'Q', b'L', b'i', b't', b'e', b' ', b'f', ..] => "sqlite",
        [b'B', b'Z', b'h', ..] => "bzip2",
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        // It begins like UTF-16, so it is asked first.
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        _ => "unknown",
    })
}

/// A position in a file.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct At {
    pub(crate) offset: u64,
    pub(crate) line: u64,    // from 1; 0 where it is not known
    pub(crate) inside: bool, // the line began before the offset
}

impl At {
    pub(crate) const START: Self = Self { offset: 0, line: 1, inside: false };

    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.line += newlines(bytes);
        self.inside = bytes.last().map_or(self.inside, |last| *last != b'\n');
    }
}

/// A regular file, open for reading.
pub(crate) struct File {
    pub(crate) path: RelPath,
    pub(crate) content: Content,
    pub(crate) facts: Facts,
    pub(crate) lossy: bool, // bad bytes are read as U+FFFD, else they are `not-text`
}

impl File {
    /// What was read of it, or the error that it could not be.
    pub(crate) fn ok<T>(&self, read: Disk<T>) -> Result<T> {
        read.map_err(|fault| tool_error(fault, &self.path))
    }

    pub(crate) fn decoded<'b>(&self, bytes: &'b [u8], at: At) -> Result<Cow<'b, str>> {
        match text(bytes, true) {
            (text, 0) => Ok(text.into()),
            _ if self.lossy => Ok(String::from_utf8_lossy(bytes)),
            (valid, _) => {
                let line = || format!(", line {}", at.line + newlines(valid.as_bytes()));
                let line = if at.line > 0 { line() } else { String::new() };
                let place = format!("byte {}{line}", at.offset + valid.len() as u64);
                let why = "lossy: true shows such bytes as U+FFFD";
                Err(about(&self.path, Code::NotText, format!("is not UTF-8 at {place}; {why}")))
            }
        }
    }
}

/// A part of a file in memory.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: u64, // where in the file it begins
    pub(crate) used: usize,
    pub(crate) filled: usize,
    pub(crate) at_end: bool,
}

impl Block {
    /// Where in the file an index of the block lies.
    pub(crate) fn offset(&self, index: usize) -> u64 {
        self.start + index as u64
    }

    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.used..self.filled]
    }

    /// Drops what is used and reads on, up to `size` bytes in all.
    pub(crate) fn fill(&mut self, content: &Content, size: usize) -> Disk<()> {
        self.bytes.copy_within(self.used..self.filled, 0);
        self.start += self.used as u64;
        (self.filled, self.used) = (self.filled - self.used, 0);
        self.bytes.resize(self.bytes.len().max(size), 0);
        let offset = self.offset(self.filled);
        self.filled += content.read_at(&mut self.bytes[self.filled..], offset)?;
        self.at_end = self.filled < self.bytes.len();
        Ok(())
    }

    /// The next line and its newline; empty only at the file's end. None, and not passed, if longer.
    pub(crate) fn line(&mut self, content: &Content, bytes_max: usize) -> Disk<Option<&[u8]>> {
        let mut searched = 0;
        loop {
            let rest = self.rest();
            let newline = memchr(b'\n', &rest[searched..]).map(|at| searched + at + 1);
            let is_over = self.at_end || newline.is_some();
            searched = newline.unwrap_or(rest.len());
            if searched > bytes_max {
                return Ok(None);
            }
            if is_over {
                self.used += searched;
                return Ok(Some(&self.bytes[self.used - searched..self.used]));
            }
            self.fill(content, bytes_max.saturating_add(1).min(searched + BLOCK_BYTES))?;
        }
    }
}

/// Where the last `count` lines begin, if all of them are whole; a newline at the end begins none.
pub(crate) fn last_lines(bytes: &[u8], count: u64) -> Option<usize> {
    let mut end = bytes.len().saturating_sub(usize::from(bytes.ends_with(b"\n")));
    for _ in 0..count {
        end = memrchr(b'\n', &bytes[..end])?;
    }
    Some(end + 1)
}
