//! What an answer says, in whatever shape it was written.

mod door;
mod honest_answers;
