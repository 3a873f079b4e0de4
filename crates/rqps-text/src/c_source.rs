//! C and C++ as a compiler sees them, but for the numbers of lines: without comments, and with one
//! blank for each run of blanks. Two files with the same such text are the same program.

/// What stands before a raw string of C++.
const RAW: [&[u8]; 5] = [b"R", b"LR", b"uR", b"UR", b"u8R"];

/// The text without comments. A word, a number, a literal and each other character stay as they are;
/// between them there is a line end where there was one outside of a comment, else a blank where
/// there was a blank or a comment.
pub fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut at, mut blank, mut word) = (0, None, &b""[..]);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let (length, seen) = match rest {
            [b'\n', ..] => (1, Some(b'\n')),
            [byte, ..] if byte.is_ascii_whitespace() => (1, Some(b' ')),
            [b'/', b'/', ..] => (line(rest), Some(b' ')),
            [b'/', b'*', ..] => (until(rest, 2, b"*/"), Some(b' ')),
            // A word that stands alone begins no raw string.
            _ if blank.is_some() && RAW.contains(&word) => (piece(rest, b""), None),
            _ => (piece(rest, word), None),
        };
        let (piece, later) = rest.split_at(length.min(rest.len()));
        at = text.len() - later.len();
        match seen {
            Some(b'\n') => blank = seen,
            Some(_) => blank = blank.or(seen),
            None => {
                kept.extend(blank.take().filter(|_| !kept.is_empty()));
                kept.extend_from_slice(piece);
                word = piece;
            }
        }
    }
    kept
}

/// The length of the next piece; `before` is the last one.
fn piece(rest: &[u8], before: &[u8]) -> usize {
    match rest[0] {
        b'"' if RAW.contains(&before) => {
            let Some(open) = rest.iter().position(|byte| *byte == b'(') else { return rest.len() };
            let end = [b")", &rest[1..open], b"\""].concat();
            until(rest, open + 1, &end)
        }
        quote @ (b'"' | b'\'') => literal(rest, quote),
        // The name of a header may hold what looks like a comment.
        b'<' if before == b"include" => literal(rest, b'>'),
        byte if byte.is_ascii_digit() => {
            // `1'000`
            let is_part = |at: &usize| {
                let is_word = |at| rest.get(at).is_some_and(|byte: &u8| is_word(*byte));
                is_word(*at) || rest[*at] == b'.' || (rest[*at] == b'\'' && is_word(*at + 1))
            };
            (0..rest.len()).take_while(is_part).count()
        }
        _ => rest.iter().take_while(|byte| is_word(**byte)).count().max(1),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The length to the end of a literal. It ends with its line, as an apostrophe of `#error` does.
fn literal(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match *byte {
            b'\\' => at += 2,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// The length to the end of a line that no backslash continues.
fn line(rest: &[u8]) -> usize {
    let is_end = |at: &usize| rest[*at] == b'\n' && !rest[..*at].ends_with(b"\\");
    (0..rest.len()).find(is_end).unwrap_or(rest.len())
}

/// The length to the end of the first such text after some bytes.
fn until(rest: &[u8], from: usize, end: &[u8]) -> usize {
    let found = rest[from..].windows(end.len()).position(|bytes| bytes == end);
    found.map_or(rest.len(), |found| from + found + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_and_blanks_go() {
        let check = |text: &str, expected: &str| {
            let found = without_comments(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected, "{text}");
            assert_eq!(without_comments(&found), found, "{text}");
        };
        check("/* Licence */\n\nint  a; // b\n\n  int c;\n", "int a;\nint c;");
        check("a /* b\n c */ d", "a d");
        check("#define X /* one\nline */ 1\ny", "#define X 1\ny");
        check("a/**/b /***/ c /* / * */ d", "a b c d");
        check("a // b \\\n c\nd", "a\nd");
        check("\"/* a */\" '\"' \"\\\"//\" '\\'' // c", "\"/* a */\" '\"' \"\\\"//\" '\\''");
        check("R\"x(\" /* a */ )\" )x\" /* b */ c", "R\"x(\" /* a */ )\" )x\" c");
        check("PTR \"a(\" /* a */ R \"(\" // b", "PTR \"a(\" R \"(\"");
        check("1'000 /* a */ 0xA'B // b", "1'000 0xA'B");
        check("u'/' // a", "u'/'");
        check("#error don't\n\"a\" /* b */ 'c'", "#error don't\n\"a\" 'c'");
        check("#include <a//b.h> // c", "#include <a//b.h>");
        check("a < b // c\n> d", "a < b\n> d");
        check("a /* without end", "a");
        check("/", "/");
    }
}
