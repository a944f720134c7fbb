//! Bytes that are text, or nearly: every kind of bad sequence at every edge of a buffer, and texts
//! that readers stumble over.

use serde_json::{Value, json};

use crate::support::{Server, Tree, WHOLE, sha256};

/// Where blocks of the server end: what is judged first, a tail's and a search's block.
const EDGES: [usize; 3] = [8 << 10, 64 << 10, 256 << 10];
/// What may stand across an edge: one of every kind of bad sequence, and sound characters.
const SEQUENCES: [&[u8]; 16] = [
    b"\x80",
    b"\xbf",
    b"\xc0\xaf",
    b"\xc1\xbf",
    b"\xe0\x80\xaf",
    b"\xf0\x80\x80\xaf",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xf0\x9f\x98",
    "\u{20ac}".as_bytes(),
    "\u{1f600}".as_bytes(),
];

/// Lines of 64 bytes up to `bytes`, the last one shorter.
pub fn padding(bytes: usize) -> Vec<u8> {
    let line = b"straw straw straw straw straw straw straw straw straw straw 123\n";
    line.iter().copied().cycle().take(bytes).collect()
}

#[test]
fn bad_bytes_at_every_buffer_edge_are_found_where_they_are() {
    let tree = Tree::new();
    let mut whole = Server::new(&tree, &[WHOLE]);
    let mut small = Server::new(&tree, &[]);
    for (edge, step) in EDGES.into_iter().zip([1, 1, 3]) {
        // Of the largest block, which is slow to check, every third kind.
        for sequence in SEQUENCES.into_iter().step_by(step) {
            for before in 0..=sequence.len() {
                // The edge comes after `before` bytes of the sequence, from the start of the file
                // and, for a tail, from its end.
                let mut bytes = padding(edge - before);
                let line = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
                bytes.extend_from_slice(sequence);
                bytes.extend_from_slice(b"needle\nneedle after\n");
                if edge == EDGES[1] {
                    bytes.extend(padding(edge + before - sequence.len() - 20));
                }
                tree.write("f", &bytes);
                let place = format!("{sequence:x?}, {before} bytes before {edge}");
                check_text(&mut whole, &mut small, &bytes, line, &place);
            }
        }
    }
}

/// Every tool on a file whose line `line` holds the first bad byte, if there is one.
fn check_text(whole: &mut Server, small: &mut Server, bytes: &[u8], line: usize, place: &str) {
    let bad = std::str::from_utf8(bytes).err().map(|error| error.valid_up_to());
    let read = whole.ok("read_file", json!({"path": "f"}));
    assert!(read.payload().as_bytes() == &bytes[..bad.unwrap_or(bytes.len())], "{place}: {read:?}");
    assert_eq!(read.complete(), bad.is_none(), "{place}");
    if let (Some(cursor), Some(bad)) = (read.cursor(), bad) {
        let next = json!({"path": "f", "cursor": cursor});
        let text = whole.refused("not-text", "read_file", next);
        assert!(text.contains(&format!("byte {bad}, line {line}")), "{place}: {text}");
    }
    let lossy = whole.ok("read_file", json!({"path": "f", "lossy": true}));
    assert!(lossy.payload() == String::from_utf8_lossy(bytes), "{place}: lossy");
    assert_eq!(lossy.fact("sha256"), sha256(bytes), "{place}: lossy");
    let found = small.ok("search_text", json!({"query": "needle", "path": "f"}));
    let rows = found.rows().len() - 1;
    assert_eq!(rows, 2 - usize::from(bad.is_some()), "{place}: {found:?}");
    assert_eq!(found.number("lines not UTF-8"), u64::from(bad.is_some()), "{place}: {found:?}");
    let range = json!({"path": "f", "start_line": line - 1, "line_count": 3});
    let range = small.ok("read_file_range", range);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let expected = lines[line - 2..line + 1 - if bad.is_some() { 2 } else { 0 }].concat();
    assert_eq!(range.payload().as_bytes(), expected, "{place}: {range:?}");
    let next = if bad.is_some() { format!("start_line={line}") } else { String::new() };
    assert_eq!(range.fact("next"), next, "{place}: {range:?}");
    let at = json!({"path": "f", "start_line": line, "line_count": 1});
    assert_eq!(small.call("read_file_range", at).code() == "not-text", bad.is_some(), "{place}");
    // Tails that end just before the line, begin in it, and reach beyond it.
    let after = lines.len() - line;
    for count in [after, after + 1, after + 2] {
        let tail = whole.call("tail_file", json!({"path": "f", "last_lines": count}));
        let refused = bad.is_some() && count > after;
        assert_eq!(tail.code() == "not-text", refused, "{place}: last {count}: {tail:?}");
        let expected = lines[lines.len() - count..].concat();
        assert!(refused || tail.payload().as_bytes() == expected, "{place}: last {count}");
        let lossy = json!({"path": "f", "last_lines": count, "lossy": true});
        let lossy = whole.ok("tail_file", lossy);
        assert!(lossy.payload() == String::from_utf8_lossy(&expected), "{place}: last {count}");
    }
    let info = small.ok("get_file_info", json!({"path": "f"}));
    let judged = std::str::from_utf8(&bytes[..bytes.len().min(64 << 10)]);
    let is_bad = judged.is_err_and(|error| error.error_len().is_some());
    assert_eq!(info.text.contains("encoding: not UTF-8"), is_bad, "{place}: {info:?}");
}

