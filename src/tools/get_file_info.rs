//! `get_file_info`: what one path names, without following a link at its end. Of a text file it
//! reads the beginning, to tell line ends and encoding, and no more.

use crate::arguments::{TEXT, tool};
use crate::disk::{Kind, Pin};
use crate::error::Result;
use crate::escape::{json_string, shown};
use crate::limits::{HEADER_CHARS_MAX, INFO_BYTES};
use crate::lines::{binary_kind, newlines, text};
use crate::page::Page;
use crate::rows::time;
use crate::tool::Call;

tool! {
    name: "get_file_info",
    title: "Describe a path",
    description: "Tells type, size in bytes, mode, times (UTC) and, of a text file, line ends and \
                  encoding; of a symbolic link, its target, without following it. Not for contents \
                  (read_file) or directories (list_directory).",
    path: String = required TEXT, "file or directory";
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let path = call.tree.path(&arguments.path)?;
    let mut place = call.place(&path, false)?;
    let name = if path.is_top() { ".".into() } else { shown(path.as_str()) };
    let mut rows = vec![("path", name.into()), ("type", place.kind().word().into())];
    if let Some(facts) = place.facts() {
        rows.extend([("size", facts.size.to_string()), ("mode", format!("{:04o}", facts.mode))]);
        rows.push(("modified", time(facts.modified)));
        rows.extend(facts.created.map(|created| ("created", time(created))));
        rows.push(("accessed", time(facts.accessed)));
    }
    match (place.kind(), place.leaf.clone()) {
        (Kind::File, Some(pin)) => rows.extend(text_rows(&pin)),
        (Kind::Link, _) => rows.extend(call.tree.link_target(&mut place).map(|to| ("target", to))),
        _ => (),
    }
    let host = call.tree.root(&place.path).filter(|_| call.config.show_host_paths);
    let host = host.map(|(root, below)| root.resolved.join(below.as_str()));
    // By components, since joining nothing to a root leaves a slash at its end.
    let host = host.map(|host| host.components().as_path().to_string_lossy().into_owned());
    rows.extend(host.map(|host| ("host path", json_string(&host))));
    let mut page = Page::new(call, None, HEADER_CHARS_MAX);
    rows.iter().for_each(|(key, value)| page.row_or_count(&format!("{key}: {value}\n")));
    Ok(page)
}

/// Line ends and encoding, judged on the beginning.
fn text_rows(pin: &Pin) -> Vec<(&'static str, String)> {
    let size = pin.facts.size.saturating_add(1).clamp(64, INFO_BYTES as u64);
    let mut start = vec![0; size as usize];
    let read = pin.open().and_then(|content| content.read_at(&mut start, 0));
    let Ok(count) = read else { return vec![("encoding", "unreadable".into())] };
    let start = &start[..count];
    if let Some(kind) = binary_kind(start) {
        return vec![("encoding", format!("binary (type: {kind})"))];
    }
    let encoding = match text(start, count < size as usize) {
        (_, 1..) => "not UTF-8",
        _ if start.starts_with(b"\xef\xbb\xbf") => "UTF-8 with BOM",
        (text, _) if text.is_ascii() => "UTF-8 (ASCII only)",
        _ => "UTF-8",
    };
    let crlf = memchr::memmem::find_iter(start, b"\r\n").count() as u64;
    let ends = match (newlines(start), crlf) {
        (0, _) => "none",
        (_, 0) => "LF",
        (all, crlf) if all == crlf => "CRLF",
        _ => "LF and CRLF",
    };
    vec![("line ends", ends.into()), ("encoding", encoding.into())]
}
