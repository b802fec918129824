//! The gym: its tasks are what they say, and what it measures is what happened.

mod endless;
mod learned;
mod run;
mod survivors;