#[test]
fn a_character_cut_by_the_end_of_the_file_is_bad() {
    let tree = Tree::new();
    let mut server = Server::new(&tree, &[WHOLE]);
    for sequence in [&b"\xc3"[..], b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0"] {
        for size in [0, 100, EDGES[0], EDGES[1], EDGES[2]] {
            let text = vec![b'z'; size.saturating_sub(sequence.len())];
            tree.write("f", [&text[..], sequence].concat());
            let read = server.call("read_file", json!({"path": "f"}));
            assert_eq!(read.code(), if text.is_empty() { "not-text" } else { "" }, "{read:?}");
            assert!(text.is_empty() || read.payload().len() == text.len(), "{read:?}");
            for (tool, more) in [
                ("read_file_range", json!({"start_line": 1, "line_count": 1})),
                ("tail_file", json!({"last_lines": 1})),
            ] {
                let mut arguments = more;
                arguments["path"] = json!("f");
                server.refused("not-text", tool, arguments);
            }
            let found = server.ok("search_text", json!({"query": "z", "path": "f"}));
            let long = text.len() > 64 << 10;
            assert_eq!(found.number("matches"), u64::from(long), "{found:?}");
            assert_eq!(found.number("lines not UTF-8"), u64::from(!long), "{found:?}");
        }
    }
}

#[test]
fn the_tail_of_a_long_line_begins_at_a_character() {
    let tree = Tree::new();
    for (name, text) in [("two", "\u{e9}"), ("three", "\u{20ac}"), ("four", "\u{1f600}")] {
        for shift in 0..4 {
            let text = text.repeat(200_000) + &"x".repeat(shift);
            tree.write(format!("{name}{shift}"), &text);
            for options in [&["--max-result-chars=1000"][..], &[]] {
                let mut server = Server::new(&tree, options);
                let arguments = json!({"path": format!("{name}{shift}"), "last_lines": 1});
                let tail = server.ok("tail_file", arguments);
                assert!(text.ends_with(tail.payload()), "{name}{shift}: {tail:?}");
                assert!(!tail.complete() && tail.payload().len() > 100, "{name}{shift}: {tail:?}");
            }
        }
    }
}

