//! Globs: what each matches, a naive twin that agrees, and patterns built to be slow.

use std::time::{Duration, Instant};

use readonly_mcp::Glob;

#[track_caller]
fn glob(pattern: &str) -> Glob {
    Glob::new(pattern).unwrap_or_else(|why| panic!("{pattern:?} {why}"))
}

/// The pattern matches every path of the first list and none of the second.
#[track_caller]
fn check(pattern: &str, matched: &[&str], unmatched: &[&str]) {
    let glob = glob(pattern);
    for path in matched {
        assert!(glob.matches(path), "{pattern:?} does not match {path:?}");
        assert!(glob.covers(path), "{pattern:?} does not cover {path:?}");
        assert!(glob.covers(&format!("{path}/x/y")), "{pattern:?} does not cover below {path:?}");
    }
    for path in unmatched {
        assert!(!glob.matches(path), "{pattern:?} matches {path:?}");
    }
}

#[track_caller]
fn refused(pattern: &str, want: &str) {
    let why = Glob::new(pattern).expect_err(pattern);
    assert!(why.contains(want), "{pattern:?}: {why}");
}

#[test]
fn without_a_slash_the_base_name_is_matched() {
    check("*.rs", &["a.rs", "src/a.rs", "a/b/.rs", ".rs"], &["a.rs/b", "a.rsx", "rs", "", "a.r"]);
    check("a", &["a", "b/a", "b/c/a"], &["ab", "ba", "a/b", "", "b"]);
    check("a/", &["a", "b/a"], &["a/b", "ab"]);
    check("*", &["a", ".a", "a/b"], &[""]);
    check("**", &["a", "a/b"], &[""]);
    check("a**b", &["ab", "axxb", "x/ab"], &["a/b", "b"]);
    check("?", &["a", ".", "b/é", "🦀"], &["", "ab", "b/ab"]);
    check("a,b", &["a,b"], &["a", "b"]);
}

#[test]
fn with_a_slash_it_is_anchored() {
    check("a/b", &["a/b"], &["b", "c/a/b", "a/b/c", "a/bc"]);
    check("/a", &["a"], &["b/a", "ab"]);
    check("./a", &["a"], &["b/a"]);
    check(".//./a/", &["a"], &["b/a"]);
    check("./.a", &[".a"], &["b/.a"]);
    check("a/*", &["a/b", "a/.b"], &["a", "a/b/c", "b/a/c"]);
    check("*/b", &["a/b"], &["b", "a/a/b"]);
    check("a/?/c", &["a/b/c"], &["a/c", "a//c", "a/bb/c"]);
    check("{a/b,c}", &["a/b", "c"], &["x/c", "b", "a"]);
}

#[test]
fn two_stars_cross_directories() {
    check("a/**", &["a/b", "a/b/c", "a/.b/c"], &["a", "b/a/c", "ab/c"]);
    check("**/a", &["a", "b/a", "b/c/a"], &["ba", "b/ba", "a/b"]);
    check("**/a/b", &["a/b", "c/a/b"], &["ca/b", "b"]);
    check("{**,x}/a", &["a", "b/a", "x/a"], &["ba", "xa"]);
    check("a/**/b", &["a/b", "a/c/b", "a/c/d/b"], &["ab", "a/cb", "a/bc", "b"]);
    check("a/**b", &["a/b", "a/cb", "a/c/db"], &["b", "ab"]);
    check("a**/b", &["a/b", "ac/b", "ac/d/b"], &["ab", "b"]);
    check("a/***/b", &["a/b", "a/c/d/b"], &["ab"]);
    check("**/*.{rs,md}", &["a.rs", "b/c.md"], &["a.rst", "md"]);
    check("x{a/,}**/b", &["xa/b", "xa/c/b", "x/b", "xc/b"], &["xb", "xab"]);
}

