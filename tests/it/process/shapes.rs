//! Trees of awkward shapes, built by this very test binary: it starts itself again to play a part.
