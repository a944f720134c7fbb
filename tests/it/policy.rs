//! Policy: every default rule, how the options interplay, and what a refusal says.

use readonly_mcp::{Glob, Policy, RelPath, Scope, Withheld};

fn globs(patterns: &[&str]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::new(pattern).expect(pattern)).collect()
}

fn defaults() -> Policy {
    Policy::new(Vec::new(), Vec::new(), Vec::new(), true)
}

fn with(include: &[&str], exclude: &[&str], allow: &[&str]) -> Policy {
    Policy::new(globs(include), globs(exclude), globs(allow), true)
}

#[track_caller]
fn path(text: &str) -> RelPath {
    RelPath::parse(text).expect("a good path")
}

/// What is decided about `text`: `served`, `not included`, a default rule, or `!` and an exclude.
#[track_caller]
fn check(policy: &Policy, text: &str, want: &str) {
    let got = match policy.decide(&path(text)) {
        Ok(scope) if scope.included => "served".to_owned(),
        Ok(_) => "not included".to_owned(),
        Err(Withheld::Secret(rule)) => rule.to_owned(),
        Err(Withheld::Excluded(glob)) => format!("!{glob}"),
        Err(Withheld::NotIncluded) => panic!("a verdict for callers only"),
    };
    assert_eq!(got, want, "{text:?}");
}

/// A name for each default rule, and the rule.
const SECRETS: [(&str, &str); 49] = [
    (".env", ".env"),
    (".env.local", ".env.*"),
    (".envrc", ".envrc"),
    (".netrc", ".netrc"),
    (".git-credentials", ".git-credentials"),
    (".npmrc", ".npmrc"),
    (".pypirc", ".pypirc"),
    (".pgpass", ".pgpass"),
    (".htpasswd", ".htpasswd"),
    ("kubeconfig", "kubeconfig"),
    ("service-account.json", "service-account.json"),
    ("id_rsa", "id_rsa"),
    ("id_dsa", "id_dsa"),
    ("id_ecdsa", "id_ecdsa"),
    ("id_ed25519", "id_ed25519"),
    ("id_ecdsa_sk", "id_ecdsa_sk"),
    ("id_ed25519_sk", "id_ed25519_sk"),
    ("runtime/settings.json", "runtime/settings.json"),
    ("token", "token*"),
    ("tokenizer.rs", "token*"),
    ("secrets", "secret*"),
    ("credentials.yml", "credential*"),
    ("a.pem", "*.pem"),
    ("a.b.key", "*.key"),
    ("a.crt", "*.crt"),
    ("a.p12", "*.p12"),
    ("a.pfx", "*.pfx"),
    ("a.jks", "*.jks"),
    ("a.keystore", "*.keystore"),
    ("a.kdbx", "*.kdbx"),
    ("a.p8", "*.p8"),
    ("a.der", "*.der"),
    ("a.csr", "*.csr"),
    ("a.ppk", "*.ppk"),
    ("a.asc", "*.asc"),
    ("a.gpg", "*.gpg"),
    ("a.db", "*.db"),
    ("a.sqlite", "*.sqlite"),
    ("a.sqlite3", "*.sqlite3"),
    ("a.bak", "*.bak"),
    (".backup", "*.backup"),
    (".git", ".git"),
    (".ssh", ".ssh"),
    (".aws", ".aws"),
    (".kube", ".kube"),
    (".docker", ".docker"),
    (".gnupg", ".gnupg"),
    (".env.", ".env.*"),
    ("secret.pem", "secret*"),
];

#[test]
fn every_default_rule_in_any_case_at_any_depth() {
    let policy = defaults();
    for (name, rule) in SECRETS {
        let title: String = name
            .char_indices()
            .map(|(index, c)| if index % 2 == 0 { c.to_ascii_uppercase() } else { c })
            .collect();
        for name in [name, &name.to_uppercase(), &title] {
            check(&policy, name, rule);
            check(&policy, &format!("a/b.c/{name}"), rule);
            check(&policy, &format!("é/{name}"), rule);
            check(&policy, &format!("{name}/a/b"), rule);
        }
    }
    // The Kelvin sign folds to k.
    check(&policy, "\u{212A}UBECONFIG", "kubeconfig");
    check(&policy, "é.\u{212A}ey", "*.key");
    check(&policy, "To\u{212A}en_é", "token*");
}

#[test]
fn names_that_only_look_like_secrets_are_served() {
    let policy = defaults();
    for name in [
        "env",
        ".environment",
        ".env-sample",
        "a.env",
        "netrc",
        ".netrc2",
        "id_rsa.pub",
        "my_id_rsa",
        "settings.json",
        "runtime",
        "xruntime/settings.json",
        "runtime/settings.jsonc",
        "runtime/a/settings.json",
        "tok",
        "atoken",
        "my-secret",
        "pem",
        "key.txt",
        "a.pem.txt",
        "a.pems",
        "a.db3",
        "apem",
        ".gitignore",
        ".github",
        ".git-credentials2",
        "github",
        "target",
        "node_modules/a.js",
        "build/dist/a",
        "a.",
        "é.md",
        "a\u{307}.pe\u{301}m",
    ] {
        check(&policy, name, "served");
        check(&policy, &format!("a/{name}"), "served");
    }
    check(&policy, "", "served");
}

#[test]
fn without_the_default_rules_everything_is_served() {
    let policy = Policy::new(Vec::new(), globs(&["*.pem"]), Vec::new(), false);
    check(&policy, ".env", "served");
    check(&policy, ".git/config", "served");
    check(&policy, "a.PEM", "!*.pem");
    assert!(!policy.is_noise(Scope::default(), "target"));
}

