//! Prints tables: aligned for a terminal, or as Markdown.

/// A table with its title.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, head: &[&'static str]) -> Table {
        Table { title: title.to_owned(), head: head.to_vec(), rows: Vec::new() }
    }

    /// The heading and the rows.
    pub(crate) fn text(&self, markdown: bool) -> String {
        if markdown { self.markdown() } else { self.aligned() }
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("### {}\n\n", self.title);
        text += &line(self.head.clone());
        text += &line(self.head.iter().map(|_| "---").collect());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text + "\n"
    }

    fn aligned(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(self.head.get(column).map_or(0, |name| name.chars().count()))
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        let mut text = format!("{}\n\n", self.title);
        text += &line(self.head.clone());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text + "\n"
    }
}
