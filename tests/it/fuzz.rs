//! The readers of what comes from outside, and bytes of every kind.

mod corpus;
