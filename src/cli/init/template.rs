//! The files of a new project.

/// A file of a new project.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Path relative to the project.
    pub path: &'static str,
    /// Content.
    pub text: &'static str,
    /// Permission bits.
    pub mode: u32,
}

/// Every file of a new project.
pub const FILES: [File; 7] = [
    plain("tidemill.toml", include_str!("template/tidemill.toml")),
    plain("workflows/hello.lua", include_str!("template/workflows/hello.lua")),
    plain("models/hello.lua", include_str!("template/models/hello.lua")),
    plain("images/python-data/Dockerfile", include_str!("../../../images/python-data/Dockerfile")),
    File { path: "images/base/bootstrap", text: include_str!("../../../images/base/bootstrap"), mode: 0o755 },
    plain(".gitignore", include_str!("template/gitignore")),
    plain(".luarc.json", include_str!("template/luarc.json")),
];

/// Folders of a new project that hold no file yet.
pub const FOLDERS: [&str; 2] = ["inbox/hello", "outbox"];

const fn plain(path: &'static str, text: &'static str) -> File {
    File { path, text, mode: 0o644 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_settings_are_valid_and_name_files_that_exist() {
        let settings = FILES.iter().find(|file| file.path == crate::config::FILE).unwrap();
        let config = Config::parse(settings.text).unwrap();
        let scripts = config.models.values().filter_map(|model| model.script.as_ref());
        for path in scripts.chain(config.bases.values()) {
            assert!(FILES.iter().any(|file| file.path == path), "{path} is missing");
        }
    }

    #[test]
    fn the_workflow_is_one_a_newcomer_can_read() {
        let hello = FILES.iter().find(|file| file.path == "workflows/hello.lua").unwrap();
        assert!(hello.text.lines().count() <= 22);
    }
}
