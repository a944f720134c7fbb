//! `--check`: what a client would see, told to a person before a folder is trusted to a model. Goes
//! through names only; opens no file and answers no client.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::disk::{Kind, file_system};
use crate::error::{Result, quoted};
use crate::page::Omission;
use crate::path::RelPath;
use crate::policy::Withheld;
use crate::tool::Call;
use crate::tools::list_roots;

const SURPRISES_MAX: usize = 20; // that are told one by one
/// Beginnings of the names of file systems on which a call can hang.
const REMOTE: [&str; 8] = ["nfs", "cifs", "smb", "fuse", "9p", "afs", "ceph", "virtiofs"];

/// The report, and whether nothing in it is surprising. With `progress`, stderr tells how far a
/// long walk is.
pub(crate) fn report(call: &Call<'_>, progress: bool) -> Result<(String, bool)> {
    let mut surprises = root_surprises(call);
    let mut walk = call.walk(&RelPath::default())?;
    walk.notes = Some(Vec::new());
    let titles = ["served", "withheld", "not searched"];
    let mut counts: [BTreeMap<String, u64>; 3] = Default::default();
    let mut next_word = Instant::now() + Duration::from_secs(1);
    loop {
        let is_entry = walk.step();
        for (omission, path) in walk.notes.iter_mut().flat_map(|notes| notes.drain(..)) {
            let mut withheld = |rule| *counts[1].entry(rule).or_default() += 1;
            let name = quoted(path.as_str());
            match (omission, call.tree.decide(&path)) {
                (Omission::Unreadable, _) => surprises.push(name + " cannot be read"),
                (_, Err(Withheld::Secret(rule))) => withheld(format!("default rule {rule}")),
                (_, Err(Withheld::Excluded(glob))) => withheld(format!("--exclude {glob}")),
                _ => (),
            }
        }
        if !is_entry {
            break;
        }
        if walk.is_shown() {
            *counts[0].entry(walk.kind.word().into()).or_default() += 1;
            if walk.is_noise {
                *counts[2].entry(walk.place.name().into()).or_default() += 1;
            }
        }
        if progress && next_word < Instant::now() {
            next_word += Duration::from_secs(1);
            let _ = writeln!(std::io::stderr(), "readonly-mcp: {} entries so far", walk.visited);
        }
    }
    let globs = call.config.exclude.iter().map(|glob| format!("--exclude {}", glob.text));
    let idle = globs.filter(|glob| !counts[1].contains_key(glob));
    surprises.extend(idle.map(|glob| glob + " matches nothing: a path in it begins at the root"));
    if !counts[0].contains_key(Kind::File.word()) {
        surprises.push("nothing is served: there is no file that the rules let through".into());
    }
    let mut text = list_roots::rows(call, true).concat();
    for (title, counts) in titles.into_iter().zip(&counts) {
        text += &format!("{title}: {}\n", counts.values().sum::<u64>());
        counts.iter().for_each(|(name, count)| text += &format!("  {name}: {count}\n"));
    }
    for (key, count) in walk.omitted.counted().filter(|(key, _)| !titles.contains(key)) {
        text += &format!("{key}: {count}\n");
    }
    text += &format!("surprises: {}\n", surprises.len());
    surprises.iter().take(SURPRISES_MAX).for_each(|surprise| text += &format!("  {surprise}\n"));
    Ok((text, surprises.is_empty()))
}

/// Roots that an operator may not have meant, or that may hang.
fn root_surprises(call: &Call<'_>) -> Vec<String> {
    let mut surprises = Vec::new();
    for root in &call.tree.roots {
        let alias = &root.alias;
        let parts: Vec<_> = root.resolved.iter().filter_map(|part| part.to_str()).collect();
        if let ["/"] | ["/", "root" | "home" | "Users"] | ["/", "home" | "Users", _] = parts[..] {
            surprises.push(format!("{alias} is a whole system or a home directory"));
        }
        let kind = root.pin().ok().and_then(|pin| file_system(&pin));
        if let Some(kind) = kind.filter(|kind| REMOTE.iter().any(|name| kind.starts_with(name))) {
            surprises.push(format!("{alias} is on a {kind} file system, where a call may hang"));
        }
    }
    surprises
}
