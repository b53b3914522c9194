//! drop_folder
