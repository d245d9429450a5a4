//! Mixtures of experts: of their tensors a token touches the slices of the few experts that are chosen for it. Which tensors
//! are experts' is told by name and form, how many are used by the keys.

use super::Part;
use super::order::Name;
use crate::error::{GgufError, excerpt};
use crate::header::{Header, Tensor};
use crate::value::Value;

const USED: &str = "expert_used_count";

/// The keys about experts, looked up once for all tensors.
pub(super) struct Experts<'a> {
    header: &'a Header,
    count: Option<&'a Value>,
    used: Option<&'a Value>,
}

impl<'a> Experts<'a> {
    pub fn of(header: &'a Header) -> Self {
        Experts { header, count: header.value("expert_count"), used: header.value(USED) }
    }

    /// How much of a tensor is touched.
    pub fn part(&self, tensor: &Tensor, name: &Name<'_>) -> Result<Part, GgufError> {
        let Some(layer) = name.layer else { return Ok(Part::Whole) };
        let said =
            |value: Option<&Value>| value.and_then(|value| value.of_layer(layer)?.count()).filter(|count| *count > 0);
        let in_groups = name.role.ends_with("_chexps");
        let stacked = name.role.starts_with("ffn_")
            && (in_groups || name.role.ends_with("_exps"))
            && !name.role.contains("norm")
            // A bias has one dimension less than a weight; what has only one is no stack.
            && tensor.dims.len() >= 2;
        let of = match name.expert {
            Some(_) => said(self.count),
            None if stacked => tensor.dims.last().copied().filter(|of| *of > 0),
            None => None,
        };
        let Some(of) = of else { return Ok(Part::Whole) };
        let wrong = |why: String| Err(GgufError::Key { key: excerpt(&self.header.key(USED)), why });
        let shown = || excerpt(&tensor.name);
        match said(self.used) {
            None => wrong(format!(
                "is missing or zero, and {} is one of experts: without it nobody knows how many a token uses; get the model in \
                 a file that says so",
                shown()
            )),
            // Groups of experts that share a slice (GroveMoE) are fewer than experts.
            Some(used) if in_groups => Ok(Part::Experts { used: used.min(of), of }),
            Some(used) if used > of => {
                wrong(format!("is {used}, and {} has {of} experts; the file is damaged", shown()))
            }
            Some(used) => Ok(Part::Experts { used, of }),
        }
    }
}
