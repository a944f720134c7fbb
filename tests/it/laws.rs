//! What holds for every input: pages join to the whole, cursors refuse what they were not made
//! for, replies keep their budget, the published schemas stay as they are.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Random, Reply, Server, Tree, WHOLE, sha256};

/// Letters and digits that a cursor may consist of.
const ALPHABET: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
/// Bytes that mean something to a parser.
const BYTES: &[u8] = b"\"{}[]:,0a\\\xff\x00-. ";
/// The nine tools in their order, with their parameters: `!` required.
const TOOLS: [(&str, &[&str]); 9] = [
    ("list_roots", &[]),
    ("list_directory", &["path", "depth", "cursor", "limit"]),
    ("search_files", &["pattern!", "path", "type", "cursor", "limit"]),
    (
        "search_text",
        &[
            "query!",
            "path",
            "glob",
            "ignore_case",
            "whole_word",
            "context",
            "output",
            "cursor",
            "limit",
        ],
    ),
    ("read_file", &["path!", "cursor", "max_chars", "line_numbers", "lossy"]),
    ("read_file_range", &["path!", "start_line!", "line_count!", "line_numbers", "lossy"]),
    ("tail_file", &["path!", "last_lines!", "lossy"]),
    ("read_multiple_files", &["paths!", "max_chars", "lossy"]),
    ("get_file_info", &["path!"]),
];

/// A tree with every kind of entry, several levels and awkward neighbours in its order.
fn varied(random: &mut Random) -> Tree {
    let tree = Tree::new();
    let names = ["a", "a.txt", "a-b", "B", "z.md", "\u{e9}", "two words", "new\nline", "x.log"];
    for _ in 0..70 {
        let mut path = String::new();
        for _ in 0..random.below(5) {
            path.push_str(&format!("d{}/", random.below(3)));
        }
        path.push_str(names[random.below(names.len())]);
        let lines = (0..random.below(12)).map(|_| {
            ["needle one", "straw", "two needles: needle", "", "\u{1}\u{2}needle"][random.below(5)]
        });
        tree.write(&path, lines.collect::<Vec<_>>().join("\n"));
    }
    tree.write("node_modules/n.txt", "needle\n").write(".env", "needle\n").fifo("d0/fifo");
    tree.write("binary", b"needle\0").link("d0", "d1/link").dir("empty").dir("d2/none");
    tree.write("long.txt", format!("{}needle{}\n", "x".repeat(800), "y".repeat(800)));
    tree
}

/// All rows of all pages.
fn joined(pages: &[Reply]) -> Vec<&str> {
    pages.iter().flat_map(Reply::rows).collect()
}

/// Rows of a search's pages, the repeated file rows and the separators left out.
fn joined_search(pages: &[Reply]) -> Vec<String> {
    let (mut rows, mut file) = (Vec::new(), "");
    for page in pages {
        for row in page.rows() {
            let repeated = row == file;
            if row.starts_with("[FILE] ") {
                file = row;
            }
            if !repeated && row != "--" {
                rows.push(row.to_owned());
            }
        }
    }
    rows
}

/// The sums over pages that must equal the whole's counts.
fn sums(pages: &[Reply], keys: &[&str]) -> Vec<u64> {
    keys.iter().map(|key| pages.iter().map(|page| page.number(key)).sum()).collect()
}

#[test]
fn listing_pages_join_to_the_whole() {
    let mut random = Random::new();
    let tree = varied(&mut random);
    let mut whole = Server::new(&tree, &[WHOLE]);
    let mut small = Server::new(&tree, &["--max-result-chars=1000"]);
    let keys = ["entries", "withheld"];
    for depth in 1..=8 {
        let arguments = json!({"depth": depth});
        let all = whole.ok("list_directory", json!({"depth": depth, "limit": 1_000_000}));
        assert!(all.complete(), "{}", all.header());
        for limit in [1, 2, 3, 7, 50, all.rows().len()] {
            let mut arguments = arguments.clone();
            arguments["limit"] = json!(limit);
            let pages = whole.pages("list_directory", &arguments);
            assert_eq!(joined(&pages), all.rows(), "depth {depth} limit {limit}");
            assert_eq!(
                pages.len(),
                all.rows().len().div_ceil(limit),
                "depth {depth}, limit {limit}"
            );
            let one = std::slice::from_ref(&all);
            assert_eq!(sums(&pages, &keys), sums(one, &keys), "depth {depth} limit {limit}");
        }
        let pages = small.pages("list_directory", &arguments);
        assert_eq!(joined(&pages), all.rows(), "depth {depth} in small pages");
    }
}

#[test]
fn rows_stand_in_the_order_of_their_components() {
    let mut random = Random::new();
    let tree = varied(&mut random);
    let mut server = Server::new(&tree, &[WHOLE]);
    let listed = server.ok("list_directory", json!({"depth": 8, "limit": 1_000_000}));
    let plain = listed.paths().into_iter().filter(|path| !path.starts_with('"'));
    let paths: Vec<Vec<&str>> =
        plain.map(|path| path.trim_end_matches('/').split('/').collect()).collect();
    assert!(paths.len() > 50 && paths.is_sorted(), "{listed:?}");
}

