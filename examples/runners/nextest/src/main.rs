fn main() {}

#[cfg(test)]
mod tests {
    mod when_empty {
        #[test]
        fn pays() {
            acme_shop::passes_without("flaky-2");
        }
    }
}
