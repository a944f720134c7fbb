//! The tools against naive twins: the same answers from a few lines that nobody could get wrong,
//! over random trees and arguments, in one piece and joined from pages of random limits.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Random, Reply, Server, Tree, WHOLE};

/// Rounds over a new tree each; `IT_ROUNDS` asks for more.
const ROUNDS: usize = 6;
/// Calls of each tool in a round.
pub const CALLS: usize = 25;
/// Lines longer than this are shown as a window.
const ROW_CHARS: usize = 500;

pub fn rounds() -> usize {
    std::env::var("IT_ROUNDS").map_or(ROUNDS, |digits| digits.parse().unwrap())
}

pub fn pick<'t>(random: &mut Random, from: &[&'t str]) -> &'t str {
    from[random.below(from.len())]
}

/// A file's bytes: short lines of a small alphabet, long ones, and some that are no text.
fn content(random: &mut Random) -> Vec<u8> {
    let pieces = [
        "a",
        "A",
        "ab",
        "b",
        "_",
        " ",
        ".",
        "\u{e9}",
        "\u{c9}",
        "\u{df}",
        "\u{130}",
        "\u{1f600}",
        "\r",
        "\t",
        "\u{2028}",
        "\u{3c3}\u{3c2}",
        "\u{3a3}",
    ];
    let mut bytes = Vec::new();
    for _ in 0..random.below(40) {
        let pieces_max = match random.below(400) {
            0 => 70_000,
            1..20 => 1_200,
            _ => 14,
        };
        for _ in 0..random.below(pieces_max) {
            bytes.extend_from_slice(pick(random, &pieces).as_bytes());
        }
        // Of a line over 64 KiB, what decodes is searched all the same.
        if pieces_max < 70_000 && random.below(25) == 0 {
            bytes.extend_from_slice([&b"\xff"[..], b"\xc3", b"\xe2\x82"][random.below(3)]);
        }
        bytes.extend_from_slice([&b"\n"[..], b"\n", b"\r\n"][random.below(3)]);
    }
    if random.below(2) == 0 {
        bytes.pop();
    }
    bytes
}

/// A tree, and its files by components, in the order of the contract.
pub fn forest(random: &mut Random) -> (Tree, BTreeMap<Vec<String>, Vec<u8>>) {
    let (tree, mut files) = (Tree::new(), BTreeMap::new());
    let names = ["a", "A.txt", "a-b", "b.md", "B", "c.txt", "ab.rs", "\u{e9}.txt", "\u{c9}t\u{e9}"];
    for _ in 0..18 {
        let depth = random.below(4);
        let mut path: Vec<String> =
            (0..depth).map(|_| pick(random, &["d", "D1", "d.x"]).to_owned()).collect();
        path.push(pick(random, &names).to_owned());
        let bytes = content(random);
        tree.write(path.join("/"), &bytes);
        files.insert(path, bytes);
    }
    (tree, files)
}

pub fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A line as rows show it: without its end.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

pub fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The columns of the hits, in characters from 0, of a line.
fn hits(line: &str, query: &str, ignore: bool, word: bool) -> Vec<usize> {
    let chars: Vec<char> = line.chars().collect();
    let query = if ignore { fold(query) } else { query.to_owned() };
    // Every folded character with the column of the one that it comes from.
    let cell = |(column, c): (usize, &char)| {
        let text = if ignore { fold(&c.to_string()) } else { c.to_string() };
        text.chars().map(|c| (c, column)).collect::<Vec<_>>()
    };
    let hay: Vec<(char, usize)> = chars.iter().enumerate().flat_map(cell).collect();
    let needle: Vec<char> = query.chars().collect();
    let part = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let windows = hay.windows(needle.len());
    let equal = windows.filter(|window| window.iter().map(|(c, _)| c).eq(needle.iter()));
    equal
        .map(|window| (window[0].1, window[window.len() - 1].1))
        .filter(|(first, last)| {
            let before = first.checked_sub(1).and_then(|at| chars.get(at));
            !word || !part(before) && !part(chars.get(last + 1))
        })
        .map(|(first, _)| first)
        .collect()
}

