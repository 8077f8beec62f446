#[test]
fn gives_a_discount() {
    acme_shop::passes_without("new");
}
