//! Helpers shared by the skills: common arguments, paths inside the project, the gate list, notes
//! and project identity. Not a skill, so it has no row in `SKILLS`.

mod brain_paths;
pub(crate) mod citations;
pub(crate) mod commit;
mod gates;
mod params;
mod paths;
pub(crate) mod private_names;
mod project;
pub(crate) mod prose;
mod recall;

pub use brain_paths::notes_folder;
pub(super) use brain_paths::{BrainPaths, data_dir, with_index};
pub use commit::{Commit, CommitError, Repository};
pub(super) use gates::{Gates, SHAPE, named, path_texts};
pub(super) use params::{filled, input, params};
pub(super) use paths::{existing, inside};
pub(super) use private_names::private_names;
pub(super) use project::{changed_with, identify};
pub use recall::BrainRecollection;

/// `1 criterion`, `2 criteria`.
pub(crate) fn count_criteria(n: usize) -> String {
    if n == 1 {
        String::from("1 criterion")
    } else {
        format!("{n} criteria")
    }
}