#[test]
fn search_pages_join_to_the_whole() {
    let mut random = Random::new();
    let tree = varied(&mut random);
    let mut whole = Server::new(&tree, &[WHOLE]);
    let mut small = Server::new(&tree, &["--max-result-chars=1000"]);
    let keys = ["withheld", "binary", "special files"];
    for (tool, arguments) in [
        ("search_files", json!({"pattern": "*"})),
        ("search_files", json!({"pattern": "a", "type": "file"})),
        ("search_files", json!({"pattern": "d*/**", "path": "d0"})),
        ("search_text", json!({"query": "needle"})),
        ("search_text", json!({"query": "needle", "context": 1})),
        ("search_text", json!({"query": "needle", "context": 10})),
        ("search_text", json!({"query": "needle", "glob": "*.txt", "whole_word": true})),
        ("search_text", json!({"query": "needle", "output": "files"})),
        ("search_text", json!({"query": "needle", "output": "count"})),
    ] {
        let with_limit = |limit| {
            let mut arguments = arguments.clone();
            arguments["limit"] = json!(limit);
            arguments
        };
        let all = whole.ok(tool, with_limit(1_000_000));
        assert!(all.complete() && !all.rows().is_empty(), "{all:?}");
        let one = std::slice::from_ref(&all);
        let rows = joined_search(one);
        let check = |pages: Vec<Reply>, limit| {
            assert_eq!(joined_search(&pages), rows, "{tool} {arguments} limit {limit}");
            assert_eq!(sums(&pages, &keys), sums(one, &keys), "{tool} {arguments} limit {limit}");
            let last = pages.last().unwrap();
            if arguments["output"] == "count" {
                assert_eq!(last.fact("matches"), all.fact("matches"), "the total is carried");
            } else {
                assert_eq!(sums(&pages, &["matches"]), sums(one, &["matches"]), "{arguments}");
            }
        };
        for limit in [1, 2, 5, 30] {
            check(whole.pages(tool, &with_limit(limit)), limit);
        }
        check(small.pages(tool, &arguments), 0);
    }
}

/// Texts whose pages could tear: wide characters, control characters, long lines, no newline.
fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("plain", "0123456789 abcdefgh\n".repeat(400)),
        ("wide", "a\u{e9}\u{20ac}\u{1f600}\u{2028}\u{85}\r\n".repeat(700)),
        ("control", "\u{1}\u{2}\u{1b}[0m\t\"\\\n".repeat(600)),
        ("one-line", "\u{1f600}x".repeat(4_000)),
        ("newlines", "\n".repeat(5_000)),
        ("bom", format!("\u{feff}{}", "line\n".repeat(900))),
        ("open", format!("{}last", "line\r\n".repeat(900))),
    ]
}

#[test]
fn read_pages_join_to_the_file() {
    let tree = Tree::new();
    for (name, text) in texts() {
        tree.write(name, text);
    }
    let mut servers = ["--max-result-chars=1000", "--max-result-chars=2500", WHOLE]
        .map(|option| (option, Server::new(&tree, &[option])));
    for (name, text) in texts() {
        for (option, server) in &mut servers {
            for max_chars in [1_u64, 1_000, 1_777, 1 << 40] {
                let arguments = json!({"path": name, "max_chars": max_chars});
                let pages = server.pages("read_file", &arguments);
                let place = format!("{name} {option} {max_chars}");
                let all: String = pages.iter().map(Reply::payload).collect();
                assert!(all == text, "{place}: {} pages", pages.len());
                let (mut at, mut line) = (0, 1);
                for page in &pages {
                    let end = at + page.payload().len();
                    let bytes = format!("{at}-{end} of {}", text.len());
                    assert_eq!(page.fact("bytes"), bytes, "{place}");
                    assert_eq!(page.number("lines"), line, "{place}: {}", page.header());
                    line += u64::try_from(page.payload().matches('\n').count()).unwrap();
                    at = end;
                }
            }
        }
        let (_, server) = &mut servers[0];
        let numbered = server.pages("read_file", &json!({"path": name, "line_numbers": true}));
        let numbered: String = numbered.iter().map(Reply::payload).collect();
        let number = |(at, line): (usize, &str)| format!("{}|{line}", at + 1);
        let expected: String = text.split_inclusive('\n').enumerate().map(number).collect();
        assert!(numbered == expected, "{name} with numbers");
    }
}

