//! Vectors as bytes, and back.

use crate::Vectors;
use basics::vectors::Format;
use vq::{Quantizer, ScalarQuantizer};

/// Stores vectors in a format, all by the same steps.
#[derive(Debug, Clone)]
pub struct Coder {
    format: Format,
    /// Between the least and the largest number of all; nothing where each is kept as it is.
    steps: Option<ScalarQuantizer>,
}

impl Coder {
    /// For these vectors.
    pub fn new(format: Format, vectors: &Vectors) -> Self {
        let levels = match format {
            Format::F32 => None,
            Format::Int8 => Some(256),
            Format::Int4 => Some(16),
        };
        let steps = levels.and_then(|levels| {
            let (least, most) =
                vectors.stored.iter().fold((0.0f32, 0.0f32), |(least, most), x| (least.min(*x), most.max(*x)));
            // Where all are zero any range does.
            ScalarQuantizer::new(least, most.max(least + f32::MIN_POSITIVE), levels)
                .or_else(|_| ScalarQuantizer::new(-1.0, 1.0, levels))
                .ok()
        });
        Coder { format, steps }
    }

    /// As it is stored.
    pub fn encode(&self, vector: &[f32]) -> Vec<u8> {
        let Some(levels) = self.steps.as_ref().and_then(|steps| steps.quantize(vector).ok()) else {
            return vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        };
        match self.format {
            // Two to a byte, the first one below.
            Format::Int4 => levels.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 4)).collect(),
            _ => levels,
        }
    }

    /// What is left of it.
    pub fn decode(&self, bytes: &[u8], dim: usize) -> Vec<f32> {
        let Some(steps) = &self.steps else {
            return bytes.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
        };
        let levels: Vec<u8> = match self.format {
            Format::Int4 => bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(dim).collect(),
            _ => bytes.to_vec(),
        };
        steps.dequantize(&levels).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::vectors::Source;

    #[test]
    fn each_format_keeps_what_it_can() {
        let vectors = Vectors::of(&Source::MadeUp { count: 50, dim: 33, groups: 3, spread: 50, seed: 1 }).unwrap();
        let error = |format: Format| {
            let coder = Coder::new(format, &vectors);
            let row = vectors.row(17).to_vec();
            let bytes = coder.encode(&row);
            assert_eq!(bytes.len() as u64, format.bytes(33).0);
            let back = coder.decode(&bytes, 33);
            assert_eq!(back.len(), 33);
            row.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0f32, f32::max)
        };
        let range = vectors.stored.iter().fold(0.0f32, |most, x| most.max(x.abs())) * 2.0;
        assert_eq!(error(Format::F32), 0.0);
        // Half a step at most.
        assert!(error(Format::Int8) <= range / 255.0 / 2.0 * 1.01);
        assert!(error(Format::Int4) <= range / 15.0 / 2.0 * 1.01 && error(Format::Int4) > error(Format::Int8));
    }
}
