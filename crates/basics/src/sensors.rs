//! Where Linux keeps heat and throttling, and which readings are temperatures: one account for `machine`, which reads them
//! once, and `observe`, which reads them while a job runs.

/// The folder of the platform's devices, below the root.
pub const PLATFORM: &str = "sys/devices/platform";
/// The file of a Raspberry Pi's firmware, in a folder [`is_firmware`] of a folder [`is_soc`] of [`PLATFORM`].
pub const THROTTLED: &str = "get_throttled";

/// A system on a chip: `soc`, on a Pi 5 `soc@107c000000`.
pub fn is_soc(name: &str) -> bool {
    name.starts_with("soc")
}

/// Its firmware: `soc:firmware`, on a Pi 5 `soc@107c000000:firmware`.
pub fn is_firmware(name: &str) -> bool {
    name.ends_with("firmware")
}

/// A reading of the thermal framework or of hwmon, in thousandths, as °C; outside −40…150 °C it is no temperature.
pub fn celsius(milli: f64) -> Option<f64> {
    Some(milli / 1000.0).filter(|c| (-40.0..150.0).contains(c))
}
