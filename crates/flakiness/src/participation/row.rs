//! A row of eight words, which is one cache line. The compiler turns operations on it into vector instructions.

use assay_domain::observation::Bitmap;

/// The number of words that are read together: a cache line of every bitmap.
pub(crate) const WORDS: usize = 8;

/// The bits of the tests of a block.
pub(crate) type Row = [u64; WORDS];

/// Whether no bit is set. A comparison with an array of zeros would call `memcmp`.
pub(crate) fn is_empty(row: &Row) -> bool {
    row.iter().fold(0, |all, word| all | word) == 0
}

/// The words of a bitmap from `first` on; zero past its end.
pub(crate) fn row(set: &Bitmap, first: usize) -> Row {
    let whole = set
        .words()
        .get(first..first + WORDS)
        .and_then(|words| words.try_into().ok());
    whole.unwrap_or_else(|| std::array::from_fn(|i| set.word(first + i)))
}

/// The bits that are set in both rows.
pub(crate) fn and(a: &Row, b: &Row) -> Row {
    let mut row = *a;
    for (word, b) in row.iter_mut().zip(b) {
        *word &= b;
    }
    row
}

/// The bits of the first row that are not set in the second.
pub(crate) fn and_not(a: &Row, b: &Row) -> Row {
    let mut row = *a;
    for (word, b) in row.iter_mut().zip(b) {
        *word &= !b;
    }
    row
}

/// Sets the bits of a row.
pub(crate) fn or(into: &mut Row, row: &Row) {
    for (into, word) in into.iter_mut().zip(row) {
        *into |= word;
    }
}

/// Sets the bits of a row in one of several rows.
pub(crate) fn or_at(rows: &mut [Row], index: usize, row: &Row) {
    if let Some(into) = rows.get_mut(index) {
        or(into, row);
    }
}

/// One word of every row.
pub(crate) fn transpose(rows: &[Row], index: usize, column: &mut Vec<u64>) {
    column.clear();
    column.extend(rows.iter().map(|row| row.get(index).copied().unwrap_or(0)));
}
