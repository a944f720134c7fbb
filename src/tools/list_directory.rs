//! `list_directory`: one row per entry, as deep as asked. Never follows a link, never reads a file.

use crate::arguments::{COUNT, CURSOR_DESCRIPTION, PATH_OR_TOP, Shape, TEXT, tool};
use crate::disk::{Facts, Fault, Kind};
use crate::error::Result;
use crate::limits::LIST_DEPTH_MAX;
use crate::listing;
use crate::page::{Omission, Page};
use crate::rows::{row, time};
use crate::tool::Call;
use crate::walk::Walk;

tool! {
    name: "list_directory",
    title: "List a directory",
    description: "Lists a directory in name order, one row per entry: [DIR] path/, [FILE] path  \
                  bytes  modified, [LINK] path -> target, [OTHER] path  kind. Pass paths back as \
                  shown; one in double quotes is a JSON string. Directories marked (not searched) \
                  are skipped by searches, but can be listed and read. If the first line says \
                  more, call again with its cursor. Not for finding names (search_files) or text \
                  (search_text).",
    path: String = optional PATH_OR_TOP, "directory to list";
    depth: u64 = optional Shape::Integer { min: 1, max: LIST_DEPTH_MAX, default: Some(1) },
        "levels to show";
    cursor: Option<String> = optional TEXT, CURSOR_DESCRIPTION;
    limit: Option<u64> = optional COUNT, "most entries on a page";
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let Arguments { path, depth, cursor, limit } = arguments;
    let path = call.tree.path(&path)?;
    let binding = call.seal.tag(TOOL.name).with(path.as_str()).with(&depth.to_string());
    let mut walk = call.walk(&path);
    if let Ok(walk) = &mut walk {
        walk.depth_max = depth as usize;
    }
    let (mut page, rows, _) = listing::fill(walk, &binding, &cursor, limit, |_| true, print)?;
    page.fact("entries", rows);
    Ok(page)
}

fn print(walk: &mut Walk<'_>) -> Option<String> {
    let facts = |facts: Facts| format!("  {}  {}", facts.size, time(facts.modified));
    let tree = walk.call.tree;
    let rest = match walk.kind {
        Kind::File => walk.facts().map(facts),
        Kind::Link => tree.link_target(&mut walk.place).map(|target| format!(" -> {target}")),
        _ => Ok(if walk.is_noise { "  (not searched)" } else { "" }.into()),
    };
    if rest == Err(Fault::Missing) {
        return None;
    }
    let rest = rest.unwrap_or_else(|_| {
        walk.count(Omission::Unreadable);
        "  -  -".into()
    });
    Some(row(walk.kind, walk.path().as_str()) + &rest + "\n")
}