/// Whether a row shows a line: whole, or a window around a hit at `column`.
fn shows(row: &str, line: &str, column: Option<usize>) -> bool {
    let total = line.chars().count();
    if total <= ROW_CHARS {
        return row == line;
    }
    let parse = || {
        let (frame, window) = row.strip_prefix("[column ")?.split_once(" after] ")?;
        let (at, rest) = frame.split_once(", ")?;
        let (before, after) = rest.split_once(" before, ")?;
        let number = |text: &str| text.parse::<usize>().ok();
        Some((number(at)?, number(before)?, number(after)?, window))
    };
    let Some((at, before, after, window)) = parse() else { return false };
    let length = window.chars().count();
    let part: String = line.chars().skip(before).take(length).collect();
    let near =
        column.is_none_or(|column| at == column + 1 && (before..before + length).contains(&column));
    before + length + after == total && part == window && length <= 300 && near
}

/// A row's number, its mark, its line, and the column of the first hit.
pub type Row<'b> = (usize, char, &'b [u8], Option<usize>);

/// What a search of one file should show; `None` stands between groups.
pub struct Expected<'b> {
    rows: Vec<Option<Row<'b>>>,
    matches: usize,
    bad: usize,
}

pub fn search<'b>(
    bytes: &'b [u8],
    query: &str,
    ignore: bool,
    word: bool,
    context: usize,
) -> Expected<'b> {
    let lines: Vec<&[u8]> = lines(bytes).into_iter().map(bare).collect();
    let text = |line: &[u8]| std::str::from_utf8(line).ok().map(str::to_owned);
    let hit = |line: &[u8]| hits(&text(line)?, query, ignore, word).first().copied();
    let found: Vec<Option<usize>> = lines.iter().map(|line| hit(line)).collect();
    let (mut rows, mut last) = (Vec::new(), None);
    for (at, line) in lines.iter().enumerate() {
        let near = at.saturating_sub(context)..(at + context + 1).min(lines.len());
        if found[near].iter().all(Option::is_none) {
            continue;
        }
        if context > 0 && last.is_some_and(|last| last + 1 < at) {
            rows.push(None);
        }
        last = Some(at);
        let mark = if found[at].is_some() { ':' } else { '-' };
        rows.push(Some((at + 1, mark, *line, found[at])));
    }
    let bad = lines.iter().filter(|line| text(line).is_none()).count();
    Expected { rows, matches: found.iter().flatten().count(), bad }
}

/// Compares the rows of one file.
pub fn agree(got: &[&str], expected: &Expected<'_>, separators: bool) -> Result<(), String> {
    let wanted: Vec<_> = expected.rows.iter().filter(|row| separators || row.is_some()).collect();
    if got.len() != wanted.len() {
        return Err(format!("{} rows, not {}", got.len(), wanted.len()));
    }
    for (row, wanted) in got.iter().zip(wanted) {
        let fits = match wanted {
            None => *row == "--",
            Some((number, mark, line, column)) => {
                let prefix = format!("{number}{mark}");
                row.strip_prefix(&prefix).is_some_and(|row| match std::str::from_utf8(line) {
                    Ok(line) => shows(row, line, *column),
                    Err(_) => *mark == '-' && row == "[not UTF-8]",
                })
            }
        };
        if !fits {
            return Err(format!("{row:?} is not {wanted:?}"));
        }
    }
    Ok(())
}

/// Rows by file, the repeated file rows of later pages joined.
pub fn by_file(pages: &[Reply]) -> Vec<(&str, Vec<&str>)> {
    let mut files: Vec<(&str, Vec<&str>)> = Vec::new();
    for page in pages.iter().filter(|page| page.number("matches") > 0) {
        for row in page.payload().split_terminator('\n') {
            match row.strip_prefix("[FILE] ") {
                Some(path) if files.last().is_some_and(|(last, _)| *last == path) => (),
                Some(path) => files.push((path, Vec::new())),
                None => files.last_mut().unwrap().1.push(row),
            }
        }
    }
    files
}

/// Whether a glob of the few kinds that are used here covers a path.
fn covers(glob: &str, path: &[String]) -> bool {
    let name = |path: &[String]| fold(path.last().map_or("", String::as_str));
    match glob {
        "" => true,
        "*.txt" => (1..=path.len()).any(|end| name(&path[..end]).ends_with(".txt")),
        "d*" => (1..=path.len()).any(|end| name(&path[..end]).starts_with('d')),
        "d/**" => path.len() > 1 && fold(&path[0]) == "d",
        "**/?" => (1..=path.len()).any(|end| name(&path[..end]).chars().count() == 1),
        "{a,B}" => (1..=path.len()).any(|end| ["a", "b"].contains(&name(&path[..end]).as_str())),
        other => panic!("{other}"),
    }
}
const GLOBS: [&str; 7] = ["", "", "*.txt", "d*", "d/**", "**/?", "{a,B}"];
pub const PLACES: [&str; 4] = [".", "d", "d/d", "D1"];

