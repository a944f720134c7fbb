//! `search_files`: paths whose name matches. Never opens a file and never looks at contents.

use crate::arguments::{COUNT, CURSOR_DESCRIPTION, PATH_OR_TOP, Shape, TEXT, tool};
use crate::disk::Kind;
use crate::error::{Result, ToolError};
use crate::glob::{Glob, folded};
use crate::limits::GLOB_BYTES_MAX;
use crate::listing;
use crate::page::Page;
use crate::rows::row;
use crate::tool::Call;
use crate::walk::Walk;

tool! {
    name: "search_files",
    title: "Find files by name",
    description: "Finds files and directories below path by name, ignoring case. A pattern with * ? \
                  or { is a glob: *.md at any depth, src/**/*.rs anchored at path; anything else \
                  is found inside names. Rows: [FILE] path, [DIR] path/, [LINK] path. A directory \
                  named as not searched can be given as path. If the first line says more, call \
                  again with its cursor. Not for text in files (search_text).",
    pattern: String = required TEXT, "glob, or part of a name";
    path: String = optional PATH_OR_TOP, "directory to search";
    wanted as "type": String = optional Shape::Word(&["any", "file", "dir"]), "what to find";
    cursor: Option<String> = optional TEXT, CURSOR_DESCRIPTION;
    limit: Option<u64> = optional COUNT, "most paths on a page";
}

fn run(call: &Call<'_>, arguments: Arguments) -> Result<Page> {
    let Arguments { pattern, path, wanted, cursor, limit } = arguments;
    // A length that no glob may have is refused as one, whatever the text.
    let is_part =
        !pattern.contains(['*', '?', '{']) && (1..=GLOB_BYTES_MAX).contains(&pattern.len());
    let glob = if is_part { None } else { Some(Glob::new(&pattern)) };
    let glob = glob.transpose().map_err(|why| ToolError::invalid(format!("pattern {why}")))?;
    // A slash is looked for in paths below the start, where others are held against the name.
    let on_path = if is_part { &pattern } else { pattern.trim_end_matches('/') }.contains('/');
    let (part, path) = (folded(&pattern), call.tree.path(&path)?);
    let binding = call.seal.tag(TOOL.name).with(path.as_str()).with(&pattern).with(&wanted);
    let is_item = |walk: &Walk<'_>| {
        let kinds = [("file", Kind::File), ("dir", Kind::Dir), ("any", walk.kind)];
        kinds.contains(&(&wanted, walk.kind))
            && match &glob {
                Some(glob) => glob.matches(walk.below()),
                None if on_path => folded(walk.below()).contains(&*part),
                None => folded(walk.place.name()).contains(&*part),
            }
    };
    let print = |walk: &mut Walk<'_>| Some(row(walk.kind, walk.path().as_str()) + "\n");
    let (mut page, rows, visited) =
        listing::fill(call.walk(&path), &binding, &cursor, limit, is_item, print)?;
    page.fact("matches", rows);
    page.fact("searched", format_args!("{visited} entries"));
    let kind = wanted.replace("any", "entry");
    let rule = if glob.is_some() { "a glob on" } else { "part of" };
    let whole = if on_path { "path below path" } else { "name" };
    let rule = format!("every {kind} below path, by {rule} the {whole}, ignoring case");
    page.tell_no_match(cursor.is_none(), &rule);
    Ok(page)
}