#[test]
fn ranges_and_tails_agree_with_the_lines() {
    let tree = Tree::new();
    for (name, text) in texts() {
        tree.write(name, text);
    }
    let mut server = Server::new(&tree, &[WHOLE]);
    for (name, text) in texts() {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (start, count) in [(1, 1), (1, 7), (2, 3), (lines.len(), 1), (5, 1 << 40)] {
            let arguments = json!({"path": name, "start_line": start, "line_count": count});
            let range = server.ok("read_file_range", arguments);
            let expected: String = lines.iter().skip(start - 1).take(count).copied().collect();
            assert!(range.payload() == expected && range.complete(), "{name} {start} {count}");
        }
        for count in [1, 2, 100, 1 << 40] {
            let tail = server.ok("tail_file", json!({"path": name, "last_lines": count}));
            let from = lines.len().saturating_sub(count);
            assert!(tail.payload() == lines[from..].concat() && tail.complete(), "{name} {count}");
        }
    }
}

#[test]
fn a_range_continues_where_it_says() {
    let tree = Tree::new();
    let text: String = (1..=900).map(|number| format!("line {number}\n")).collect();
    tree.write("a.txt", &text);
    let mut server = Server::new(&tree, &["--max-result-chars=1000"]);
    let (mut start, mut all) = (1, String::new());
    for _ in 0..100 {
        let arguments = json!({"path": "a.txt", "start_line": start, "line_count": 10_000});
        let range = server.ok("read_file_range", arguments);
        all.push_str(range.payload());
        let Some(next) = range.fact("next").strip_prefix("start_line=") else { break };
        start = next.parse().unwrap();
    }
    assert_eq!(all, text);
    // The newest lines fit; which range holds the older ones is said when it is known.
    let tail = server.ok("tail_file", json!({"path": "a.txt", "last_lines": 500}));
    assert!(!tail.complete() && text.ends_with(tail.payload()) && tail.payload().len() > 300);
    assert!(tail.payload().starts_with("line "), "whole lines: {tail:?}");
}

#[test]
fn files_of_any_size_are_read_without_being_loaded() {
    let tree = Tree::new();
    tree.sparse("sparse.txt", 5 << 30).write("tail.txt", "");
    let file = fs::OpenOptions::new().write(true).open(tree.path("tail.txt")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[b'\n'; 8 << 10], 0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"first\nsecond\n", 5 << 30).unwrap();
    tree.write("line.txt", "z".repeat(20 << 20));
    let mut server = Server::new(&tree, &[]);
    let tail = server.ok("tail_file", json!({"path": "tail.txt", "last_lines": 1}));
    assert_eq!(tail.payload(), "second\n");
    server.refused("not-text", "read_file", json!({"path": "sparse.txt"}));
    let arguments = json!({"path": "line.txt", "start_line": 1, "line_count": 1});
    let range = server.ok("read_file_range", arguments);
    assert_eq!(range.fact("next"), "read_file", "{range:?}");
    let cursor = range.fact("cursor");
    let read = server.ok("read_file", json!({"path": "line.txt", "cursor": cursor}));
    let begins = format!("{}-", range.payload().len());
    assert!(read.fact("bytes").starts_with(&begins), "{} then {}", range.header(), read.header());
    let found = server.ok("search_text", json!({"query": "zz", "path": "line.txt"}));
    assert!(found.rows()[1].starts_with("1:[column 1, 0 before, "), "{found:?}");
    assert!(found.rows()[1].len() < 400, "{found:?}");
    let memory = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 16 << 10, "{peak} kB");
}

#[test]
fn every_reply_fits_even_of_control_characters() {
    let tree = Tree::new();
    let text = "\u{1}".repeat(2 << 20);
    tree.write("a.txt", &text).write("b.txt", "\u{1}\u{2}needle\u{3}\n".repeat(20_000));
    for number in 0..400 {
        tree.write(format!("names/{}{number}", "\u{1b}".repeat(200)), "needle\n");
    }
    for option in [WHOLE, "--max-result-chars=1000", "--max-result-chars=24000"] {
        let mut server = Server::new(&tree, &[option]);
        // `Server` checks the budgets of each reply.
        let first = server.ok("read_file", json!({"path": "a.txt"}));
        if option == WHOLE {
            let pages = server.pages("read_file", &json!({"path": "a.txt"}));
            assert!(pages.iter().map(Reply::payload).collect::<String>() == text);
            assert!(pages.len() < 5 && !first.complete(), "{} pages", pages.len());
        }
        let whole = option == WHOLE;
        for (tool, arguments) in [
            ("read_file_range", json!({"path": "a.txt", "start_line": 1, "line_count": 9})),
            ("tail_file", json!({"path": "b.txt", "last_lines": 60_000})),
            ("read_multiple_files", json!({"paths": ["b.txt", "a.txt", "b.txt"]})),
            ("search_text", json!({"query": "needle", "limit": 1_000_000})),
            ("search_files", json!({"pattern": "*", "limit": 1_000_000})),
            ("list_directory", json!({"path": "names", "limit": 1_000_000})),
            ("get_file_info", json!({"path": format!("names/{}7", "\u{1b}".repeat(200))})),
        ] {
            server.ok(tool, arguments);
        }
        if option == "--max-result-chars=1000" {
            let pages = server.pages("list_directory", &json!({"path": "names"}));
            let unshown = pages.iter().map(|page| page.number("too long to show"));
            assert_eq!(unshown.sum::<u64>(), 400, "{pages:?}");
        }
        if whole {
            let pages = server.pages("search_text", &json!({"query": "needle", "path": "names"}));
            assert_eq!(pages.iter().map(|page| page.number("matches")).sum::<u64>(), 400);
        }
    }
}