#[test]
fn braces() {
    check("{a,b}", &["a", "b", "c/a"], &["", "ab", "{a,b}"]);
    check("*.{rs,m{d,k}}", &["a.rs", "a.md", "a.mk"], &["a.m", "a.d"]);
    check("a{,b,}c", &["ac", "abc"], &["abbc", "a"]);
    check("a{}b{c}", &["abc"], &["ab"]);
    check("{a,b/**}/c", &["a/c", "b/x/c", "b/x/y/c"], &["b/c/d", "c", "x/a/c"]);
    check("{a/,b/}", &["a", "b"], &["x/a", "ab"]);
    check("c/{a/,b/c}", &["c/a", "c/b/c"], &["c", "c/b"]);
    check("{{{{{{{{a}}}}}}}}", &["a"], &["b"]);
    check("{abc,c}", &["abc", "c"], &["bc", "ab"]);
    check("{x,}.rs", &["x.rs", ".rs"], &["rs", "y.rs"]);
}

#[test]
fn everything_else_is_literal() {
    check("src/[id]/page.ts", &["src/[id]/page.ts"], &["src/i/page.ts", "src/id/page.ts"]);
    check("[a-z]!", &["[a-z]!"], &["a!", "b"]);
    check("a\\*", &["a\\b"], &["a*"]);
    check("(a|b)+.$", &["(a|b)+.$"], &["a"]);
    check("\0", &["\0"], &["a", "b"]);
}

#[test]
fn case_is_ignored() {
    check("README.md", &["readme.MD", "a/ReadMe.md"], &["readme"]);
    check("*.RS", &["a.rs", "A.Rs"], &["a.r"]);
    check("Ärger/ẞ*", &["äRGER/ßx", "ÄRGER/ẞ"], &["arger/ß", "ärger/ss"]);
    check("ΣΊΣΥΦΟΣ", &["σίσυφοσ"], &["ς"]);
    // The Kelvin sign folds to k, the dotted capital I to two characters.
    check("*.key", &["a.\u{212A}ey", "a.KEY"], &["a.ey"]);
    check("\u{212A}.rs", &["k.rs", "K.RS"], &[".rs"]);
    check("İx", &["i\u{307}X", "İX"], &["ix", "Ix"]);
    check("*\u{307}", &["İ"], &["i", "I"]);
    check("日本*", &["日本語"], &["日"]);
}

#[test]
fn covers_what_lies_below_a_match() {
    for (pattern, path, want) in [
        ("a", "a/b/c", true),
        ("b", "a/b/c", true),
        ("a/b", "a/b/c", true),
        ("a/b", "x/a/b/c", false),
        ("a/*", "a/b/c/d", true),
        ("a/*", "a", false),
        ("*.d", "x.d/y/z", true),
        ("*.d", "x/y", false),
        ("{a/,b}", "a/c", true),
        ("a/**", "a", false),
        ("a", "", false),
        ("/**", "", false),
    ] {
        assert_eq!(glob(pattern).covers(path), want, "{pattern:?} {path:?}");
    }
}

#[test]
fn bad_patterns_are_refused() {
    refused("", "is empty");
    refused("/", "is empty");
    refused("./", "is empty");
    refused(".//.///", "is empty");
    refused(&"a".repeat(1_025), "is 1025 bytes long; at most 1,024 are allowed");
    refused(&"é".repeat(513), "is 1026 bytes long");
    refused("{", "has a \"{\" without its \"}\"");
    refused("a{b,c", "has a \"{\" without its \"}\"");
    refused("{{a}", "has a \"{\" without its \"}\"");
    refused("}", "has a \"}\" without its \"{\"");
    refused("{a}}", "has a \"}\" without its \"{\"");
    refused("{{{{{{{{{a}}}}}}}}}", "deeper than 8");
    refused(&"{".repeat(1_024), "deeper than 8");
    glob(&"a".repeat(1_024));
    glob(&"İ".repeat(512));
    glob(&"{a}".repeat(341));
}

/// The naive twin's reading of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Char(char),
    One,
    Star,
    Any,
    Folders,
    Open,
    Comma,
    Close,
}

