//! What starts runs: the drop folder.

pub mod drop_folder;
