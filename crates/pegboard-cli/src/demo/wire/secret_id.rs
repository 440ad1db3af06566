//! Session ids of 128 random bits.

/// A fresh id, in lower-case hex.
pub(super) fn secret_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_long_and_never_the_same() {
        let (first, second) = (secret_id().unwrap(), secret_id().unwrap());
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
    }
}
