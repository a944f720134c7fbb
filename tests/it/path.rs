//! Paths: what is accepted, what is refused, and what a refusal says.

use readonly_mcp::{RelPath, ToolError};

/// `text` parses to `want`, or is refused with a sentence that ends in `want` after `!`.
#[track_caller]
fn check(text: &str, want: &str) {
    let got = match RelPath::parse(text) {
        Ok(path) => path.as_str().to_owned(),
        Err(error) => format!("!{error}"),
    };
    match want.strip_prefix('!') {
        Some(end) => {
            assert!(got.starts_with("!invalid-argument: "), "{text:?}: {got}");
            assert!(got.ends_with(end), "{text:?}: {got}");
        }
        None => assert_eq!(got, want, "{text:?}"),
    }
}

/// A path argument: whether it is absolute, and what it names.
fn client_path(text: &str) -> Result<(bool, RelPath), ToolError> {
    match RelPath::parse_absolute(text)? {
        Some(path) => Ok((true, path)),
        None => RelPath::parse(text).map(|path| (false, path)),
    }
}

/// `text` parses to `/...` when absolute, to a relative path otherwise, or is refused with a
/// sentence that begins with what follows `!`.
#[track_caller]
fn check_client(text: &str, want: &str) {
    let got = match client_path(text) {
        Ok((true, path)) => format!("/{}", path.as_str()),
        Ok((false, path)) => path.as_str().to_owned(),
        Err(error) => format!("!{error}"),
    };
    if want.starts_with('!') {
        assert!(got.starts_with(want), "{text:?}: {got}");
    } else {
        assert_eq!(got, want, "{text:?}");
    }
}

#[track_caller]
fn path(text: &str) -> RelPath {
    RelPath::parse(text).expect("a good path")
}

#[test]
fn accepted() {
    check("", "");
    check(".", "");
    check("./", "");
    check("././/.", "");
    check("a", "a");
    check("a/", "a");
    check("./a//b/./c/", "a/b/c");
    check(".hidden/...", ".hidden/...");
    check("..a/a../.a.", "..a/a../.a.");
    check(" a / b ", " a / b ");
    check("C:x", "C:x");
    check("CD:/x", "CD:/x");
    check("1:/x", "1:/x");
    check("a/C:/x", "a/C:/x");
    check("~/a", "~/a");
    check("%2e%2e/a", "%2e%2e/a");
    check("ÄÖ/日本/🦀", "ÄÖ/日本/🦀");
    check("a\nb", "a\nb");
    check(&"a".repeat(4_096), &"a".repeat(4_096));
}

#[test]
fn refused_with_the_path_to_use() {
    check("src/../a.md", "!; use \"a.md\"");
    check("src/..", "!; use \".\"");
    check("a/b/c/../../d", "!; use \"a/d\"");
    check("a/./b//../c", "!; use \"a/c\"");
    check("src\\a.md", "!\"src\\\\a.md\" holds a backslash; use \"src/a.md\"");
    check(".\\a\\..\\b\\", "!; use \"b\"");
    check(&"./".repeat(2_048), "");
    check(&format!("{}a", "./".repeat(2_048)), "! is longer than 4,096 bytes; use \"a\"");
}

#[test]
fn refused_without_one() {
    let advice = "!use a path from the top, with / between names, as list_directory shows it";
    check("..", advice);
    check("../x", advice);
    check("a/../../a", advice);
    check("..\\x", advice);
    check("a\0b", advice);
    check("a/../b\0", advice);
    check("a/../C:/x", advice);
    check("/a", advice);
    check(&"a".repeat(4_097), advice);
    check(&"é/".repeat(2_000), advice);
}

#[test]
fn absolute_text_is_never_echoed() {
    for text in [
        "/srv/private/../x",
        "/srv/private\\x",
        "/srv/private\0",
        "C:/private",
        "./c:/private",
        "c:\\private\\..",
        "\\\\server\\private",
        "\\private",
        "file:///private/..",
        "FILE:///private%00",
        "file:///private%5Cx",
        "file:///private%2e%2E/%2e%2E/x",
        "file:///private%zz",
        "file:///private%",
        "file:///private%a",
        "file:///private%ff",
        "file://private/x",
        "file://private",
    ] {
        let sentence = client_path(text).expect_err(text).to_string();
        assert!(!sentence.contains("private"), "{text:?}: {sentence}");
        let sentence = RelPath::parse(text).map_or_else(|e| e.to_string(), |_| String::new());
        assert!(!sentence.contains("private"), "{text:?}: {sentence}");
    }
}

