//! What is served, decided on names: the default rules and `--exclude`, `--allow`, `--include`.
//!
//! It never asks the disk, so a withheld path is refused in the same words whether or not it
//! exists, and never recognises a secret that was copied or linked under another name.

use std::borrow::Cow;

use crate::error::{Code, ToolError, quoted};
use crate::glob::{Glob, folded};
use crate::path::RelPath;

/// The names of secrets, of files and directories alike. Blunt on purpose: hiding a harmless file
/// beats exposing a credential.
const SECRETS: &str = "\
    .env .env.* .envrc .netrc .git-credentials .npmrc .pypirc .pgpass .htpasswd kubeconfig \
    service-account.json id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk \
    runtime/settings.json token* secret* credential* .git .ssh .aws .kube .docker .gnupg \
    *.pem *.key *.crt *.p12 *.pfx *.jks *.keystore *.kdbx *.p8 *.der *.csr *.ppk *.asc *.gpg \
    *.db *.sqlite *.sqlite3 *.bak *.backup";

/// Directories that hold nothing secret and too much to search, in exactly this case.
const NOISE: &str = "\
    node_modules .venv venv __pycache__ .cache .mypy_cache .pytest_cache .ruff_cache .tox .nox \
    .gradle .terraform .next .nuxt .turbo target dist build coverage";

/// Why a path is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// A default rule, as it is written.
    Secret(&'static str),
    /// An `--exclude`, as it was written.
    Excluded(String),
    /// No `--include` matches.
    NotIncluded,
}

/// What was decided for a directory and holds for all below it. The default is for the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// An `--allow` has lifted a secret rule here or above, so no default rule holds.
    allowed: bool,
    /// An `--allow` has lifted a noise rule here or above.
    noise_allowed: bool,
    included: bool,
}

impl Scope {
    /// Whether an `--include` matches the component or a directory above it; true for every
    /// component when there is none.
    pub fn included(self) -> bool {
        self.included
    }
}

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Policy {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
    allow: Vec<Glob>,
    defaults: bool,
    /// [`SECRETS`] by their [`slot`], since every entry of a walk is held against them: those that
    /// begin with `*.` under the byte behind the dot, others under the first byte of the name.
    secrets: Vec<Vec<&'static str>>,
}

impl Policy {
    /// The rules of the command line; `defaults` is false with `--no-default-excludes`.
    pub fn new(include: Vec<Glob>, exclude: Vec<Glob>, allow: Vec<Glob>, defaults: bool) -> Self {
        let mut secrets = vec![Vec::new(); 128];
        for rule in SECRETS.split_whitespace() {
            let name = rule.rsplit('/').next().unwrap_or_default();
            secrets[slot(name.trim_start_matches("*.").as_bytes())].push(rule);
        }
        Self { include, exclude, allow, defaults, secrets }
    }

    /// Decides one component from what was decided above it. `path` is relative to the root, and
    /// its last component the one in question. `--exclude` beats `--allow` beats the default
    /// rules; whether an `--include` matches is left to [`Scope::included`], since a directory
    /// that none matches may hold something that one does.
    pub fn step(&self, scope: Scope, path: &str) -> Result<Scope, Withheld> {
        let hit = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(path));
        if let Some(glob) = self.exclude.iter().find(|glob| glob.matches(path)) {
            return Err(Withheld::Excluded(glob.as_str().to_owned()));
        }
        let included = self.include.is_empty() || scope.included || hit(&self.include);
        let (mut allowed, mut noise_allowed) = (scope.allowed, scope.noise_allowed);
        if self.defaults && !allowed {
            let (lifts, secret) = (hit(&self.allow), self.secret(path));
            match secret {
                Some(rule) if !lifts => return Err(Withheld::Secret(rule)),
                // Only what a rule withholds is lifted, so `--allow target` opens no secret in it.
                secret => allowed = secret.is_some(),
            }
            noise_allowed |= lifts && is_noise_name(path.rsplit('/').next().unwrap_or_default());
        }
        Ok(Scope { allowed, noise_allowed, included })
    }

    /// The default rule that withholds the last component of `path`.
    fn secret(&self, path: &str) -> Option<&'static str> {
        // Other characters may fold to ASCII, as the Kelvin sign does.
        let path = if path.is_ascii() { Cow::Borrowed(path) } else { folded(path) };
        let path = path.as_bytes();
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let suffix = name.rsplit(|byte| *byte == b'.').next()?;
        let holds = |rule: &&&str| match rule.as_bytes() {
            [b'*', rest @ ..] => {
                name.len() > suffix.len() && suffix.eq_ignore_ascii_case(&rest[1..])
            }
            [start @ .., b'*'] => {
                name.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start))
            }
            rule => path.len().checked_sub(rule.len()).is_some_and(|from| {
                (from == 0 || path[from - 1] == b'/') && path[from..].eq_ignore_ascii_case(rule)
            }),
        };
        let rules = |part: &[u8]| self.secrets[slot(part)].iter().find(holds).copied();
        rules(name).or_else(|| rules(suffix))
    }

    /// Decides every component of a path, from the top down.
    pub fn decide(&self, path: &RelPath) -> Result<Scope, Withheld> {
        let top = Scope { included: self.include.is_empty(), ..Scope::default() };
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(slash, _)| slash).chain([text.len()]);
        // The top has one end, at zero.
        ends.filter(|end| *end > 0).try_fold(top, |scope, end| self.step(scope, &text[..end]))
    }

    /// Whether walks leave out the directory `name`, for which `scope` was decided.
    pub fn is_noise(&self, scope: Scope, name: &str) -> bool {
        self.defaults && !scope.allowed && !scope.noise_allowed && is_noise_name(name)
    }

    /// `path-excluded` for a path as the client knows it, naming the rule and how the operator
    /// lifts it.
    pub fn refusal(&self, shown_path: &RelPath, why: &Withheld) -> ToolError {
        let path = quoted(shown_path.as_str());
        let sentence = match why {
            Withheld::Secret(rule) => {
                // As one types it in a shell; with a `/` it would be anchored at the root.
                let allow = match rule {
                    _ if rule.contains('/') => format!("'**/{rule}'"),
                    _ if rule.contains('*') => format!("'{rule}'"),
                    _ => (*rule).to_owned(),
                };
                let rule = quoted(rule);
                format!(
                    "is withheld by the default rule {rule}; the operator can lift it with --allow {allow}"
                )
            }
            Withheld::Excluded(glob) => {
                let glob = quoted(glob);
                format!(
                    "is withheld by --exclude {glob}; the operator can lift it by removing that option"
                )
            }
            Withheld::NotIncluded => {
                "matches no --include; the operator can serve it with another --include".into()
            }
        };
        ToolError::new(Code::PathExcluded, format!("{path} {sentence}"))
    }
}

fn is_noise_name(name: &str) -> bool {
    NOISE.split(' ').any(|noise| noise == name)
}

/// Where the rules for what begins so stand: by one byte, folded, without the bit that none has.
fn slot(part: &[u8]) -> usize {
    part.first().map_or(0, |byte| usize::from(byte.to_ascii_lowercase() & 127))
}
