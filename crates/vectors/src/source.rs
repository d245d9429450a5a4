//! Where vectors come from.

use basics::vectors::Source;
use ndarray::{Array2, ArrayView1, Axis};
use npyz::NpyFile;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Vectors that are not stored, and whose nearest are looked for.
pub const QUESTIONS: u64 = 200;

/// A file that has no vectors.
#[derive(Debug, Error)]
pub enum VectorError {
    /// It cannot be read.
    #[error("{}: {source}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{}: {why}; give a NumPy file of a table of floats, as numpy.save writes it", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// Vectors, each as long as 1, so that their product is the cosine of their angle.
#[derive(Debug, Clone)]
pub struct Vectors {
    pub(crate) stored: Array2<f32>,
    pub(crate) questions: Array2<f32>,
}

impl Vectors {
    /// Of a source.
    ///
    /// # Errors
    /// [`VectorError`], of a file.
    pub fn of(source: &Source) -> Result<Self, VectorError> {
        let mut all = match source {
            Source::MadeUp { count, dim, groups, spread, seed } => made_up(
                (count + QUESTIONS) as usize,
                *dim as usize,
                *groups as usize,
                f64::from(*spread) / 100.0,
                *seed,
            ),
            Source::File { path, .. } => read(path)?,
        };
        for mut row in all.rows_mut() {
            let length = row.dot(&row).sqrt();
            if length > 0.0 {
                row.mapv_inplace(|x| x / length);
            }
        }
        let (stored, questions) = all.view().split_at(Axis(0), source.count().min(all.nrows() as u64) as usize);
        let (stored, questions) = (stored.to_owned(), questions.to_owned());
        Ok(Vectors { stored, questions })
    }

    /// How many are stored.
    pub fn count(&self) -> usize {
        self.stored.nrows()
    }

    /// One that is stored.
    pub fn row(&self, at: usize) -> ArrayView1<'_, f32> {
        self.stored.row(at)
    }
}

fn made_up(count: usize, dim: usize, groups: usize, spread: f64, seed: u64) -> Array2<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut normal = |scale: f64| {
        let number: f64 = StandardNormal.sample(&mut rng);
        (number * scale) as f32
    };
    let middles = Array2::from_shape_simple_fn((groups.max(1), dim), || normal(1.0));
    let mut all = Array2::from_shape_simple_fn((count, dim), || normal(spread));
    let mut choice = Xoshiro256PlusPlus::seed_from_u64(!seed);
    for mut row in all.rows_mut() {
        let group = (choice.next_u64() % groups.max(1) as u64) as usize;
        row += &middles.row(group);
    }
    all
}

/// Rows and numbers of each, of the table in a file: all that a plan needs to know of it.
///
/// # Errors
/// [`VectorError`].
pub fn shape(path: &Path) -> Result<(u64, u32), VectorError> {
    let file = opened(path)?;
    let (rows, dim) = table(path, file.shape())?;
    Ok((rows as u64, u32::try_from(dim).map_err(|_| wrong(path, "its rows are too long"))?))
}

fn opened(path: &Path) -> Result<NpyFile<BufReader<File>>, VectorError> {
    let failed = |source| VectorError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    NpyFile::new(BufReader::new(file)).map_err(|error| wrong(path, &error.to_string()))
}

fn table(path: &Path, shape: &[u64]) -> Result<(usize, usize), VectorError> {
    match shape {
        [rows, dim] if *dim > 0 && *rows > QUESTIONS => Ok((*rows as usize, *dim as usize)),
        [rows, dim] if *dim > 0 => {
            Err(wrong(path, &format!("{rows} rows are too few: {QUESTIONS} are asked for, the others stored")))
        }
        other => Err(wrong(path, &format!("its shape is {other:?}, not rows × numbers"))),
    }
}

fn wrong(path: &Path, why: &str) -> VectorError {
    VectorError::Content { path: path.to_owned(), why: why.to_owned() }
}

fn read(path: &Path) -> Result<Array2<f32>, VectorError> {
    let file = opened(path)?;
    let shape = table(path, file.shape())?;
    if file.order() == npyz::Order::Fortran {
        return Err(wrong(path, "its numbers stand column by column; save numpy.ascontiguousarray(x)"));
    }
    let kind = file.dtype();
    let failed = |error: io::Error| wrong(path, &error.to_string());
    // `'<f4'`, as Python writes it.
    let kind = kind.descr();
    let is = |name: &str| kind.trim_matches('\'') == name;
    let numbers: Vec<f32> = if is("<f4") {
        file.into_vec::<f32>().map_err(failed)?
    } else if is("<f8") {
        file.into_vec::<f64>().map_err(failed)?.into_iter().map(|x| x as f32).collect()
    } else {
        return Err(wrong(path, &format!("its numbers are {}, not <f4 or <f8", kind)));
    };
    if numbers.iter().any(|x| !x.is_finite()) {
        return Err(wrong(path, "some of its numbers are none (NaN, infinite)"));
    }
    Array2::from_shape_vec(shape, numbers).map_err(|error| wrong(path, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use npyz::WriterBuilder;

    pub(crate) fn some(count: u64, spread: u32) -> Vectors {
        Vectors::of(&Source::MadeUp { count, dim: 32, groups: 10, spread, seed: 7 }).unwrap()
    }

    #[test]
    fn they_are_as_long_as_1_and_lie_in_groups() {
        let vectors = some(1000, 30);
        assert_eq!((vectors.count(), vectors.questions.nrows()), (1000, QUESTIONS as usize));
        assert!(vectors.stored.rows().into_iter().all(|row| (row.dot(&row) - 1.0).abs() < 1e-4));
        // Those of its own group are near, and one in ten is of it.
        let near = vectors.stored.dot(&vectors.questions.row(0)).iter().filter(|cosine| **cosine > 0.7).count();
        assert!((50..200).contains(&near), "{near}");
        assert_eq!(some(1000, 30).stored, vectors.stored, "the same for a seed");
    }

    fn saved(shape: &[u64], numbers: &[f64]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut writer =
            npyz::WriteOptions::new().default_dtype().shape(shape).writer(file.as_file_mut()).begin_nd().unwrap();
        writer.extend(numbers.iter().copied()).unwrap();
        writer.finish().unwrap();
        file
    }

    #[test]
    fn a_file_of_numpy_is_read() {
        let rows = QUESTIONS + 2;
        let file = saved(&[rows, 3], &(0..3 * rows).map(|n| n as f64).collect::<Vec<_>>());
        assert_eq!(shape(file.path()).unwrap(), (rows, 3));
        let vectors = Vectors::of(&Source::File { path: file.path().to_owned(), count: 2, dim: 3 }).unwrap();
        let length = (9.0f32 + 16.0 + 25.0).sqrt();
        assert!((vectors.row(1)[0] - 3.0 / length).abs() < 1e-6, "{:?}", vectors.row(1));
    }

    #[test]
    fn what_is_none_is_one_sentence() {
        let said = |path: &Path| shape(path).unwrap_err().to_string();
        assert!(said(saved(&[6], &[0.0; 6]).path()).contains("rows × numbers"));
        assert!(said(saved(&[3, 2], &[0.0; 6]).path()).contains("too few"));
        assert!(said(Path::new("/etc/hostname")).contains("numpy.save"));
        assert!(said(Path::new("/nowhere.npy")).contains("/nowhere.npy"));
    }
}
