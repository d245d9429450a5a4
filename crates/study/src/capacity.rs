//! Whether a device holds what it claims: what tagged blocks say that were written all over it and read again.

use crate::model::StepView;
use basics::job::Entropy;
use basics::{Bytes, FailKind};

/// What is known of a device's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capacity {
    /// Nobody looked.
    Unknown,
    /// Every block that was looked for is there.
    All,
    /// Addresses from here on begin again at 0.
    Wraps(Bytes),
    /// What was written here is gone.
    Loses(Bytes),
}

/// What these steps of one device say, and the step that says it.
pub(crate) fn capacity<'s, 'a>(
    steps: impl Iterator<Item = &'s StepView<'a>> + Clone,
) -> (Capacity, Option<&'s StepView<'a>>)
where
    'a: 's,
{
    let looked = steps.filter(|step| step.job.entropy == Entropy::Tagged && step.job.direction.reads());
    let gone = looked.clone().filter_map(|step| match step.failed {
        Some((FailKind::Astray { at, holds }, _)) => Some((at, holds, step)),
        _ => None,
    });
    // The first block beyond the end leads back past the beginning once; later ones may do so more often.
    match gone.min_by_key(|(at, ..)| *at) {
        Some((at, Some(holds), step)) if holds < at => (Capacity::Wraps(Bytes(at.0 - holds.0)), Some(step)),
        Some((at, _, step)) => (Capacity::Loses(at), Some(step)),
        None if looked.clone().any(StepView::is_whole) => (Capacity::All, None),
        None => (Capacity::Unknown, None),
    }
}
