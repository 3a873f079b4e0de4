//! The sampled stacks of a step: `steps/NN-NAME.folded.gz`, a line `outer;inner;innermost SAMPLES`
//! for each stack, as tools for flame graphs read it.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::ResultsError;
use rqps_model::bounded;
use rqps_model::run::StepRecord;
use rqps_model::sampled::{CallNode, CallTree};

/// Characters of a profile at most.
const TEXT_MAX: u64 = 512 << 20;

/// Name of the file in the folder of steps.
pub(super) fn file_name(step: &StepRecord) -> String {
    format!("{:02}-{}.folded.gz", step.index, step.name)
}

/// Stacks with their samples, compressed. The same stacks give the same bytes.
pub(super) fn pack(folded: &HashMap<String, u64>) -> std::io::Result<Vec<u8>> {
    let mut stacks: Vec<(&String, &u64)> = folded.iter().collect();
    stacks.sort_unstable();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    for (stack, samples) in stacks {
        writeln!(packer, "{stack} {samples}")?;
    }
    packer.finish()
}

/// Reads the stacks of a sampled step from the folder of steps. One whose file is gone has none.
pub(super) fn attach(folder: &Path, step: &mut StepRecord) -> Result<(), ResultsError> {
    if step.sampled.is_none() {
        return Ok(());
    }
    let path = folder.join(file_name(step));
    let file = match bounded::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ResultsError::io("open", &path)(error)),
    };
    let mut text = String::new();
    GzDecoder::new(file)
        .take(TEXT_MAX)
        .read_to_string(&mut text)
        .map_err(ResultsError::io("read", &path))?;
    let tree = parse(&text).map_err(|line| {
        let why = "it is no stack with a number of samples".to_owned();
        ResultsError::Malformed { path, line, field: None, why }
    })?;
    if let Some(sampled) = &mut step.sampled {
        sampled.profile = Some(Arc::new(tree));
    }
    Ok(())
}

/// Joins folded stacks to a tree.
///
/// # Errors
/// Number of the invalid line, from 1.
pub(super) fn parse(text: &str) -> Result<CallTree, usize> {
    let mut tree = CallTree::default();
    let mut names: HashMap<&str, u32> = HashMap::new();
    let mut places: HashMap<(Option<u32>, u32), u32> = HashMap::new();
    let mut total = 0u64;
    for (number, line) in (1_usize..).zip(text.lines()) {
        let (stack, samples) = line.rsplit_once(' ').ok_or(number)?;
        let samples: u64 = samples.parse().map_err(|_| number)?;
        // So no sum of them overflows.
        total = total.checked_add(samples).ok_or(number)?;
        let mut caller = None;
        for word in stack.split(';') {
            let name = *names.entry(word).or_insert_with(|| {
                tree.names.push(Arc::from(word));
                tree.names.len() as u32 - 1
            });
            let place = *places.entry((caller, name)).or_insert_with(|| {
                tree.nodes.push(CallNode { caller, name, own: 0 });
                tree.nodes.len() as u32 - 1
            });
            caller = Some(place);
        }
        if let Some(node) = caller.and_then(|place| tree.nodes.get_mut(place as usize)) {
            node.own += samples;
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_a_common_beginning_are_joined() {
        let stacks = [("main;run;read it", 3), ("main;run", 2), ("main;write", 1)];
        let folded = stacks.map(|(stack, samples)| (stack.to_owned(), samples)).into();
        let packed = pack(&folded).unwrap();
        let mut text = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "main;run 2\nmain;run;read it 3\nmain;write 1\n");
        let tree = parse(&text).unwrap();
        let nodes: Vec<(Option<u32>, &str, u64)> = tree
            .nodes
            .iter()
            .map(|node| (node.caller, &*tree.names[node.name as usize], node.own))
            .collect();
        let expected = [
            (None, "main", 0),
            (Some(0), "run", 2),
            (Some(1), "read it", 3),
            (Some(0), "write", 1),
        ];
        assert_eq!(nodes, expected);
        assert_eq!(parse("main;run 2\nmain;run\n"), Err(2));
        assert_eq!(parse("main;run 2\nmain;run 18446744073709551615\n"), Err(2));
    }
}
