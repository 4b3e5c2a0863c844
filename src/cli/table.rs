//! Rows for people: columns as wide as their widest cell, two blanks between them.

/// Lines of a table with a header.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    std::iter::once(line(header)).chain(rows.iter().map(|row| line(row.each_ref().map(String::as_str)))).collect()
}

/// A size in bytes for people: three digits and a unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scaled = bytes;
    while scaled >= 10 * 1024 && unit + 1 < UNITS.len() {
        scaled = scaled.div_ceil(1024);
        unit += 1;
    }
    format!("{scaled} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a".to_owned(), "1".to_owned()], ["längst".to_owned(), String::new()]];
        assert_eq!(table(["NAME", "N"], &rows), ["NAME    N", "a       1", "längst"]);
    }

    #[test]
    fn sizes_keep_two_digits_at_least() {
        let words: Vec<String> = [0, 10_239, 10_240, 3 << 20, 64 << 30].into_iter().map(size).collect();
        assert_eq!(words, ["0 B", "10239 B", "10 KiB", "3072 KiB", "64 GiB"]);
    }
}
