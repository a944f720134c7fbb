//! `read_file_range` and `tail_file` against naive twins; see [`crate::twins`].

use serde_json::{Value, json};

use crate::support::{Random, Server, WHOLE};
use crate::twins::{forest, lines, rounds};

#[test]
fn ranges_and_tails_are_their_twins() {
    let mut random = Random::new();
    for _ in 0..rounds() {
        let (tree, files) = forest(&mut random);
        let mut whole = Server::new(&tree, &[WHOLE]);
        let mut small = Server::new(&tree, &["--max-result-chars=1000"]);
        for (path, bytes) in &files {
            let (path, lines) = (path.join("/"), lines(bytes));
            let start = 1 + random.below(lines.len() + 3);
            let count = 1 + random.below(lines.len() + 3);
            let (numbers, lossy) = (random.below(2) == 0, random.below(2) == 0);
            let wanted: Vec<&[u8]> = lines.iter().skip(start - 1).take(count).copied().collect();
            let good = wanted.iter().position(|line| std::str::from_utf8(line).is_err() && !lossy);
            let shown: String = (start..)
                .zip(&wanted[..good.unwrap_or(wanted.len())])
                .map(|(number, line)| {
                    let prefix = if numbers { format!("{number}|") } else { String::new() };
                    prefix + &String::from_utf8_lossy(line)
                })
                .collect();
            let arguments = json!({"path": path, "start_line": start, "line_count": count,
                "line_numbers": numbers, "lossy": lossy});
            let range = whole.call("read_file_range", arguments.clone());
            if good == Some(0) {
                assert_eq!(range.code(), "not-text", "{arguments}: {range:?}");
            } else {
                assert!(range.payload() == shown && range.code() == "", "{arguments}: {range:?}");
                assert_eq!(range.complete(), good.is_none(), "{arguments}: {range:?}");
                let next = good.map(|good| format!("start_line={}", start + good));
                assert_eq!(range.fact("next"), next.unwrap_or_default(), "{arguments}");
                let total = format!("0 of {}", lines.len());
                let past = lines.len() < start && !lines.is_empty();
                assert!(!past || range.fact("lines") == total, "{arguments}: {range:?}");
                assert_eq!(follow(&mut small, &arguments, start + count), shown, "{arguments}");
            }
            check_tail(&mut whole, &mut small, &mut random, &path, bytes);
        }
    }
}

/// A range joined from small pages, by what each says comes next.
fn follow(server: &mut Server, arguments: &Value, end: usize) -> String {
    let (mut all, mut arguments) = (String::new(), arguments.clone());
    loop {
        let page = server.call("read_file_range", arguments.clone());
        if page.code() == "not-text" {
            return all;
        }
        all.push_str(page.payload());
        let Some(next) = page.fact("next").strip_prefix("start_line=") else {
            if page.fact("next") == "read_file" {
                // One line exceeds a page: its rest is read with the cursor, then the range goes on.
                let mut cursor = page.fact("cursor").to_owned();
                let mut rest = json!({"path": arguments["path"], "lossy": arguments["lossy"],
                    "line_numbers": arguments["line_numbers"]});
                let line = arguments["start_line"].as_u64().unwrap();
                loop {
                    rest["cursor"] = json!(cursor);
                    let page = server.call("read_file", rest.clone());
                    let text = page.payload();
                    if let Some(at) = text.find('\n') {
                        all.push_str(&text[..=at]);
                        break;
                    }
                    all.push_str(text);
                    match page.cursor() {
                        Some(next) => cursor = next.to_owned(),
                        None => break,
                    }
                }
                arguments["start_line"] = json!(line + 1);
                arguments["line_count"] = json!(end.saturating_sub(line as usize + 1));
                if arguments["line_count"] == 0 {
                    return all;
                }
                continue;
            }
            return all;
        };
        let next: usize = next.parse().unwrap();
        assert!(next as u64 > arguments["start_line"].as_u64().unwrap(), "{page:?}");
        arguments["start_line"] = json!(next);
        arguments["line_count"] = json!(end - next);
    }
}

fn check_tail(
    whole: &mut Server,
    small: &mut Server,
    random: &mut Random,
    path: &str,
    bytes: &[u8],
) {
    let lines = lines(bytes);
    let (count, lossy) = (1 + random.below(lines.len() + 3), random.below(2) == 0);
    let from = lines.len().saturating_sub(count);
    let wanted = lines[from..].concat();
    let bad = std::str::from_utf8(&wanted).is_err();
    let arguments = json!({"path": path, "last_lines": count, "lossy": lossy});
    let tail = whole.call("tail_file", arguments.clone());
    assert_eq!(tail.code() == "not-text", bad && !lossy, "{arguments}: {tail:?}");
    if bad && !lossy {
        return;
    }
    let shown = String::from_utf8_lossy(&wanted);
    assert!(tail.payload() == shown && tail.complete(), "{arguments}: {tail:?}");
    let part = small.ok("tail_file", arguments.clone());
    assert!(shown.ends_with(part.payload()), "{arguments}: {part:?}");
    assert_eq!(part.complete(), part.payload() == shown, "{arguments}: {part:?}");
    // What a small page leaves out is exactly where it says.
    if let Some(next) = part.fact("next").strip_prefix("read_file_range ") {
        let number = |key| {
            let (_, digits) = next.split_once(key).unwrap();
            digits.split(' ').next().unwrap().parse::<usize>().unwrap()
        };
        let (start, count) = (number("start_line="), number("line_count="));
        assert_eq!(start, from + 1, "{arguments}: {part:?}");
        let rest: Vec<u8> =
            lines.iter().skip(start - 1).take(count).flat_map(|line| line.to_vec()).collect();
        let rest = String::from_utf8_lossy(&rest).into_owned();
        let cut = shown.len() - part.payload().len();
        assert!(rest.len() >= cut && shown.starts_with(&rest), "{arguments}: {part:?}");
    } else {
        assert!(part.complete(), "{arguments}: {part:?}");
    }
}
