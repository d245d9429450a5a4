//! Throttling while a step ran: a throttled processor and an undervolted board measure themselves. What held before is
//! the machine's own notice.

use super::{Draft, Scene, at, finding};
use crate::model::StepView;
use basics::units::listed;

/// Bits of the Raspberry Pi firmware's word that hold at the moment (documentation of `vcgencmd get_throttled`).
const NOW: [(u32, &str); 4] = [
    (0, "under-voltage"),
    (1, "the CPU frequency capped"),
    (2, "throttled"),
    (3, "the soft temperature limit reached"),
];
/// A Raspberry Pi begins to throttle at 80 °C, other boards near it.
const HOT_C: f64 = 80.0;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    during(scene).into_iter().collect()
}

fn advised(mut found: crate::Finding, bits: u32) -> Draft {
    let advice = if bits & 1 != 0 {
        "use a stronger power supply and a short cable, or power the disks on their own"
    } else {
        "give the processor a heat sink or a fan, and measure again"
    };
    found.advice = Some(advice.to_owned());
    found.into()
}

fn during(scene: &Scene<'_, '_>) -> Option<Draft> {
    let mut bits = 0;
    let mut hottest: Option<f64> = None;
    let mut evidence = Vec::new();
    for step in &scene.run.steps {
        let here = step.samples.iter().filter_map(|sample| sample.throttled).fold(0, |all, word| all | word & 0xf);
        let heat = step.samples.iter().filter_map(|sample| sample.temperature_c).reduce(f64::max);
        hottest = hottest.into_iter().chain(heat).reduce(f64::max);
        if here != 0 {
            bits |= here;
            evidence.push(at(step, format_args!("{}{}", words(here), degrees(heat))));
        } else if heat.is_some_and(|heat| heat >= HOT_C) && slowed(step) {
            bits |= 1 << 2;
            evidence.push(at(step, format_args!("CPU frequency fell{}", degrees(heat))));
        }
    }
    if bits == 0 {
        return None;
    }
    let steps = if evidence.len() == 1 { "a step".to_owned() } else { format!("{} steps", evidence.len()) };
    let text = format!(
        "During {steps} the machine was held back ({}){}: the figures are lower than it can do.",
        words(bits),
        degrees(hottest)
    );
    Some(advised(finding("throttled", 85, None, text, evidence), bits))
}

fn words(bits: u32) -> String {
    listed(&NOW.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, word)| (*word).to_owned()).collect::<Vec<_>>())
}

fn degrees(heat: Option<f64>) -> String {
    heat.map_or_else(String::new, |heat| format!(", {heat:.0} °C"))
}

/// True when the frequency fell by a fifth or more and did not recover by the step's end.
fn slowed(step: &StepView<'_>) -> bool {
    let speeds: Vec<u32> = step.samples.iter().filter_map(|sample| sample.cpu_mhz).collect();
    let top = speeds.iter().max();
    speeds.last().zip(top).is_some_and(|(last, top)| f64::from(*last) < 0.8 * f64::from(*top))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::found;
    use crate::testing::{Run, Step};

    fn run(bits: u32, heat: f64, mhz: [u32; 2]) -> Run {
        let mut step = Step::seq_read("sda", 100.0);
        for (i, sample) in step.sampled().iter_mut().enumerate() {
            sample.throttled = Some(if i == 5 { bits } else { 0 });
            sample.temperature_c = Some(heat);
            sample.cpu_mhz = Some(mhz[usize::from(i > 10)]);
        }
        Run::default().steps([step])
    }

    #[test]
    fn a_bit_in_one_sample_is_enough_and_old_bits_are_not() {
        let hot = found(&run(0b0100, 84.0, [2400, 2400]), "throttled");
        assert_eq!(
            hot[0].text,
            "During a step the machine was held back (throttled), 84 °C: the figures are lower than it can do."
        );
        assert_eq!(hot[0].evidence, ["step 0 seq-read: throttled, 84 °C"]);
        assert!(found(&run(0x5_0000, 60.0, [2400, 2400]), "throttled").is_empty());
    }

    #[test]
    fn without_the_firmware_heat_and_a_falling_clock_tell() {
        assert_eq!(found(&run(0, 85.0, [2400, 1500]), "throttled").len(), 1);
        assert!(found(&run(0, 60.0, [2400, 1500]), "throttled").is_empty());
    }
}
