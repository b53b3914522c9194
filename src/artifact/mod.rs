//! From files in the sandbox to files in the outbox: stage, hash, publish, receipt.

mod aside;
mod copy;
mod name;
mod publish;
mod receipt;

pub use aside::keep_aside;
pub use name::folder_name;
pub use publish::{Destination, Published, forget_staged, publish, published_before};
pub use receipt::{Checked, Content, Guarded, Image, Model, Prompt, Receipt, Script, Times};