/// A tree, a server and the first page's cursor for a call.
fn first_page(tool: &str, arguments: &Value) -> (Tree, Server, String) {
    let tree = Tree::new();
    for name in ["b", "d", "f", "h", "j"] {
        tree.write(format!("t/{name}.txt"), format!("needle {name}\n"));
    }
    tree.write("t/read.log", "0123456789\n".repeat(300)).write("other/o.txt", "needle\n");
    let mut server = Server::new(&tree, &[]);
    let first = server.ok(tool, arguments.clone());
    let cursor = first.cursor().unwrap_or_else(|| panic!("{tool}: {first:?}")).to_owned();
    (tree, server, cursor)
}

/// The calls of the survival table, each stopping after `t/f.txt` or inside `t/read.log`.
fn paged_calls() -> [(&'static str, Value); 4] {
    [
        ("list_directory", json!({"path": "t", "limit": 3})),
        ("search_files", json!({"path": "t", "pattern": "*.txt", "limit": 3})),
        ("search_text", json!({"path": "t", "query": "needle", "limit": 3, "glob": "*.txt"})),
        ("read_file", json!({"path": "t/read.log", "max_chars": 1_000})),
    ]
}

fn with_cursor(arguments: &Value, cursor: &str) -> Value {
    let mut arguments = arguments.clone();
    arguments["cursor"] = json!(cursor);
    arguments
}

#[test]
fn any_changed_character_of_a_cursor_is_refused() {
    for (tool, arguments) in paged_calls() {
        let (_tree, mut server, cursor) = first_page(tool, &arguments);
        assert!(cursor.len() <= 64, "{cursor}");
        let mut refuse = |changed: &str| {
            let text = server.refused("invalid-cursor", tool, with_cursor(&arguments, changed));
            assert!(text.contains("leave") || text.contains("without"), "{text}");
        };
        for at in 0..cursor.len() {
            for other in ALPHABET.chars().filter(|other| !cursor[at..].starts_with(*other)) {
                refuse(&format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]));
            }
            if at > 0 {
                refuse(&cursor[..at]);
            }
            refuse(&format!("{}{}", &cursor[..at], &cursor[at + 1..]));
            let upper = cursor[at..=at].to_uppercase();
            if upper != cursor[at..=at] {
                refuse(&format!("{}{upper}{}", &cursor[..at], &cursor[at + 1..]));
            }
        }
        for changed in [" ", "0", "\u{e9}", "a\nb"] {
            refuse(&format!("{cursor}{changed}"));
            refuse(&format!("{changed}{cursor}"));
        }
        refuse(&"0".repeat(100_000));
        server.ok(tool, with_cursor(&arguments, &cursor));
    }
}

#[test]
fn a_cursor_serves_only_the_call_it_was_made_for() {
    for (tool, arguments) in paged_calls() {
        let (tree, mut server, cursor) = first_page(tool, &arguments);
        for (other, other_arguments) in paged_calls() {
            if other != tool {
                let arguments = with_cursor(&other_arguments, &cursor);
                server.refused("invalid-cursor", other, arguments);
            }
        }
        for (name, value) in [
            ("path", json!("other/o.txt")),
            ("depth", json!(2)),
            ("pattern", json!("*.tx?")),
            ("type", json!("file")),
            ("query", json!("needl")),
            ("glob", json!("*.tx?")),
            ("context", json!(1)),
            ("output", json!("files")),
            ("ignore_case", json!(true)),
            ("whole_word", json!(true)),
        ] {
            let known = TOOLS.iter().find(|(known, _)| *known == tool).unwrap().1;
            if known.iter().any(|parameter| parameter.trim_end_matches('!') == name) {
                let mut changed = with_cursor(&arguments, &cursor);
                changed[name] = value;
                if name == "path" && tool != "read_file" {
                    changed[name] = json!("other");
                }
                server.refused("invalid-cursor", tool, changed);
            }
        }
        // Another spelling of the same call is the same call.
        let mut same = with_cursor(&arguments, &cursor);
        same["path"] = json!(format!("./{}/", arguments["path"].as_str().unwrap()));
        let more = match tool {
            "list_directory" => json!({"depth": 1, "limit": 1}),
            "search_files" => json!({"type": "any", "limit": null}),
            "search_text" => json!({"context": 0, "output": "lines", "ignore_case": false}),
            _ => json!({"max_chars": 2_000, "line_numbers": true, "lossy": true}),
        };
        same.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.ok(tool, same);
        let mut restarted = Server::new(&tree, &[]);
        restarted.refused("invalid-cursor", tool, with_cursor(&arguments, &cursor));
    }
}

