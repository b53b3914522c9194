//! Names in archives: bytes of someone else's choosing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::event::input::printable;
use crate::sandbox::unpack::Rules;

/// Bytes of a name that is shown.
const SHOWN: usize = 200;

/// A name as text, without what says nothing (`./`, a slash at the end); the error is a fragment.
pub(super) fn read(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "has a name that is not UTF-8".to_owned())?;
    if text.starts_with('/') {
        return Err("is absolute".to_owned());
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Ok(parts.join("/"))
}

/// Whether a name can be one of ours.
pub(super) fn check(name: &str, rules: &Rules) -> Result<(), String> {
    let parts: Vec<&str> = name.split('/').collect();
    if name.is_empty() {
        return Err("has no name".to_owned());
    }
    if name.len() > rules.path {
        return Err(format!("has a name of {} bytes, and at most {} are taken", name.len(), rules.path));
    }
    if parts.iter().any(|part| part.len() > rules.part) {
        return Err(format!("has a part of more than {} bytes in its name", rules.part));
    }
    if parts.len() > rules.depth + 1 {
        return Err(format!("lies {} folders deep, and at most {} are taken", parts.len() - 1, rules.depth));
    }
    if parts.contains(&"..") {
        return Err("leaves the folder".to_owned());
    }
    if name.chars().any(char::is_control) {
        return Err("has a control character in its name".to_owned());
    }
    Ok(())
}

/// A name to be looked at: short, and without what moves a terminal's cursor.
pub(super) fn shown(name: &[u8]) -> String {
    let cut = &name[..name.len().min(SHOWN)];
    let shown = printable(OsStr::from_bytes(cut));
    if cut.len() < name.len() { format!("{shown}...") } else { shown }
}
