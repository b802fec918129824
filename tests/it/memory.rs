//! What will be true tomorrow: notes.

mod brain;