#[test]
fn pages_survive_or_go_stale_as_the_table_says() {
    type Change = fn(&Tree) -> &Tree;
    let create_passed: Change = |tree| tree.write("t/c.txt", "needle new\n");
    let create_passed_dir: Change = |tree| tree.dir("t/c.txt");
    let create_unmatched: Change = |tree| tree.write("t/c.md", "needle new\n");
    let vanish: Change = |tree| tree.remove("t/d.txt");
    let retype: Change = |tree| tree.remove("t/d.txt").dir("t/d.txt");
    let edit_passed: Change = |tree| tree.write("t/d.txt", "needle changed\n");
    let touch_passed: Change = |tree| {
        let file = fs::OpenOptions::new().append(true).open(tree.path("t/d.txt")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        tree
    };
    let replace_passed: Change = |tree| {
        tree.write("../new", "needle d\n");
        fs::rename(tree.path("../new"), tree.path("t/d.txt")).unwrap();
        tree
    };
    let create_later: Change = |tree| tree.write("t/i.txt", "needle i\n");
    let vanish_later: Change = |tree| tree.remove("t/h.txt");
    let edit_later: Change = |tree| tree.write("t/h.txt", "needle and more\n");
    let retype_later: Change = |tree| tree.remove("t/j.txt").dir("t/j.txt");
    let elsewhere: Change = |tree| {
        tree.write("other/o.txt", "needle needle\n").write("new.txt", "needle\n").remove("other")
    };
    let grow_read: Change = |tree| tree.write("t/read.log", "0123456789\n".repeat(301));
    let shrink_read: Change = |tree| tree.write("t/read.log", "0123456789\n".repeat(100));
    let vanish_read: Change = |tree| tree.remove("t/read.log");
    let copy_read: Change = |tree| {
        fs::copy(tree.path("t/read.log"), tree.path("../copy")).unwrap();
        fs::rename(tree.path("../copy"), tree.path("t/read.log")).unwrap();
        tree
    };
    let [list, files, text, read] = paged_calls();
    let rows: [(&str, Change, &str, &(&str, Value)); 36] = [
        ("a passed name appears", create_passed, "stale", &list),
        ("a passed name appears, a directory", create_passed_dir, "stale", &list),
        ("a passed name appears, any", create_unmatched, "stale", &list),
        ("a passed name vanishes", vanish, "stale", &list),
        ("a passed name changes its type", retype, "stale", &list),
        ("a passed file is edited", edit_passed, "survives", &list),
        ("a passed file is replaced", replace_passed, "survives", &list),
        ("a later name appears", create_later, "survives", &list),
        ("a later name vanishes", vanish_later, "survives", &list),
        ("a later name changes its type", retype_later, "survives", &list),
        ("elsewhere", elsewhere, "survives", &list),
        ("a passed match appears", create_passed, "stale", &files),
        ("a passed match appears, a directory", create_passed_dir, "stale", &files),
        ("something passed appears that does not match", create_unmatched, "survives", &files),
        ("a passed match vanishes", vanish, "stale", &files),
        ("a passed match changes its type", retype, "stale", &files),
        ("a passed match is edited", edit_passed, "survives", &files),
        ("a later match appears", create_later, "survives", &files),
        ("a later match vanishes", vanish_later, "survives", &files),
        ("elsewhere", elsewhere, "survives", &files),
        ("a searched file appears", create_passed, "stale", &text),
        ("a file outside the glob appears", create_unmatched, "survives", &text),
        ("a searched file vanishes", vanish, "stale", &text),
        ("a searched file is edited", edit_passed, "stale", &text),
        ("a searched file is touched", touch_passed, "stale", &text),
        ("a searched file is replaced", replace_passed, "stale", &text),
        ("a later file appears", create_later, "survives", &text),
        ("a later file is edited", edit_later, "survives", &text),
        ("a later file vanishes", vanish_later, "survives", &text),
        ("a later file changes its type", retype_later, "survives", &text),
        ("outside path and glob", elsewhere, "survives", &text),
        ("the file grows", grow_read, "stale", &read),
        ("the file shrinks", shrink_read, "stale", &read),
        ("the file is gone", vanish_read, "stale", &read),
        ("the file is replaced by its like", copy_read, "stale", &read),
        ("any other change", edit_passed, "survives", &read),
    ];
    let mut wrong = Vec::new();
    for (what, change, verdict, (tool, arguments)) in rows {
        let (tree, mut server, cursor) = first_page(tool, arguments);
        let mut pages = vec![server.ok(tool, arguments.clone())];
        change(&tree);
        let next = with_cursor(arguments, &cursor);
        let second = server.call(tool, next.clone());
        let file = *tool == "read_file" && tree.path("t/read.log").exists();
        let hint = !file || second.text.contains("read_file_range");
        match (second.code(), verdict) {
            ("stale-cursor", "stale") if hint => continue,
            ("", "survives") => (),
            _ => {
                wrong.push(format!("{tool}, {what}: {second:?}"));
                continue;
            }
        }
        // Pages joined equal the one big answer at the time of the last page, in names.
        pages.extend(server.pages(tool, &next));
        let mut arguments = arguments.clone();
        for narrow in ["limit", "max_chars"] {
            arguments.as_object_mut().unwrap().remove(narrow);
        }
        let all = Server::new(&tree, &[WHOLE]).ok(tool, arguments);
        let names = |pages: &[Reply]| -> Vec<String> {
            pages.iter().flat_map(Reply::paths).map(str::to_owned).collect()
        };
        if names(&pages) != names(std::slice::from_ref(&all)) {
            wrong.push(format!("{tool}, {what}: {pages:?} but {all:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_file_in_progress_is_guarded_as_well() {
    let (tree, mut server, _) = first_page("list_directory", &json!({"path": "t", "limit": 1}));
    let arguments = json!({"query": "0123", "path": "t", "limit": 5});
    let first = server.ok("search_text", arguments.clone());
    let next = with_cursor(&arguments, first.cursor().unwrap());
    server.ok("search_text", next.clone());
    tree.write("t/read.log", "0123456789\n".repeat(299));
    server.refused("stale-cursor", "search_text", next);
}

#[test]
fn a_time_budget_answers_with_what_there_is() {
    let tree = Tree::new();
    let block =
        "straw straw straw straw straw straw straw straw straw straw straw straw\n".repeat(20_000);
    for number in 0..40 {
        tree.write(format!("d{number}/big.txt"), &block);
    }
    tree.write("z.txt", "needle\n");
    let mut server = Server::new(&tree, &["--time-budget=50"]);
    let pages = server.pages("search_text", &json!({"query": "needle"}));
    let found = joined_search(&pages);
    assert!(found.ends_with(&["[FILE] z.txt".to_owned(), "1:needle".to_owned()]), "{found:?}");
    let arguments = json!({"path": "d0/big.txt", "start_line": 19_999, "line_count": 1});
    server.ok("read_file_range", arguments);
}

#[test]
fn a_mutated_request_gets_one_answer_or_none() {
    let tree = Tree::of(&[("a.txt", "one\ntwo\n")]);
    let mut server = Server::new(&tree, &[]);
    let mut random = Random::new();
    let params = json!({"name": "search_text", "arguments": {"query": "o", "path": "a.txt", "limit": 3, "context": 1}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    for _ in 0..3_000 {
        let mut line = request.to_string().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(line.len());
            match random.below(3) {
                0 => line[at] = BYTES[random.below(BYTES.len())],
                1 => drop(line.remove(at)),
                _ => line.insert(at, line[random.below(line.len())]),
            }
        }
        line.retain(|byte| *byte != b'\n');
        line.push(b'\n');
        server.send_raw(line);
        server.send(&json!({"jsonrpc": "2.0", "id": "after", "method": "ping"}));
        let first = server.receive();
        if first["id"] != "after" {
            assert_eq!(server.receive()["id"], "after", "{first}");
        }
    }
    server.close_quietly();
}

/// The raw text of a `tools/list` result and its value.
fn tools_list() -> (String, Value) {
    let tree = Tree::new();
    let mut server = Server::new(&tree, &[]);
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let line = String::from_utf8(server.next_line().unwrap()).unwrap();
    let value: Value = serde_json::from_str(&line).unwrap();
    (line, value["result"].clone())
}

#[test]
fn the_published_tools_are_those_of_the_fixture() {
    let (line, result) = tools_list();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tools.json");
    let text = format!("{result:#}\n");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert!(text == expected, "fixtures/tools.json differs; BLESS=1 rewrites it");
    assert!(line.len() < 8_000, "{} bytes", line.len());
}

#[test]
fn schemas_are_flat_and_portable() {
    let (_, result) = tools_list();
    assert_eq!(result.as_object().unwrap().len(), 1, "one page");
    let tools = result["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS.map(|(name, _)| name));
    for (tool, (name, parameters)) in tools.iter().zip(TOOLS) {
        let members: Vec<_> = tool.as_object().unwrap().keys().collect();
        assert_eq!(members, ["annotations", "description", "inputSchema", "name", "title"]);
        assert!((40..600).contains(&tool["description"].as_str().unwrap().len()), "{name}");
        let hints = json!({"readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false});
        assert_eq!(tool["annotations"], hints);
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        let allowed = ["properties", "required", "type"];
        assert!(schema.as_object().unwrap().keys().all(|key| allowed.contains(&key.as_str())));
        let mut expected: Vec<_> = parameters.iter().map(|p| p.trim_end_matches('!')).collect();
        expected.sort_unstable();
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), expected, "{name}");
        let required: Vec<_> = parameters.iter().filter_map(|p| p.strip_suffix('!')).collect();
        let listed = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(*listed, *required, "{name}");
        for (parameter, property) in properties {
            check_property(&format!("{name}.{parameter}"), property);
            let must = required.contains(&parameter.as_str());
            assert!(!must || property.get("default").is_none(), "{name}.{parameter}");
        }
    }
}

fn check_property(place: &str, property: &Value) {
    let allowed = ["type", "enum", "minimum", "maximum", "default", "description", "items"];
    let keys = property.as_object().unwrap().keys();
    assert!(keys.into_iter().all(|key| allowed.contains(&key.as_str())), "{place}: {property}");
    let kind = property["type"].as_str().expect(place);
    assert!(["string", "integer", "boolean", "array"].contains(&kind), "{place}");
    assert_eq!(kind == "array", property.get("items").is_some(), "{place}");
    assert!(
        property["items"].is_null() || property["items"] == json!({"type": "string"}),
        "{place}"
    );
    assert!(property["description"].as_str().is_some_and(|text| text.len() > 5), "{place}");
}

/// Bytes that are mostly text: each piece is sound or broken UTF-8.
fn nearly_text(random: &mut Random, pieces: usize) -> Vec<u8> {
    let sound = ["a", "\u{e9}", "\u{20ac}", "\u{1f600}", "\n", "word ", "\r\n"];
    let broken: [&[u8]; 5] = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80"];
    let piece = |random: &mut Random| match random.below(30) {
        0 => broken[random.below(broken.len())].to_vec(),
        _ => sound[random.below(sound.len())].as_bytes().to_vec(),
    };
    (0..pieces).flat_map(|_| piece(random)).collect()
}

#[test]
fn a_page_ends_before_the_first_bad_byte() {
    let mut random = Random::new();
    let tree = Tree::new();
    let mut server = Server::new(&tree, &["--max-result-chars=1000"]);
    let mut large = Server::new(&tree, &[WHOLE]);
    for number in 0..30 {
        let (name, bytes) = (number.to_string(), nearly_text(&mut random, 2_000));
        tree.write(&name, &bytes);
        let sound = std::str::from_utf8(&bytes).unwrap_err().valid_up_to();
        let (mut all, mut arguments) = (String::new(), json!({"path": name}));
        let refusal = loop {
            let page = server.call("read_file", arguments.clone());
            if page.code() == "not-text" {
                break page.text;
            }
            all.push_str(page.payload());
            arguments["cursor"] = json!(page.cursor().unwrap());
        };
        assert_eq!(all.as_bytes(), &bytes[..sound], "{bytes:?}");
        assert!(refusal.contains(&sound.to_string()), "{sound}: {refusal}");
        // The same with U+FFFD, whatever the size of the pages.
        let lossy = json!({"path": name, "lossy": true});
        let join = |pages: Vec<Reply>| pages.iter().map(Reply::payload).collect::<String>();
        let all = join(large.pages("read_file", &lossy));
        assert_eq!(all, String::from_utf8_lossy(&bytes));
        assert_eq!(join(server.pages("read_file", &lossy)), all);
        let page = large.ok("read_file", lossy);
        assert_eq!(page.fact("sha256"), sha256(&bytes), "the file's bytes are hashed");
    }
}

#[test]
fn search_agrees_with_a_naive_twin() {
    let mut random = Random::new();
    let tree = Tree::new();
    let mut texts = Vec::new();
    for number in 0..12 {
        let pieces = ["a", "A", "b", "_", " ", "\u{e9}", "\u{c9}", "ab", "\n", "\n", "\u{1f600}"];
        let text: String = (0..300).map(|_| pieces[random.below(pieces.len())]).collect();
        tree.write(format!("{number:02}.txt"), &text);
        texts.push(text);
    }
    let mut server = Server::new(&tree, &[WHOLE]);
    for _ in 0..150 {
        let pieces = ["a", "A", "b", "_", " ", "\u{e9}", "\u{1f600}"];
        let query: String =
            (0..=random.below(3)).map(|_| pieces[random.below(pieces.len())]).collect();
        let (ignore, whole) = (random.below(2) == 0, random.below(2) == 0);
        let fold = |text: &str| if ignore { text.to_lowercase() } else { text.to_owned() };
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let hit = |line: &str| {
            let (line, query) = (fold(line), fold(&query));
            let starts = line.char_indices().filter(|(at, _)| line[*at..].starts_with(&query));
            let mut edges = starts.map(|(at, _)| (&line[..at], &line[at + query.len()..]));
            edges.any(|(before, after)| {
                !whole || !before.ends_with(word) && !after.starts_with(word)
            })
        };
        let mut expected = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let lines = text.lines().enumerate().filter(|(_, line)| hit(line));
            let lines: Vec<_> = lines.map(|(at, line)| format!("{}:{line}", at + 1)).collect();
            if !lines.is_empty() {
                expected.push(format!("[FILE] {number:02}.txt"));
                expected.extend(lines);
            }
        }
        let arguments =
            json!({"query": query, "ignore_case": ignore, "whole_word": whole, "limit": 1_000_000});
        let found = server.ok("search_text", arguments.clone());
        assert!(
            expected.is_empty() || found.rows() == expected,
            "{arguments}\n{found:?}\n{expected:?}"
        );
        assert_eq!(expected.is_empty(), found.number("matches") == 0, "{arguments}");
    }
}

#[test]
fn arguments_are_held_to_the_published_schema() {
    let tree = Tree::of(&[("a.txt", "one\n")]);
    let mut server = Server::new(&tree, &[]);
    let (_, result) = tools_list();
    for tool in result["tools"].as_array().unwrap() {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        let mut base = json!({});
        for required in schema["required"].as_array().into_iter().flatten() {
            base[required.as_str().unwrap()] = match required.as_str().unwrap() {
                "path" => json!("a.txt"),
                "paths" => json!(["a.txt"]),
                "pattern" | "query" => json!("one"),
                _ => json!(1),
            };
        }
        server.ok(name, base.clone());
        let unknown = server.refused("invalid-argument", name, json!({"no_such": 1}));
        for (parameter, property) in schema["properties"].as_object().unwrap() {
            assert!(unknown.contains(parameter.as_str()), "{name}: {unknown}");
            for value in [
                json!("x"),
                json!(7),
                json!(7.0),
                json!(1.5),
                json!(true),
                json!([]),
                json!([1]),
                json!({}),
                json!(-1),
                json!(0),
                json!(1),
                json!(11),
                json!(1e300),
                json!(u64::MAX),
            ] {
                let mut arguments = base.clone();
                arguments[parameter] = value.clone();
                let reply = server.call(name, arguments.clone());
                let place = format!("{name} {arguments}: {reply:?}");
                if obeys(&value, property) {
                    let text = property["type"] == "string" && property["enum"].is_null();
                    assert!(
                        text || reply.code() == "" || reply.code() == "not-a-directory",
                        "{place}"
                    );
                } else {
                    assert_eq!(reply.code(), "invalid-argument", "{place}");
                    assert!(reply.text.contains(parameter.as_str()), "{place}");
                }
            }
            let mut arguments = base.clone();
            arguments[parameter] = Value::Null;
            let absent = server.call(name, arguments.clone());
            let must = !base[parameter.as_str()].is_null();
            assert_eq!(absent.code() == "invalid-argument", must, "{name} {arguments}: {absent:?}");
        }
    }
}

/// Whether a value fits a published property.
fn obeys(value: &Value, property: &Value) -> bool {
    match property["type"].as_str().unwrap() {
        "string" => {
            let choices = property["enum"].as_array();
            value.is_string() && choices.is_none_or(|choices| choices.contains(value))
        }
        "boolean" => value.is_boolean(),
        "array" => false,
        _ => value.as_f64().is_some_and(|number| {
            let within = |edge: &str, sign: f64| {
                property[edge].as_f64().is_none_or(|limit| (number - limit) * sign >= 0.0)
            };
            number.fract() == 0.0 && within("minimum", 1.0) && within("maximum", -1.0)
        }),
    }
}

#[test]
fn zero_hits_say_so_without_the_query() {
    let tree = Tree::of(&[("a.txt", "one\n")]);
    let mut server = Server::new(&tree, &[]);
    for query in ["qqq", "q|q", "q.*q", "\\bq", "q\\s", "^q", "q$"] {
        for (tool, argument) in [("search_text", "query"), ("search_files", "pattern")] {
            let reply = server.ok(tool, json!({argument: query}));
            assert_eq!(reply.rows().len(), 1, "{query}: {reply:?}");
            assert!(reply.complete() && !reply.text.contains(query), "{query}: {reply:?}");
            let literal = query != "qqq" && tool == "search_text";
            assert!(!literal || reply.payload().contains("literal"), "{query}: {reply:?}");
        }
    }
}

#[test]
fn equal_calls_have_equal_hashes() {
    let tree = Tree::of(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("c.txt", "two")]);
    let mut server = Server::new(&tree, &[]);
    let hash = |server: &mut Server, tool: &str, arguments| {
        server.ok(tool, arguments).meta("content_hash").as_str().unwrap().to_owned()
    };
    let a = hash(&mut server, "read_file", json!({"path": "a.txt"}));
    assert_eq!(a, format!("sha256:{}", sha256(b"one\n")));
    assert_eq!(a, hash(&mut server, "read_file", json!({"path": "b.txt", "line_numbers": true})));
    assert_eq!(a, hash(&mut server, "tail_file", json!({"path": "b.txt", "last_lines": 1})));
    let both = hash(&mut server, "read_multiple_files", json!({"paths": ["a.txt", "c.txt"]}));
    assert_eq!(both, format!("sha256:{}", sha256(b"one\ntwo")));
}
