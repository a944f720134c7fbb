//! What is served, decided on names: the default rules and `--exclude`, `--allow`, `--include`.
//!
//! It never asks the disk, so a withheld path is refused in the same words whether or not it
//! exists, and never recognises a secret that was copied or linked under another name.

use std::path::Path;

use crate::error::{Code, ToolError, quoted};
use crate::glob::{Glob, folded};
use crate::path::RelPath;

/// Of files and directories alike. Blunt on purpose: better hide a harmless file than show a key.
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
    /// Whether an `--include` matches here or above, or there is none.
    pub included: bool,
    allowed: bool, // an `--allow` has lifted a secret rule here or above: no default rule holds
    noise_allowed: bool, // it has lifted a noise rule here or above
}

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Policy {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
    allow: Vec<Glob>,
    noise: Vec<&'static str>, // [`NOISE`], unless the default rules are off
    /// Likewise [`SECRETS`], for speed by the first byte of the name or of what follows `*.`.
    secrets: Vec<Vec<&'static str>>,
}

impl Policy {
    /// The rules of the command line; `defaults` is false with `--no-default-excludes`.
    pub fn new(include: Vec<Glob>, exclude: Vec<Glob>, allow: Vec<Glob>, defaults: bool) -> Self {
        let rules = |rules: &'static str| rules.split(' ').filter(move |_| defaults);
        let mut secrets = vec![Vec::new(); 256];
        for rule in rules(SECRETS) {
            let name = rule.rsplit('/').next().unwrap_or_default();
            secrets[usize::from(name.trim_start_matches("*.").as_bytes()[0])].push(rule);
        }
        Self { include, exclude, allow, noise: rules(NOISE).collect(), secrets }
    }

    /// Decides the last component of `path`, relative to the root, from what was decided above it.
    /// `--exclude` beats `--allow` beats the default rules; whether an `--include` matches is only
    /// noted, since a directory that none matches may hold something that one does.
    pub fn step(&self, mut scope: Scope, path: &str) -> Result<Scope, Withheld> {
        let hit = |glob: &Glob| glob.matches(path);
        if let Some(glob) = self.exclude.iter().find(|glob| hit(glob)) {
            return Err(Withheld::Excluded(glob.text.clone()));
        }
        scope.included |= self.include.is_empty() || self.include.iter().any(hit);
        let lifts = self.allow.iter().any(hit);
        match self.secret(path).filter(|_| !scope.allowed) {
            Some(rule) if !lifts => return Err(Withheld::Secret(rule)),
            // Only what a rule withholds is lifted, so `--allow target` opens no secret in it.
            secret => scope.allowed |= secret.is_some(),
        }
        let is_noise = || path.rsplit('/').next().is_some_and(|name| self.noise.contains(&name));
        scope.noise_allowed |= lifts && is_noise();
        Ok(scope)
    }

    /// The default rule that withholds the last component of `path`.
    fn secret(&self, path: &str) -> Option<&'static str> {
        let name = &*folded(path.rsplit('/').next()?);
        let name = name.as_bytes();
        let suffix = name.rsplit(|byte| *byte == b'.').next()?;
        let holds = |rule: &&&str| match rule.as_bytes() {
            [b'*', b'.', end @ ..] => suffix == end && suffix.len() < name.len(),
            [start @ .., b'*'] => name.starts_with(start),
            // The second time by whole components.
            end => end.ends_with(name) && Path::new(&*folded(path)).ends_with(rule),
        };
        let rules = |part: &[u8]| self.secrets[usize::from(*part.first()?)].iter().find(holds);
        rules(name).or_else(|| rules(suffix)).copied()
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
        !scope.allowed && !scope.noise_allowed && self.noise.contains(&name)
    }
}

impl Withheld {
    /// The error for a path as the client knows it: the rule, and how the operator lifts it.
    pub fn refusal(&self, shown_path: &RelPath) -> ToolError {
        let (what, how) = match self {
            Self::Secret(rule) => {
                // As one types it in a shell; with a `/` it would be anchored at the root.
                let quote = if rule.contains(['*', '/']) { "'" } else { "" };
                let above = if rule.contains('/') { "**/" } else { "" };
                let how = format!("lift it with --allow {quote}{above}{rule}{quote}");
                (format!("is withheld by the default rule {}", quoted(rule)), how)
            }
            Self::Excluded(glob) => {
                (format!("is withheld by --exclude {}", quoted(glob)), "remove that option".into())
            }
            Self::NotIncluded => ("matches no --include".into(), "add one that does".into()),
        };
        let path = quoted(shown_path.as_str());
        ToolError::new(Code::PathExcluded, format!("{path} {what}; the operator can {how}"))
    }
}
