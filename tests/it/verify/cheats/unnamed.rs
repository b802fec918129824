//! Cheats of classes that no rule names. They are many because no list of words can stop them; what stops them is that
//! a falsified test must fail.

mod cpp;
mod elixir;
mod go;
mod java;
mod node;
mod python;
mod ruby;
mod rust;

use super::case::Case;

pub(super) fn cases() -> impl Iterator<Item = &'static Case> {
    let compiled = rust::CASES
        .iter()
        .chain(go::CASES)
        .chain(elixir::CASES)
        .chain(java::CASES)
        .chain(cpp::CASES);
    compiled
        .chain(python::CASES)
        .chain(ruby::CASES)
        .chain(node::CASES)
}
