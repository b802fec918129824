use numerals::roman;

#[test]
fn three_is_iii() {
    assert_eq!(roman(3), "III");
}
