//! What every skill that asks models shares: the common arguments, paths inside the project, the list of gates. No skill itself, so it has no line in the table.

mod gates;
mod params;
mod paths;
mod places;
mod private;
mod project;
mod recall;

pub(super) use gates::{Gates, named, path_texts};
pub(super) use params::{filled, params};
pub(super) use paths::{existing, inside};
pub use places::notes_folder;
pub(super) use places::{BrainPlaces, data_dir, with_index};
pub(super) use private::private_names;
pub(super) use project::{changed_with, identify};
pub use recall::BrainRecollection;