#[test]
fn odd_texts_are_read_as_they_are() {
    let tree = Tree::new();
    let late = |at| [vec![b'z'; at], b"\0needle\n".to_vec()].concat();
    let utf16: Vec<u8> = "\u{feff}needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16_be: Vec<u8> = "\u{feff}needle\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let utf32 = |wide: fn(u32) -> [u8; 4]| -> Vec<u8> {
        "\u{feff}needle\n".chars().flat_map(|c| wide(u32::from(c))).collect()
    };
    let texts: [(&str, Vec<u8>, &str); 17] = [
        ("empty", b"".to_vec(), ""),
        ("one byte", b"x".to_vec(), "no final newline"),
        ("one newline", b"\n".to_vec(), ""),
        ("only newlines", b"\n\n\n\n".to_vec(), ""),
        ("no final newline", b"a\nneedle".to_vec(), "no final newline"),
        ("crlf", b"a\r\nneedle\r\n".to_vec(), "line ends: CRLF"),
        ("lone cr", b"a\rneedle\rb".to_vec(), "no final newline"),
        ("last cr", b"needle\r".to_vec(), "no final newline"),
        ("crcrlf", b"needle\r\r\n".to_vec(), "line ends: CRLF"),
        ("bom", b"\xef\xbb\xbfneedle\n".to_vec(), "BOM"),
        ("separators", "a\u{2028}needle\u{2029}b\u{85}c\x0b\x0c\n".into(), ""),
        ("late nul", late(8_192), ""),
        ("early nul", late(8_191), "binary"),
        ("utf16", utf16, "UTF-16"),
        ("utf16be", utf16_be, "UTF-16"),
        ("utf32", utf32(u32::to_le_bytes), "UTF-32"),
        ("utf32be", utf32(u32::to_be_bytes), "UTF-32"),
    ];
    let mut server = Server::new(&tree, &[]);
    for (name, bytes, note) in &texts {
        tree.write(name, bytes);
        let read = |server: &mut Server, tool: &str, more: Value| {
            let mut arguments = more;
            arguments["path"] = json!(name);
            server.call(tool, arguments)
        };
        let all = [
            read(&mut server, "read_file", json!({})),
            read(&mut server, "read_file_range", json!({"start_line": 1, "line_count": 99})),
            read(&mut server, "tail_file", json!({"last_lines": 99})),
        ];
        let binary = *note == "binary" || note.starts_with("UTF-");
        let found = read(&mut server, "search_text", json!({"query": "needle"}));
        assert_eq!(found.number("binary"), u64::from(binary), "{name}: {found:?}");
        let lines = if binary { Vec::new() } else { naive_lines(bytes, "needle") };
        let rows: Vec<_> = found.payload().split_terminator('\n').skip(1).collect();
        let long = *name == "late nul";
        assert!(long || lines.is_empty() && rows.is_empty() || rows == lines, "{found:?}");
        assert_eq!(found.number("matches") > 0, !lines.is_empty() || long, "{found:?}");
        for reply in all {
            assert_eq!(reply.code() == "not-text", binary, "{name}: {reply:?}");
            assert!(binary || reply.payload().as_bytes() == bytes, "{name}: {reply:?}");
            assert!(!binary || reply.text.contains(&note.replace("binary", "")), "{reply:?}");
            let notes = ["no final newline", "line ends: CRLF", "BOM"];
            let seen: Vec<_> = notes.into_iter().filter(|n| reply.header().contains(n)).collect();
            let expected: Vec<_> = notes.into_iter().filter(|n| n == note).collect();
            assert!(binary || seen == expected, "{name}: {reply:?}");
        }
    }
}

/// The rows of a search in one short text.
fn naive_lines(bytes: &[u8], query: &str) -> Vec<String> {
    let text = std::str::from_utf8(bytes).unwrap();
    let lines = text.split_inclusive('\n').enumerate().filter(|(_, line)| line.contains(query));
    lines
        .map(|(at, line)| {
            let line = line.strip_suffix('\n').unwrap_or(line);
            (at + 1, line.strip_suffix('\r').unwrap_or(line))
        })
        .filter(|(_, line)| line.len() <= 500)
        .map(|(number, line)| format!("{number}:{line}"))
        .collect()
}

#[test]
fn a_line_end_that_a_page_splits_is_noted() {
    let tree = Tree::of(&[]);
    let server = &mut Server::new(&tree, &["--max-result-chars=1000"]);
    let mut split = 0;
    for length in 560..700 {
        tree.write("f", format!("{}\r\nbbb", "x".repeat(length)));
        let first = server.ok("read_file", json!({"path": "f"}));
        let Some(cursor) = first.cursor() else { continue };
        let rest = server.ok("read_file", json!({"path": "f", "cursor": cursor}));
        assert!(
            first.header().contains("line ends: CRLF") || rest.header().contains("line ends: CRLF"),
            "{length}"
        );
        split += usize::from(first.payload().ends_with('\r'));
    }
    assert!(split > 0, "no page ended between CR and LF");
}
