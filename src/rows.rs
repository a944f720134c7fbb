//! The words of a row: tags and times. Pure; a name that could deceive is shown by
//! [`crate::escape::shown`].

use crate::disk::Kind;
use crate::escape::shown;

/// `[TAG] PATH`, with a `/` after a directory and the word of anything special.
pub(crate) fn row(kind: Kind, path: &str) -> String {
    let path = shown(if path.is_empty() { "." } else { path });
    match kind {
        Kind::File => format!("[FILE] {path}"),
        Kind::Dir => format!("[DIR] {path}/"),
        Kind::Link => format!("[LINK] {path}"),
        special => format!("[OTHER] {path}  {}", special.word()),
    }
}

/// ISO 8601, UTC, to the second, of seconds since 1970.
pub(crate) fn time(seconds: i64) -> String {
    // Years that begin in March, in eras of 400 years: the leap day comes last.
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