fn tokens(body: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), body);
    while let Some(first) = rest.chars().next() {
        let stars = rest.len() - rest.trim_start_matches('*').len();
        let (token, length) = match first {
            '*' if stars == 1 => (Token::Star, 1),
            '*' if rest[stars..].starts_with('/') => (Token::Folders, stars + 1),
            '*' => (Token::Any, stars),
            '?' => (Token::One, 1),
            '{' => (Token::Open, 1),
            '}' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            _ => (Token::Char(first), first.len_utf8()),
        };
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

/// Every way to choose alternatives, written out; none for an unbalanced brace.
fn expansions(tokens: &[Token]) -> Option<Vec<Vec<Token>>> {
    let Some(open) = tokens.iter().position(|token| *token == Token::Open) else {
        let commas = |token: &Token| if *token == Token::Comma { Token::Char(',') } else { *token };
        let plain = tokens.iter().map(commas).collect();
        return (!tokens.contains(&Token::Close)).then(|| vec![plain]);
    };
    if tokens[..open].contains(&Token::Close) {
        return None;
    }
    let (mut depth, mut starts) = (0, vec![open + 1]);
    let end = tokens.iter().enumerate().skip(open).find_map(|(index, token)| {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::Comma if depth == 1 => starts.push(index + 1),
            _ => (),
        }
        (depth == 0).then_some(index)
    })?;
    let commas = |token: &Token| if *token == Token::Comma { Token::Char(',') } else { *token };
    let before: Vec<Token> = tokens[..open].iter().map(commas).collect();
    let mut all = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let stop = starts.get(index + 1).map_or(end, |next| next - 1);
        let chosen = [&before, &tokens[*start..stop], &tokens[end + 1..]].concat();
        all.extend(expansions(&chosen)?);
    }
    Some(all)
}

/// Backtracking recursion; `start` is whether a component begins here.
fn walk(pattern: &[Token], path: &[char], start: bool) -> bool {
    let Some((token, rest)) = pattern.split_first() else { return path.is_empty() };
    let after = |taken: usize| taken > 0 && path[taken - 1] == '/' || taken == 0 && start;
    let parts = 0..=path.len();
    match token {
        Token::Char(own) => path.first() == Some(own) && walk(rest, &path[1..], *own == '/'),
        Token::One => path.first().is_some_and(|c| *c != '/') && walk(rest, &path[1..], false),
        Token::Star => {
            let name = path.iter().take_while(|c| **c != '/').count();
            (0..=name).any(|taken| walk(rest, &path[taken..], after(taken)))
        }
        Token::Any => parts.into_iter().any(|taken| walk(rest, &path[taken..], after(taken))),
        Token::Folders => parts.into_iter().any(|taken| {
            (taken > 0 && path[taken - 1] == '/' || taken == 0 && start)
                && walk(rest, &path[taken..], true)
        }),
        Token::Open | Token::Comma | Token::Close => false,
    }
}

/// The naive twin: expands braces, backtracks, knows no limits.
struct Twin {
    anchored: bool,
    expanded: Vec<Vec<Token>>,
}

impl Twin {
    fn new(pattern: &str) -> Option<Self> {
        let mut body = pattern.trim_end_matches('/');
        let anchored = body.contains('/');
        while let Some(rest) = body.strip_prefix('/').or_else(|| body.strip_prefix("./")) {
            body = rest;
        }
        if body.is_empty() {
            return None;
        }
        let mut expanded = expansions(&tokens(body))?;
        for tokens in &mut expanded {
            // `**` and the `/` behind it belong together across the edge of a brace too.
            while let Some(at) =
                tokens.windows(2).position(|pair| matches!(pair, [Token::Any, Token::Char('/')]))
            {
                tokens.splice(at..at + 2, [Token::Folders]);
            }
            while let Some(Token::Char('/') | Token::Folders) = tokens.last() {
                // Without its trailing slash, `**/` is `**`.
                if tokens.pop() == Some(Token::Folders) {
                    tokens.push(Token::Any);
                }
            }
        }
        Some(Self { anchored, expanded })
    }

    fn matches(&self, path: &str) -> bool {
        let text = if self.anchored { path } else { path.rsplit('/').next().unwrap_or("") };
        let text: Vec<char> = text.chars().collect();
        !text.is_empty() && self.expanded.iter().any(|tokens| walk(tokens, &text, true))
    }

    fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(slash, _)| slash).chain([path.len()]);
        ends.into_iter().any(|end| self.matches(&path[..end]))
    }
}

