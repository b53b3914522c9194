//! Permission bits of a file in the workspace.

use std::fmt;

/// Checked permission bits, such as `0755`. They never hold the set-user, set-group and sticky bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mode(u32);

impl Mode {
    /// What a program has.
    pub const PROGRAM: Self = Self(0o755);

    /// Reads octal digits as `chmod` takes them; the error is a fragment such as "is not octal".
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let octal = (3..=5).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = octal.then(|| u32::from_str_radix(text, 8).ok()).flatten();
        match bits {
            None => Err("is not three octal digits, with or without zeros in front"),
            Some(bits) if bits > 0o7777 => Err("has more digits than a mode has"),
            Some(bits) if bits > 0o777 => Err("holds the set-user, set-group or sticky bit"),
            Some(bits) => Ok(Self(bits)),
        }
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether users who neither own the file nor are in its group may read it.
    pub fn others_read(self) -> bool {
        self.0 & 0o004 != 0
    }

    /// Whether users who do not own the file may write it.
    pub fn others_write(self) -> bool {
        self.0 & 0o022 != 0
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_and_without_special_bits() {
        assert_eq!(Mode::parse("755"), Ok(Mode::PROGRAM));
        assert_eq!(Mode::parse("0644").map(|mode| mode.to_string()), Ok("0644".to_owned()));
        for wrong in ["", "7", "0o755", "888", "rwxr-xr-x", "-755", "+755", "4755", "02755", "1777", "77777"]
        {
            assert!(Mode::parse(wrong).is_err(), "{wrong}");
        }
    }
}
