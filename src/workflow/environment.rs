//! Environment variables of a workflow's commands: which names and values are taken.

/// Bytes of all names and values together: they go along with every command.
pub const MOST_BYTES: usize = 256 * 1024;

/// Variables of one workflow.
pub const MOST: usize = 256;

/// A longer value is data, and belongs in a file.
const LONGEST: usize = 32 * 1024;

/// What is wrong with a variable's name; a fragment such as "is no name".
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("is no name: letters, digits and `_`, and no digit in front");
    }
    if name.starts_with("LD_") {
        // The loader would take it in every process of the sandbox, also in those that hold it up.
        return Err("would change how every program is loaded, ours included");
    }
    if name.starts_with("TIDEMILL") {
        return Err("begins with TIDEMILL, and those are ours");
    }
    Ok(())
}

/// What is wrong with a variable's value; a fragment such as "is too long".
pub fn check_value(value: &str) -> Result<(), &'static str> {
    if value.contains('\0') {
        return Err("holds a NUL, and no variable can");
    }
    if value.len() > LONGEST {
        return Err("is longer than 32 KiB");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_not_ours() {
        for good in ["A", "_x", "PATH", "HOME", "MAX_ROWS2"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "2A", "A-B", "A=B", "A B", "\u{e9}", "LD_PRELOAD", "LD_LIBRARY_PATH", "TIDEMILL_RUN"]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_value("a\0b").is_err() && check_value("").is_ok());
    }
}
