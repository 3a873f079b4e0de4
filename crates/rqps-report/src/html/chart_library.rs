//! The script that draws charts. The program holds it compressed, a third of its size.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

/// Apache ECharts 6.1.0, `dist/echarts.common.min.js` of its npm package, through `gzip -9n`;
/// licence and notice are beside it and in every report.
const PACKED: &[u8] = include_bytes!("assets/echarts.common.min.js.gz");

/// The text of the library.
///
/// # Panics
/// Never: a test reads it whole.
pub(super) fn chart_library() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = String::new();
        GzDecoder::new(PACKED).read_to_string(&mut text).expect("the library as it was packed");
        text
    })
}
