//! Caches data that are slow to make, in files with a SHA-256 at the end. A damaged file is made
//! again.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::data::dataset::VectorSet;
use crate::data::error::DataError;
use crate::data::truth::Truth;
use rqps_model::units;

const SHA: usize = 32;

/// The content of `name` in `folder`; makes it if it is missing, and always without a folder. A
/// file is written under another name and then renamed, so that two processes may make it at once.
pub(super) fn kept(
    folder: Option<&Path>,
    name: &str,
    make: impl FnOnce() -> Result<Vec<u8>, DataError>,
) -> Result<Vec<u8>, DataError> {
    let Some(folder) = folder else { return make() };
    let path = folder.join(name);
    if let Some(content) = read(&path) {
        return Ok(content);
    }
    let content = make()?;
    let doing = "keep vectors in";
    fs::create_dir_all(folder).map_err(DataError::io(doing, folder))?;
    let partial = folder.join(format!(".{name}.{}.partial", std::process::id()));
    let mut file = content.clone();
    file.extend_from_slice(&Sha256::digest(&content));
    fs::write(&partial, file).map_err(DataError::io(doing, &partial))?;
    fs::rename(&partial, &path).map_err(DataError::io(doing, &path))?;
    Ok(content)
}

/// The content of a file; `None` if it is missing or damaged.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = fs::read(path).ok()?;
    let end = content.len().checked_sub(SHA)?;
    if Sha256::digest(&content[..end])[..] != content[end..] {
        return None;
    }
    content.truncate(end);
    Some(content)
}

/// Exact neighbours of a set, cached under the set's hash.
pub(super) fn truth(
    data: &VectorSet,
    what: &str,
    k: usize,
    folder: Option<&Path>,
    make: impl FnOnce() -> Result<Truth, DataError>,
) -> Result<Truth, DataError> {
    let key = format!("{} {:?} {what}", data.hash, data.distance);
    let name = units::hex(&Sha256::digest(key.as_bytes())[..6]);
    let count = data.test.rows() * k;
    let content = kept(folder, &format!("truth-{}-{name}", data.hash), || Ok(encode(&make()?)))?;
    decode(&content, k, count).ok_or_else(|| DataError::Unfit {
        name: data.name.clone(),
        what: format!(
            "the file truth-{}-{name} in the cache belongs to a different set; remove it",
            data.hash
        ),
    })
}

fn encode(truth: &Truth) -> Vec<u8> {
    let mut content: Vec<u8> = truth.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    content.extend(truth.distances.iter().flat_map(|distance| distance.to_le_bytes()));
    content
}

fn decode(content: &[u8], k: usize, count: usize) -> Option<Truth> {
    if content.len() != count * 12 {
        return None;
    }
    let (ids, distances) = content.split_at(count * 4);
    Some(Truth {
        k,
        ids: ids.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        distances: distances
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_file_is_found_and_a_damaged_one_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let get = |content: &[u8]| kept(Some(folder), "x", || Ok(content.to_vec())).unwrap();
        assert_eq!(get(b"first"), b"first");
        assert_eq!(get(b"second"), b"first", "found, not made");
        let mut file = fs::read(folder.join("x")).unwrap();
        file[0] ^= 1;
        fs::write(folder.join("x"), file).unwrap();
        assert_eq!(get(b"third"), b"third");
        assert_eq!(kept(None, "x", || Ok(vec![7])).unwrap(), [7]);
    }

    #[test]
    fn neighbours_survive_their_encoding() {
        let truth = Truth { k: 2, ids: vec![1, 2, 3, 4], distances: vec![0.5, 1.5, 0.0, 1e300] };
        assert_eq!(decode(&encode(&truth), 2, 4), Some(truth.clone()));
        assert_eq!(decode(&encode(&truth), 2, 5), None);
    }
}
