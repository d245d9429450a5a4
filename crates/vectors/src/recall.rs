//! How many of the nearest vectors are found by what is stored of them: recall@10 against an exact search.

use crate::{Coder, Vectors};
use ndarray::{Array2, ArrayView2, Axis};
use std::collections::HashSet;

/// So many of the nearest are looked for.
pub const NEAREST: usize = 10;
/// Rows that are compared at a time.
const ROWS: usize = 4096;

/// The part of the [`NEAREST`] of each question, by the cosine of their angles, that is among those found by what the coder keeps; the
/// question itself is as the model gives it. In the mean over all questions; nothing where there are none.
pub fn recall(vectors: &Vectors, coder: &Coder) -> Option<f64> {
    let dim = vectors.stored.ncols();
    let exact = nearest(vectors, &|rows| rows.to_owned());
    let found = nearest(vectors, &|rows| {
        let kept = rows.rows().into_iter().flat_map(|row| coder.decode(&coder.encode(&row.to_vec()), dim));
        Array2::from_shape_vec(rows.raw_dim(), kept.collect()).unwrap_or_else(|_| Array2::zeros(rows.raw_dim()))
    });
    let shares = exact.iter().zip(&found).map(|(exact, found)| {
        let exact: HashSet<_> = exact.iter().collect();
        found.iter().filter(|row| exact.contains(row)).count() as f64 / exact.len().max(1) as f64
    });
    (!exact.is_empty()).then(|| shares.sum::<f64>() / exact.len() as f64)
}

/// Of each question the rows that are nearest to it, where each row is as `kept` gives it.
fn nearest(vectors: &Vectors, kept: &dyn Fn(ArrayView2<'_, f32>) -> Array2<f32>) -> Vec<Vec<usize>> {
    let mut best: Vec<Vec<(f32, usize)>> = vec![Vec::new(); vectors.questions.nrows()];
    for (chunk, rows) in vectors.stored.axis_chunks_iter(Axis(0), ROWS).enumerate() {
        let cosines = vectors.questions.dot(&kept(rows).t());
        for (best, of_it) in best.iter_mut().zip(cosines.rows()) {
            best.extend(of_it.iter().enumerate().map(|(row, cosine)| (*cosine, chunk * ROWS + row)));
            if best.len() > NEAREST {
                // Of two that are as near the first comes first.
                best.select_nth_unstable_by(NEAREST, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                best.truncate(NEAREST);
            }
        }
    }
    best.into_iter().map(|best| best.into_iter().map(|(_, row)| row).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::vectors::{Format, Source};

    #[test]
    fn fewer_bits_find_less() {
        let vectors = Vectors::of(&Source::MadeUp { count: 5000, dim: 64, groups: 20, spread: 60, seed: 3 }).unwrap();
        let of = |format| recall(&vectors, &Coder::new(format, &vectors)).unwrap();
        let (f32, int8, int4) = (of(Format::F32), of(Format::Int8), of(Format::Int4));
        assert_eq!(f32, 1.0);
        assert!(int8 > 0.95 && int8 < 1.0, "{int8}");
        assert!(int4 > 0.5 && int4 < int8, "{int4}");
    }

    #[test]
    fn the_nearest_are_those_that_are() {
        let vectors = Vectors::of(&Source::MadeUp { count: 9000, dim: 8, groups: 5, spread: 90, seed: 5 }).unwrap();
        let found = nearest(&vectors, &|rows| rows.to_owned());
        let mut all: Vec<(f32, usize)> = vectors
            .stored
            .dot(&vectors.questions.row(3))
            .iter()
            .copied()
            .enumerate()
            .map(|(row, c)| (c, row))
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut expected: Vec<usize> = all[..NEAREST].iter().map(|(_, row)| *row).collect();
        let mut found = found[3].clone();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