#[test]
fn exclude_beats_allow_beats_the_default_rules() {
    let policy =
        with(&[], &["private", "a/*.md"], &[".env", ".aws", "keys/**", "private", "b.key"]);
    check(&policy, "private", "!private");
    check(&policy, "x/PRIVATE/y", "!private");
    check(&policy, "a/x.md", "!a/*.md");
    check(&policy, "b/a/x.md", "served");
    check(&policy, ".env", "served");
    check(&policy, "x/.ENV", "served");
    check(&policy, ".env.local", ".env.*");
    check(&policy, ".aws/credentials", "served");
    check(&policy, ".aws/private", "!private");
    check(&policy, "keys/a.pem", "served");
    check(&policy, "keys/sub/.ssh/id_rsa", "served");
    check(&policy, "keys.pem", "*.pem");
    check(&policy, "x/b.key/token", "served");
    // An option glob may name the same thing twice over; the exclude still wins.
    check(&with(&[], &[".env"], &[".env"]), ".env", "!.env");
}

#[test]
fn allow_must_match_the_withheld_component() {
    let policy = with(&[], &[], &[".aws/config", "*.md", "token/**"]);
    check(&policy, ".aws/config", ".aws");
    check(&policy, ".git/README.md", ".git");
    check(&policy, "token/a", "token*");
    check(&policy, "secret.md", "served");
    check(&policy, "secret.md/.git/x", "served");
}

#[test]
fn include_filters_last() {
    let policy = with(&["src", "*.md", "/etc/**/*.toml"], &["*.tmp"], &[]);
    check(&policy, "", "not included");
    check(&policy, "a", "not included");
    check(&policy, "src", "served");
    check(&policy, "a/SRC/b/c", "served");
    check(&policy, "a/b.md", "served");
    check(&policy, "etc", "not included");
    check(&policy, "etc/a.toml", "served");
    check(&policy, "x/etc/a.toml", "not included");
    check(&policy, "src/a.tmp", "!*.tmp");
    check(&policy, "src/.env", ".env");
    check(&with(&[".env"], &[], &[]), ".env", ".env");
    check(&with(&[".env"], &[], &[".env"]), ".env", "served");
    check(&with(&["src"], &[], &[".env"]), ".env", "not included");
}

/// A walk that carries the scope from step to step decides as a path named at once.
#[test]
fn steps_add_up_to_a_decision() {
    for policy in [defaults(), with(&["b/c", "*.md"], &["x"], &[".git", "c"])] {
        for text in ["a", "a/b/c", "b/c/d.md", ".git/x", ".git/hooks/.env", "b/c/.env", "b/.env/c"]
        {
            let path = path(text);
            let (mut scope, mut prefix) = (Ok(Scope::default()), RelPath::default());
            for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
                prefix = prefix.child(name.as_bytes()).expect("a name");
                scope = scope.and_then(|scope| policy.step(scope, prefix.as_str()));
            }
            assert_eq!(scope, policy.decide(&path), "{text:?}");
        }
    }
}

#[test]
fn noise_is_exact_case_and_lifted_by_allow() {
    let policy = defaults();
    for name in [
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
        ".gradle",
        ".terraform",
        ".next",
        ".nuxt",
        ".turbo",
        "target",
        "dist",
        "build",
        "coverage",
    ] {
        assert!(policy.is_noise(Scope::default(), name), "{name}");
        assert!(!policy.is_noise(Scope::default(), &name.to_uppercase()), "{name}");
        assert!(!policy.is_noise(Scope::default(), &format!("{name}2")), "{name}");
        check(&policy, &format!("a/{name}/b"), "served");
    }
    for name in ["", " ", "src", "node_modules .venv", "Target"] {
        assert!(!policy.is_noise(Scope::default(), name), "{name:?}");
    }
    let policy = with(&[], &[], &["target", "vendor"]);
    let scope = |text: &str| policy.decide(&path(text)).expect("served");
    assert!(!policy.is_noise(scope("a/target"), "target"));
    assert!(!policy.is_noise(scope("a/target/x/build"), "build"));
    // What no rule withholds is not lifted, and noise that is lifted opens no secret.
    assert!(policy.is_noise(scope("vendor/x/build"), "build"));
    check(&policy, "target/.env", ".env");
    check(&policy, "vendor/.env", ".env");
    assert!(policy.is_noise(scope("build"), "build"));
}

#[test]
fn refusals_name_the_rule_and_how_it_is_lifted() {
    for (text, why, want) in [
        (
            ".env",
            Withheld::Secret(".env"),
            r#"path-excluded: ".env" is withheld by the default rule ".env"; the operator can lift it with --allow .env"#,
        ),
        (
            "a/b.pem",
            Withheld::Secret("*.pem"),
            r#"path-excluded: "a/b.pem" is withheld by the default rule "*.pem"; the operator can lift it with --allow '*.pem'"#,
        ),
        (
            "x/y",
            Withheld::Excluded("x/**".into()),
            r#"path-excluded: "x/y" is withheld by --exclude "x/**"; the operator can remove that option"#,
        ),
        (
            "x",
            Withheld::NotIncluded,
            r#"path-excluded: "x" matches no --include; the operator can add one that does"#,
        ),
    ] {
        assert_eq!(why.refusal(&path(text)).to_string(), want);
    }
}

/// Doing what a refusal says works, at any depth.
#[test]
fn the_advice_of_a_refusal_lifts_the_rule() {
    for (name, _) in SECRETS {
        for text in [name.to_owned(), format!("a/b/{name}"), format!("{name}/x")] {
            let why = defaults().decide(&path(&text)).expect_err(&text);
            let sentence = why.refusal(&path(&text)).sentence;
            let (_, allow) = sentence.rsplit_once(" --allow ").expect("advice");
            check(&with(&[], &[], &[allow.trim_matches('\'')]), &text, "served");
        }
    }
}