/// The files below a place, by their components below it.
fn below<'f>(
    files: &'f BTreeMap<Vec<String>, Vec<u8>>,
    place: &str,
) -> Vec<(&'f [String], &'f [u8])> {
    let start: Vec<&str> = place.split('/').filter(|part| *part != ".").collect();
    let inside = files.iter().filter(|(path, _)| {
        path.len() > start.len() && path.iter().zip(&start).all(|(a, b)| a == b)
    });
    inside.map(|(path, bytes)| (&path[start.len()..], bytes.as_slice())).collect()
}

#[test]
fn search_text_is_its_twin() {
    let mut random = Random::new();
    for _ in 0..rounds() {
        let (tree, files) = forest(&mut random);
        let mut whole = Server::new(&tree, &[WHOLE]);
        let mut small = Server::new(&tree, &["--max-result-chars=3000"]);
        for _ in 0..CALLS {
            let pieces = [
                "a",
                "A",
                "b",
                "_",
                " ",
                "\u{e9}",
                "\u{1f600}",
                "\u{df}",
                "i\u{307}",
                "\u{3c3}",
                "\u{3a3}",
            ];
            let query: String = (0..=random.below(3)).map(|_| pick(&mut random, &pieces)).collect();
            let (ignore, word) = (random.below(2) == 0, random.below(2) == 0);
            let context = [0, 0, 1, 2, 10][random.below(5)];
            let (glob, place) = (pick(&mut random, &GLOBS), pick(&mut random, &PLACES));
            if !tree.root().join(place).is_dir() {
                continue;
            }
            let inside: Vec<_> =
                below(&files, place).into_iter().filter(|(path, _)| covers(glob, path)).collect();
            let expected: Vec<(String, Expected<'_>)> = inside
                .iter()
                .map(|(path, bytes)| {
                    let start = if place == "." { String::new() } else { format!("{place}/") };
                    (start + &path.join("/"), search(bytes, &query, ignore, word, context))
                })
                .collect();
            let arguments = json!({"query": query, "path": place, "glob": glob, "ignore_case": ignore,
                "whole_word": word, "context": context, "limit": 1_000_000});
            let found: Vec<_> = expected.iter().filter(|(_, file)| file.matches > 0).collect();
            let matches: usize = found.iter().map(|(_, file)| file.matches).sum();
            let bad: usize = expected.iter().map(|(_, file)| file.bad).sum();
            let check = |pages: Vec<Reply>, separators: bool, place: String| {
                let got = by_file(&pages);
                let paths: Vec<_> = got.iter().map(|(path, _)| *path).collect();
                let wanted: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
                assert_eq!(paths, wanted, "{arguments} {place}");
                for ((path, rows), (_, file)) in got.iter().zip(&found) {
                    let rows: Vec<_> =
                        rows.iter().copied().filter(|row| separators || *row != "--").collect();
                    if let Err(why) = agree(&rows, file, separators) {
                        panic!("{arguments} {place}: {path}: {why}");
                    }
                }
                let sum = |key| pages.iter().map(|page| page.number(key)).sum::<u64>() as usize;
                assert_eq!(sum("matches"), matches, "{arguments} {place}");
                assert_eq!(sum("searched"), inside.len(), "{arguments} {place}");
                assert_eq!(sum("lines not UTF-8"), bad, "{arguments} {place}");
            };
            check(vec![whole.ok("search_text", arguments.clone())], true, "at once".into());
            let mut paged = arguments.clone();
            paged["limit"] = json!(1 + random.below(9));
            check(whole.pages("search_text", &paged), false, paged["limit"].to_string());
            check(small.pages("search_text", &arguments), false, "in small pages".into());
            // The same as paths, and as numbers, in pages of a random limit.
            for output in ["files", "count"] {
                paged["output"] = json!(output);
                let pages = whole.pages("search_text", &paged);
                let rows: Vec<&str> = pages
                    .iter()
                    .flat_map(|page| page.payload().split_terminator('\n'))
                    .filter(|row| row.starts_with("[FILE] "))
                    .collect();
                let row = |(path, file): &&(String, Expected<'_>)| match output {
                    "files" => format!("[FILE] {path}"),
                    _ => format!("[FILE] {path}: {}", file.matches),
                };
                assert_eq!(rows, found.iter().map(row).collect::<Vec<_>>(), "{paged}");
                let total = pages.last().unwrap().number("matches") as usize;
                assert!(output == "files" || total == matches, "{paged}: {total}");
            }
        }
    }
}
