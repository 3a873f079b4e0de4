//! Tests with files built byte by byte by the format's specification; the tests of the program read one
//! that h5py wrote.

use crate::data::hdf5::*;

/// Builds a file of the subset.
struct Builder {
    bytes: Vec<u8>,
}

impl Builder {
    fn new() -> Builder {
        let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
        bytes.extend([0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]);
        bytes.resize(96, 0);
        Builder { bytes }
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend(bytes);
        at
    }

    fn header(&mut self, messages: &[(u16, Vec<u8>)]) -> u64 {
        let mut body = Vec::new();
        for (kind, message) in messages {
            let padded = message.len().next_multiple_of(8);
            body.extend(kind.to_le_bytes());
            body.extend((padded as u16).to_le_bytes());
            body.extend([0; 4]);
            body.extend(message);
            body.resize(body.len() + padded - message.len(), 0);
        }
        let mut header = vec![1, 0];
        header.extend((messages.len() as u16).to_le_bytes());
        header.extend(1u32.to_le_bytes());
        header.extend((body.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        header.extend(body);
        self.put(&header)
    }

    fn dataset(&mut self, shape: [u64; 2], kind: Vec<u8>, values: &[u8]) -> u64 {
        let at = self.put(values);
        let mut space = vec![1, 2, 0, 0, 0, 0, 0, 0];
        space.extend(shape.iter().flat_map(|extent| extent.to_le_bytes()));
        let mut layout = vec![3, 1];
        layout.extend(at.to_le_bytes());
        layout.extend((values.len() as u64).to_le_bytes());
        self.header(&[(1, space), (3, kind), (8, layout)])
    }

    /// Adds the root with these links and an attribute `distance`.
    fn finish(mut self, links: &[(&str, u64)], distance: &str) -> Vec<u8> {
        let (mut names, mut node) = (vec![0; 8], b"SNOD\x01\x00".to_vec());
        node.extend((links.len() as u16).to_le_bytes());
        for (name, header) in links {
            node.extend((names.len() as u64).to_le_bytes());
            node.extend(header.to_le_bytes());
            node.extend([0; 24]);
            names.extend(name.as_bytes());
            names.resize((names.len() + 1).next_multiple_of(8), 0);
        }
        let node = self.put(&node);
        let mut tree = b"TREE\x00\x00\x01\x00".to_vec();
        tree.extend([0xff; 16]);
        tree.extend(0u64.to_le_bytes());
        tree.extend(node.to_le_bytes());
        tree.extend([0; 8]);
        let tree = self.put(&tree);
        let size = names.len() as u64;
        let names = self.put(&names);
        let mut heap = b"HEAP\x00\x00\x00\x00".to_vec();
        heap.extend(size.to_le_bytes());
        heap.extend(1u64.to_le_bytes());
        heap.extend(names.to_le_bytes());
        let heap = self.put(&heap);
        let mut group = tree.to_le_bytes().to_vec();
        group.extend(heap.to_le_bytes());
        let root = self.header(&[(0x11, group), (0x0c, attribute("distance", distance))]);
        self.bytes[64..72].copy_from_slice(&root.to_le_bytes());
        self.bytes
    }
}

/// An attribute with a text of fixed length.
fn attribute(name: &str, value: &str) -> Vec<u8> {
    let mut body = vec![1, 0];
    for length in [name.len() + 1, 8, 8] {
        body.extend((length as u16).to_le_bytes());
    }
    body.extend(name.as_bytes());
    body.resize(8 + (name.len() + 1).next_multiple_of(8), 0);
    body.extend([0x13, 0, 0, 0]);
    body.extend((value.len() as u32).to_le_bytes());
    body.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    body.extend(value.as_bytes());
    body
}

fn float(width: u32) -> Vec<u8> {
    let mut kind = vec![0x11, 0x20, 0x1f, 0];
    kind.extend(width.to_le_bytes());
    kind
}

fn signed(width: u32) -> Vec<u8> {
    let mut kind = vec![0x10, 0x08, 0, 0];
    kind.extend(width.to_le_bytes());
    kind
}

fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A valid file of two rows and one query, with the first neighbour given.
fn sound(distance: &str) -> Vec<u8> {
    let mut file = Builder::new();
    let train = file.dataset([2, 2], float(4), &singles(&[0.5, 1.0, 2.0, 3.0]));
    let test = file.dataset([1, 2], float(4), &singles(&[0.0, 1.0]));
    let ids = file.dataset([1, 1], signed(4), &0i32.to_le_bytes());
    let distances = file.dataset([1, 1], float(4), &singles(&[0.5]));
    let links = [("distances", distances), ("neighbors", ids), ("test", test), ("train", train)];
    file.finish(&links, distance)
}

#[test]
fn a_file_of_the_subset_is_read() {
    let data = read(&sound("euclidean"), "x".to_owned()).unwrap();
    assert_eq!(data.distance, Distance::Euclidean);
    assert_eq!(data.train.values, Numbers::Floats(vec![0.5, 1.0, 2.0, 3.0]));
    assert_eq!((data.test.rows(), data.test.dims), (1, 2));
    assert_eq!(data.given, Some(Truth { k: 1, ids: vec![0], distances: vec![0.5] }));
    assert_eq!(read(&sound("angular"), String::new()).unwrap().distance, Distance::Cosine);
}

#[test]
fn a_file_whose_parts_are_one_costs_no_more_than_it_has() {
    let mut file = sound("euclidean");
    let tree = file.windows(4).position(|window| window == b"TREE").unwrap();
    // All children of the tree are the tree, and there are many of them.
    file[tree + 6..tree + 8].copy_from_slice(&u16::MAX.to_le_bytes());
    let error = read(&file, String::new()).unwrap_err();
    assert!(error.contains("no end"), "{error}");
    let mut heap = b"GCOL\x01\0\0\0\x30\0\0\0\0\0\0\0\x02\0\x01\0\0\0\0\0".to_vec();
    heap.extend(u64::MAX.to_le_bytes());
    heap.resize(48, 0);
    let mut kind = attribute("type", "");
    let at = kind.len() - 16;
    kind[at..at + 2].copy_from_slice(&[0x19, 1]);
    kind.extend(4u32.to_le_bytes());
    kind.extend(96u64.to_le_bytes());
    kind.extend(1u32.to_le_bytes());
    let mut made = Builder::new();
    made.put(&heap);
    let root = made.header(&[(0x0c, kind)]);
    made.bytes[64..72].copy_from_slice(&root.to_le_bytes());
    assert_eq!(read(&made.bytes, String::new()).unwrap_err(), "it is truncated or damaged");
}

#[test]
fn what_is_outside_the_subset_is_named() {
    let check = |change: &dyn Fn(&mut Vec<u8>), words: &str| {
        let mut file = sound("euclidean");
        change(&mut file);
        let error = read(&file, String::new()).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    let replace = |file: &mut Vec<u8>, from: &[u8], to: &[u8]| {
        let at = file.windows(from.len()).position(|window| window == from).unwrap();
        file[at..at + to.len()].copy_from_slice(to);
    };
    check(&|file| file[0] = b'P', "does not begin");
    check(&|file| file[8] = 3, "superblock has version 3");
    check(&|file| file[13] = 4, "not 8 bytes long");
    check(&|file| replace(file, &[3, 1], &[3, 2]), "chunked");
    check(&|file| replace(file, &[0x11, 0x20], &[0x11, 0x21]), "big-endian");
    check(&|file| replace(file, b"train", b"trail"), "no dataset `train`");
    check(&|file| replace(file, b"euclidean", b"hamming\0\0"), "distance is hamming");
    check(&|file| replace(file, b"SNOD", b"SNOX"), "unknown form");
    for length in [0, 20, 70, 200, 400] {
        let mut file = sound("euclidean");
        file.truncate(length);
        assert!(read(&file, String::new()).is_err(), "{length}");
    }
}
