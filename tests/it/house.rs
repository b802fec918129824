//! The sources and the documents are held to what they promise: map, names, files and tests that exist, settings that load.

mod architecture;
mod recipes;