#[test]
fn long_text_is_cut_in_a_refusal() {
    let sentence = RelPath::parse(&"../".repeat(100_000)).expect_err("long").to_string();
    assert!(sentence.len() < 1_000, "{} bytes", sentence.len());
}

#[test]
fn what_a_client_may_send() {
    check_client("a/b", "a/b");
    check_client("", "");
    check_client("/", "/");
    check_client("//srv/./a/", "/srv/a");
    check_client("/c:/a", "/c:/a");
    check_client("file:///srv/x%20y", "/srv/x y");
    check_client("File://LocalHost/srv/%C3%A9", "/srv/é");
    check_client("file:///srv/%2541", "/srv/%41");
    check_client("file:///srv%2Fa", "/srv/a");
    check_client("file:///a?b#c", "/a?b#c");
    check_client("file://", "/");
    check_client("file:/a", "/a");
    check_client("https://a/b", "https:/a/b");
    check_client("file://elsewhere/a", "!path-excluded: ");
    check_client("file:///%", "!invalid-argument: ");
    check_client("file:///%4", "!invalid-argument: ");
    check_client("file:///%+1", "!invalid-argument: ");
    check_client("file:///%é", "!invalid-argument: ");
    check_client("file:///%ff", "!invalid-argument: ");
    check_client("file:///%00", "!invalid-argument: ");
    check_client("file:///a/%2e%2e/b", "!invalid-argument: ");
    check_client("/a/../b", "!invalid-argument: ");
    check_client("/a\\b", "!invalid-argument: ");
    check_client(&"/a".repeat(2_049), "!invalid-argument: ");
    check_client("c:/a", "!invalid-argument: ");
}

/// Eight lines that say what a relative path is.
fn oracle(text: &str) -> Option<String> {
    if text.starts_with('/') || text.contains(['\\', '\0']) {
        return None;
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return None;
    }
    Some(parts.join("/"))
}

/// All 19,531 strings of up to six of `a . / NUL \`.
#[test]
fn agrees_with_the_oracle() {
    let mut texts = vec![String::new()];
    let mut checked = 0;
    for _ in 0..=6 {
        for text in &texts {
            checked += 1;
            match RelPath::parse(text) {
                Ok(path) => {
                    assert_eq!(Some(path.as_str()), oracle(text).as_deref(), "{text:?}");
                    assert_eq!(RelPath::parse(path.as_str()), Ok(path.clone()), "{text:?}");
                    let mut built = RelPath::default();
                    for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
                        built = built.child(name.as_bytes()).expect("a name");
                    }
                    assert_eq!(built, path, "{text:?}");
                }
                Err(error) => {
                    assert_eq!(oracle(text), None, "{text:?}");
                    // What a refusal offers is accepted: nobody is sent in a circle.
                    if let Some((_, hint)) = error.sentence.rsplit_once("; use \"") {
                        path(hint.trim_end_matches('"'));
                    }
                }
            }
        }
        let longer = |text: &String| ["a", ".", "/", "\0", "\\"].map(|end| format!("{text}{end}"));
        texts = texts.iter().flat_map(longer).collect();
    }
    assert_eq!(checked, 19_531);
}

#[test]
fn names_from_the_disk() {
    let top = RelPath::default();
    assert_eq!(top.child(b"a b").as_ref().map(RelPath::as_str), Some("a b"));
    assert_eq!(path("a").child("é".as_bytes()).as_ref().map(RelPath::as_str), Some("a/é"));
    for name in [&b"\xff"[..], b"a\\b", b"", b".", b"..", b"a/b", b"a\0", b"c:", b"a\xed\xa0\x80"] {
        assert_eq!(top.child(name), None, "{name:?}");
    }
    assert!(path("a").child(b"c:").is_some());
    let deep = path(&"a".repeat(4_094));
    assert!(deep.child(b"b").is_some());
    assert_eq!(deep.child(b"bc"), None);
}

#[test]
fn parts() {
    let (top, abc) = (RelPath::default(), path("a/b/c"));
    assert_eq!((abc.name(), path("a").name(), top.name()), (Some("c"), Some("a"), None));
    assert_eq!((abc.parent(), path("a").parent()), (Some(path("a/b")), Some(RelPath::default())));
    assert_eq!(top.parent(), None);
    assert!(top.is_top() && !abc.is_top());
}
