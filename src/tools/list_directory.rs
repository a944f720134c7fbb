//! `list_directory`: one row per entry, as deep as asked. Never follows a link, never reads a file.

use serde_json::{Map, Value};

use crate::arguments::{COUNT, CURSOR_DESCRIPTION, OPTIONAL_TEXT, PATH_OR_TOP, Shape, arguments};
use crate::cursor::{START_AGAIN, Seal};
use crate::disk::{Facts, Fault, Kind};
use crate::error::Result;
use crate::limits::LIST_DEPTH_MAX;
use crate::listing;
use crate::page::Omission;
use crate::reading::stale_if_gone;
use crate::rows::{row, time};
use crate::tool::{Answer, Call, Tool};
use crate::walk::Walk;

pub(crate) const TOOL: Tool = Tool {
    name: "list_directory",
    title: "List a directory",
    description: "Lists a directory in name order, one row per entry: [DIR] path/, [FILE] path  \
                  bytes  modified, [LINK] path -> target, [OTHER] path  kind. Pass paths back as \
                  shown; one in double quotes is a JSON string. Directories marked (not searched) \
                  are skipped by searches, but can be listed and read. If the first line says \
                  more, call again with its cursor. Not for finding names (search_files) or text \
                  (search_text).",
    parameters: Arguments::TABLE,
    run,
};

arguments! {
    path: String = optional PATH_OR_TOP, "directory to list";
    depth: u64 = optional Shape::Integer { min: 1, max: LIST_DEPTH_MAX, default: Some(1) },
        "levels to show";
    cursor: Option<String> = optional OPTIONAL_TEXT, CURSOR_DESCRIPTION;
    limit: Option<u64> = optional COUNT, "most entries on a page";
}

fn run(call: &Call<'_>, given: &Map<String, Value>) -> Result<Answer> {
    let Arguments { path, depth, cursor, limit } = Arguments::parse(given)?;
    let path = call.tree.path(&path)?;
    let binding = call.seal.binding(TOOL.name).with(path.as_str()).with(&depth.to_string());
    let position = cursor.as_deref().map(|text| Seal::open(&binding, text)).transpose()?;
    let place = stale_if_gone(cursor.is_some(), call.directory(&path), START_AGAIN)?;
    let walk = Walk::new(call, place, depth as usize)?;
    let listing = listing::fill(call, walk, &binding, position, limit, |_| true, print);
    let mut listing = listing?;
    listing.header.fact("entries", listing.rows);
    Ok(listing.page.answer(listing.header, listing.complete, true))
}

fn print(walk: &mut Walk<'_>) -> Option<String> {
    let facts = |facts: Facts| format!("  {}  {}", facts.size, time(facts.modified));
    let rest = match walk.kind() {
        Kind::File => walk.facts().map(facts),
        Kind::Link => walk.link_target().map(|target| format!(" -> {target}")),
        _ if walk.is_noise => Ok("  (not searched)".into()),
        _ => Ok(String::new()),
    };
    let rest = match rest {
        Err(Fault::Missing) => return None,
        Err(_) => {
            walk.count(Omission::Unreadable);
            "  -  -".into()
        }
        Ok(rest) => rest,
    };
    Some(row(walk.kind(), walk.path()) + &rest + "\n")
}