#[track_caller]
fn compare(pattern: &str, paths: &[String]) -> bool {
    let (glob, twin) = (Glob::new(pattern), Twin::new(pattern));
    assert_eq!(glob.is_ok(), twin.is_some(), "{pattern:?}");
    let (Ok(glob), Some(twin)) = (glob, twin) else { return false };
    for path in paths {
        assert_eq!(glob.matches(path), twin.matches(path), "{pattern:?} matches {path:?}");
        assert_eq!(glob.covers(path), twin.covers(path), "{pattern:?} covers {path:?}");
    }
    true
}

/// All strings of `1..=longest` characters.
fn strings(alphabet: &str, longest: usize) -> Vec<String> {
    let (mut all, mut last) = (Vec::new(), vec![String::new()]);
    for _ in 0..longest {
        last = last
            .iter()
            .flat_map(|text| alphabet.chars().map(move |c| format!("{text}{c}")))
            .collect();
        all.extend_from_slice(&last);
    }
    all
}

/// All paths over `a b /` of up to `longest` characters.
fn paths(longest: usize) -> Vec<String> {
    let mut paths = strings("ab/", longest);
    paths.retain(|path| !path.starts_with('/') && !path.ends_with('/') && !path.contains("//"));
    paths
}

#[test]
fn agrees_with_the_naive_twin_exhaustively() {
    let (short, long) = (paths(4), paths(6));
    let mut good = 0;
    for pattern in strings("a*?{,}/", 5) {
        good += usize::from(compare(&pattern, if pattern.len() < 5 { &long } else { &short }));
    }
    assert!(good > 5_000, "{good} good patterns");
}

/// A seeded generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).expect("small")
    }

    fn text(&mut self, pieces: &[&str], longest: usize) -> String {
        (0..=self.below(longest)).map(|_| pieces[self.below(pieces.len())]).collect()
    }
}

#[test]
fn agrees_with_the_naive_twin_at_random() {
    let mut random = Random(7);
    let pieces =
        ["a", "b", "a", "b", "/", "*", "**", "**/", "?", "{", "{", ",", "}", "}", "{a,", "b}"];
    let mut good = 0;
    for _ in 0..20_000 {
        let pattern = random.text(&pieces, 14);
        let paths: Vec<String> = (0..12)
            .map(|_| random.text(&["a", "b", "ab", "/a", "/b", "a/"], 7))
            .map(|path| path.split('/').filter(|c| !c.is_empty()).collect::<Vec<_>>().join("/"))
            .collect();
        good += usize::from(compare(&pattern, &paths));
    }
    assert!(good > 2_000, "{good} good patterns");
}

/// Sets of more than one word: a prefix and a suffix of letters put the twin's pattern across the
/// edges between words.
#[test]
fn long_patterns_agree_with_short_ones() {
    let mut random = Random(8);
    let pieces = ["a", "b", "/", "*", "**", "**/", "?", "{a,b}", "{,a/b}", "{a*,**/b}"];
    for _ in 0..2_000 {
        let middle = random.text(&pieces, 6);
        let path = random.text(&["a", "b", "/a", "/b"], 6);
        let (left, right) = ("x".repeat(random.below(140)), "y".repeat(random.below(140)));
        let short = glob(&format!("./x{middle}y")).matches(&format!("x{path}y"));
        let long = glob(&format!("./x{left}{middle}{right}y"));
        assert_eq!(long.matches(&format!("x{left}{path}{right}y")), short, "{middle:?} {path:?}");
    }
}

#[test]
fn no_pattern_hangs() {
    let patterns = [
        "*a".repeat(512),
        "**a".repeat(341),
        "{a,b}".repeat(100),
        "{,a}".repeat(256),
        "{a,aa}".repeat(170),
        "{*,**}".repeat(170),
        "{a*,{b*,{c*,**/}}}".repeat(56),
        "**/a".repeat(256),
        "?".repeat(1_024),
        format!("{{{}}}", ",".repeat(1_022)),
    ];
    let paths = ["a".repeat(4_095) + "c", "a/".repeat(2_047) + "c", "É".repeat(2_047) + "c"];
    let begin = Instant::now();
    for pattern in &patterns {
        let glob = glob(pattern);
        for path in &paths {
            let _verdicts = (glob.matches(path), glob.covers(path));
        }
    }
    // Far more than it takes unoptimised; one that backtracks takes years.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}
