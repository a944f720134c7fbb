//! The floor: what the work costs a process that answers over a pipe and does nothing else.
//!
//! It gets the very request lines that the server gets. It makes the plain system calls for the
//! same work, hashes what it returns and writes the escaped answer line. It never parses JSON,
//! checks a path, applies a rule, keeps a cursor, or validates text, and never walks a tree: there
//! the plain tools are the limit.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use memchr::{memchr, memchr_iter, memrchr};
use sha2::{Digest, Sha256};

const BLOCK: usize = 256 * 1024;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Answers until the end of input, beneath the working directory.
pub(crate) fn serve() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut line, mut payload, mut answer) = (String::new(), Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Some(id) = field(&line, "\"id\":") else { continue };
        answer.clear();
        write!(answer, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{")?;
        match field(&line, "\"method\":") {
            Some("initialize") => answer.extend(b"\"protocolVersion\":\"2025-06-18\""),
            Some("tools/list") => answer.extend(b"\"tools\":[]"),
            Some("tools/call") => {
                payload.clear();
                call(&line, &mut payload)?;
                answer.reserve(payload.len() * 9 / 8);
                answer.extend(b"\"content\":[{\"type\":\"text\",\"text\":\"complete\\n");
                escape(&payload, &mut answer)?;
                answer
                    .extend(b"\"}],\"_meta\":{\"readonly-mcp/result\":{\"content_hash\":\"sha256:");
                let digits = |byte: u8| [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                answer.extend(Sha256::digest(&payload).iter().flat_map(|byte| digits(*byte)));
                answer.extend(b"\",\"complete\":true}}");
            }
            _ => {}
        }
        answer.extend(b"}}\n");
        output.write_all(&answer)?;
        output.flush()?;
    }
}

/// The value after `key`, a string without escapes or a number.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    match rest.strip_prefix('"') {
        Some(text) => text.split('"').next(),
        None => rest.split([',', '}']).next(),
    }
}

fn call(line: &str, payload: &mut Vec<u8>) -> io::Result<()> {
    let path = field(line, "\"path\":").unwrap_or(".");
    let number = |key| field(line, key).and_then(|digits| digits.parse().ok());
    match field(line, "\"name\":").unwrap_or("") {
        "get_file_info" => {
            let metadata = fs::symlink_metadata(path)?;
            writeln!(payload, "size: {}", metadata.len())?;
            if number("\"lstat_only\":") != Some(1) {
                let mut start = [0; 64 * 1024];
                let length = File::open(path)?.read(&mut start)?;
                writeln!(payload, "binary: {}", memchr(0, &start[..length]).is_some())?;
            }
        }
        "read_file" => drop(File::open(path)?.read_to_end(payload)?),
        "read_file_range" => {
            let first = number("\"start_line\":").unwrap_or(1);
            range(path, first, number("\"line_count\":").unwrap_or(1), payload)?;
        }
        "tail_file" => tail(path, number("\"last_lines\":").unwrap_or(1), payload)?,
        "list_directory" => {
            let limit = number("\"limit\":").unwrap_or(usize::MAX);
            list(path, limit, number("\"names_only\":") == Some(1), payload)?;
        }
        _ => {}
    }
    Ok(())
}

fn range(path: &str, first: usize, count: usize, payload: &mut Vec<u8>) -> io::Result<()> {
    let (mut file, mut block, mut line) = (File::open(path)?, vec![0; BLOCK], 1);
    loop {
        let length = file.read(&mut block)?;
        let mut rest = &block[..length];
        if line < first {
            let lines = memchr_iter(b'\n', rest).count();
            if line + lines < first && length > 0 {
                line += lines;
                continue;
            }
        }
        while let Some(end) = memchr(b'\n', rest) {
            if line >= first {
                payload.extend(&rest[..=end]);
            }
            rest = &rest[end + 1..];
            line += 1;
            if line >= first + count {
                return Ok(());
            }
        }
        if line >= first {
            payload.extend(rest);
        }
        if length == 0 {
            return Ok(());
        }
    }
}

fn tail(path: &str, count: usize, payload: &mut Vec<u8>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut window = 64 * 1024;
    loop {
        payload.clear();
        file.seek(SeekFrom::Start(length.saturating_sub(window)))?;
        file.read_to_end(payload)?;
        let mut start = payload.len();
        let mut lines = 0;
        while lines <= count && start > 0 {
            start =
                memrchr(b'\n', &payload[..start - usize::from(lines > 0)]).map_or(0, |at| at + 1);
            lines += 1;
        }
        if lines > count || window >= length {
            payload.drain(..start);
            return Ok(());
        }
        window *= 4;
    }
}

/// A listing with names alone is a lower floor still: the server's rows also hold size and time.
fn list(path: &str, limit: usize, names_only: bool, payload: &mut Vec<u8>) -> io::Result<()> {
    let mut names: Vec<_> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort_unstable();
    names.truncate(limit);
    for name in names {
        payload.extend(b"[FILE] ");
        payload.extend(name.as_bytes());
        if !names_only {
            let metadata = fs::symlink_metadata(&name)?;
            write!(payload, "  {}  {}", metadata.len(), metadata.mtime())?;
        }
        payload.push(b'\n');
    }
    Ok(())
}

fn escape(bytes: &[u8], answer: &mut Vec<u8>) -> io::Result<()> {
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        answer.extend_from_slice(&bytes[done..at]);
        done = at + 1;
        match byte {
            b'"' => answer.extend(b"\\\""),
            b'\\' => answer.extend(b"\\\\"),
            b'\n' => answer.extend(b"\\n"),
            b'\t' => answer.extend(b"\\t"),
            b'\r' => answer.extend(b"\\r"),
            _ => write!(answer, "\\u{byte:04x}")?,
        }
    }
    answer.extend_from_slice(&bytes[done..]);
    Ok(())
}
