//! File systems on which others change files without the kernel here telling of it.

use std::path::Path;

use rustix::fs::statfs;

/// Numbers that `statfs` gives, and what people call them. An overlay is not among them: what is written through it is
/// told, and its layers must not be changed behind it.
const REMOTE: [(i64, &str); 10] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
    (0x786F_4256, "VirtualBox"),
];

/// What the file system that `folder` is on is called, when its changes have to be looked for.
pub(super) fn remote(folder: &Path) -> Option<&'static str> {
    name(statfs(folder).ok()?.f_type)
}

/// The number's type differs between machines.
fn name(number: impl Into<i64>) -> Option<&'static str> {
    // Where it is narrow, the number comes with a sign.
    let number = number.into() & 0xFFFF_FFFF;
    REMOTE.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_disks_are_told_from_disks() {
        const EXT4: i64 = 0xEF53;
        const OVERLAY: i64 = 0x794C_7630;
        assert_eq!((name(0x6969), name(0x6573_5546_i64)), (Some("NFS"), Some("FUSE")));
        assert_eq!((name(0xFF53_4D42_i64), name(-0x00AC_B2BE)), (Some("CIFS"), Some("CIFS")));
        assert_eq!((name(EXT4), name(OVERLAY)), (None, None));
        assert_eq!((remote(Path::new("/proc")), remote(Path::new("/nowhere"))), (None, None));
    }
}
