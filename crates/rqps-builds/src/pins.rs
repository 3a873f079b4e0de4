//! The SHA-256 of the builds of the catalogue, so that a package is the one that was looked at,
//! whatever a mirror or its owner puts in its place.

/// Lines `SHA256 COORDINATES`.
const TEXT: &str = include_str!("pins.txt");

/// The SHA-256 of a package, hexadecimal; `None` for one that is not in the catalogue.
pub(super) fn pinned(coordinates: &str) -> Option<&'static str> {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    let mut pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.find(|(_, found)| *found == coordinates).map(|(sha256, _)| sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_hash_of_one_package() {
        let lines: Vec<&str> = TEXT.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() > 30);
        for line in lines {
            let (sha256, coordinates) = line.split_once(' ').unwrap();
            assert_eq!(pinned(coordinates), Some(sha256), "{coordinates} comes twice");
            assert!(sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit()), "{line}");
        }
        assert_eq!(pinned("org.example:thing:1"), None);
    }
}
