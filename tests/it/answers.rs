//! What an answer says, in whatever shape it was written.

mod edit_answers;
mod honest_answers;
