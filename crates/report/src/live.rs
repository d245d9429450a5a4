//! What happens on the machine at this moment, on one screen of 80 by 24: processors, memory and swap, each disk beside the
//! ceiling of its way, and what was worth telling. It draws what [`study::flow`] says; when, and on what, is left to the caller.

use basics::Bytes;
use basics::units::{grouped, significant};
use machine::Machine;
use observe::{Compressed, Memory};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use std::collections::VecDeque;
use study::flow::{Begun, DiskFlow, Event, Flow, SLOW_MS, STUCK, share_of_ceiling};

/// So many looks are drawn as a course.
const COURSE: usize = 240;
/// So many events are kept.
const EVENTS: usize = 50;
/// Cells of a bar.
const BAR: usize = 10;
/// Left column, which names the row.
const NAME: usize = 8;

/// What is under way, where tiermark itself measures meanwhile.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Work {
    /// Which step of how many, and what it does.
    pub step: String,
    /// 10^6 bytes a second in the last interval.
    pub mbps: Option<f64>,
    /// Operations a second in it.
    pub per_s: Option<f64>,
    /// 50th, 99th and 99.9th percentile in it, µs.
    pub latency_us: Option<[f64; 3]>,
    /// Time left, in words.
    pub left: Option<String>,
}

/// What is shown.
#[derive(Debug)]
pub struct Live {
    title: String,
    /// Of each disk: what it is, and the practical rate of its way.
    disks: Vec<(String, String, Option<f64>)>,
    now: Option<(Flow, Memory)>,
    swapped: VecDeque<u64>,
    begun: Begun,
    events: VecDeque<(String, String)>,
    work: Option<Work>,
    color: bool,
}

impl Live {
    /// For this machine; `color` for a terminal that has it.
    pub fn new(machine: &Machine, color: bool) -> Self {
        let model = machine.model.get().map_or("this machine", String::as_str);
        let kernel = machine.kernel.get().map_or(String::new(), |kernel| format!(", Linux {kernel}"));
        let disks = machine.tiers.iter().filter(|tier| tier.block.is_some() && tier.below.is_empty());
        let disks = disks.map(|tier| {
            let what = tier.model.get().cloned().unwrap_or_else(|| format!("{:?}", tier.kind).to_lowercase());
            (tier.name.clone(), what, tier.ceiling.get().map(|ceiling| ceiling.practical_mbps.1))
        });
        Live {
            title: format!("tiermark watch   {model}{kernel}"),
            disks: disks.collect(),
            now: None,
            swapped: VecDeque::new(),
            begun: Begun::default(),
            events: VecDeque::new(),
            work: None,
            color,
        }
    }

    /// The latest look, at `clock` (hours, minutes, seconds).
    pub fn look(&mut self, clock: &str, flow: Flow, memory: Memory, events: Vec<Event>) {
        let swapped =
            flow.swap_mbps.map_or(0.0, |(into, out)| into + out) + flow.zswap_mbps.map_or(0.0, |(i, o)| i + o);
        push(&mut self.swapped, (swapped * 10.0) as u64, COURSE);
        for event in self.begun.of(events) {
            push(&mut self.events, (clock.to_owned(), event.text), EVENTS);
        }
        self.now = Some((flow, memory));
    }

    /// What tiermark does meanwhile.
    pub fn working(&mut self, work: Option<Work>) {
        self.work = work;
    }

    /// Something that the work itself has to say.
    pub fn say(&mut self, clock: &str, text: &str) {
        push(&mut self.events, (clock.to_owned(), text.to_owned()), EVENTS);
    }

    /// Draws all of it.
    pub fn draw(&self, frame: &mut Frame<'_>, clock: &str) {
        let area = frame.area();
        let mut lines = vec![self.head(area.width.into(), clock)];
        lines.extend(self.work.iter().flat_map(|work| self.work(work)));
        match &self.now {
            None => lines.push(Line::from("looking …")),
            Some((flow, memory)) => {
                lines.extend(self.machine(flow, memory));
                lines.push(Line::default());
                lines.extend(self.table(flow, area.width.into()));
            }
        }
        // Events take what is left, and the course of swapping two lines of it, where something was swapped.
        let course = if self.swapped.iter().any(|swapped| *swapped > 0) && area.height >= 18 { 3 } else { 0 };
        let top = (lines.len() as u16).min(area.height.saturating_sub(course));
        let [upper, middle, lower] =
            Layout::vertical([Constraint::Length(top), Constraint::Length(course), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Paragraph::new(lines), upper);
        self.course(frame, middle);
        self.told(frame, lower);
    }

    fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// A figure that asks for attention: bold where there is no colour.
    fn alarm(&self) -> Style {
        if self.color {
            Style::new().fg(ratatui::style::Color::Red).add_modifier(Modifier::BOLD)
        } else {
            self.strong()
        }
    }

    fn head(&self, width: usize, clock: &str) -> Line<'static> {
        let right = format!("{clock}   q ends");
        let room = width.saturating_sub(right.chars().count() + 1);
        let title: String = self.title.chars().take(room).collect();
        Line::from(Span::styled(format!("{title:room$} {right}"), self.strong()))
    }

    fn work(&self, work: &Work) -> Vec<Line<'static>> {
        let left = work.left.as_ref().map_or(String::new(), |left| format!("   {left}"));
        let mut lines = vec![row("step", format!("{}{left}", work.step))];
        let figures = [
            work.mbps.map(|rate| format!("{} MB/s", figure(rate))),
            work.per_s.map(|rate| format!("{} a second", figure(rate))),
            work.latency_us
                .map(|[p50, p99, p999]| format!("p50 {}  p99 {}  p99.9 {} µs", figure(p50), figure(p99), figure(p999))),
        ];
        let figures: Vec<String> = figures.into_iter().flatten().collect();
        if !figures.is_empty() {
            lines.push(row("", figures.join("   ")));
        }
        lines
    }

    fn machine(&self, flow: &Flow, memory: &Memory) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut cpu = Vec::new();
        if let Some(shares) = flow.cpu {
            cpu.push(format!("{} busy {:>3.0} %   I/O wait {:>3.0} %", bar(shares.busy), shares.busy, shares.iowait));
            if shares.steal >= 0.5 {
                cpu.push(format!("stolen {:.0} %", shares.steal));
            }
        }
        cpu.extend(flow.cpu_mhz.map(|mhz| format!("{} MHz", grouped(mhz.into()))));
        cpu.extend(flow.temperature_c.map(|degrees| format!("{degrees:.0} °C")));
        lines.push(row("CPU", words(&cpu)));
        lines.push(self.stalls(flow));
        if let (Some(total), Some(available)) = (memory.total, memory.available) {
            let used = total.0.saturating_sub(available.0);
            let dirty = memory.dirty.map_or(String::new(), |dirty| format!("   dirty {}", size(dirty)));
            let share = 100.0 * used as f64 / total.0.max(1) as f64;
            let text = format!(
                "{} {} of {} taken   {} free{dirty}",
                bar(share),
                size(Bytes(used)),
                size(total),
                size(available)
            );
            lines.push(row("memory", text));
        }
        let faults =
            flow.major_faults_per_s.map_or(String::new(), |faults| format!("  major faults {}/s", figure(faults)));
        match (memory.swap_total, memory.swap_used) {
            (Some(total), Some(used)) if total.0 > 0 => {
                let share = 100.0 * used.0 as f64 / total.0 as f64;
                let flows = flow
                    .swap_mbps
                    .map_or(String::new(), |(into, out)| format!("  in {} out {} MB/s", figure(into), figure(out)));
                lines.push(row("swap", format!("{} {} of {}{flows}{faults}", bar(share), size(used), size(total))));
            }
            _ => lines.push(row("swap", format!("none{faults}"))),
        }
        if let Some(held) = memory.zswap.filter(|zswap| zswap.held.0 > 0) {
            let flows = flow
                .zswap_mbps
                .map_or(String::new(), |(into, out)| format!("   in {} out {} MB/s", figure(out), figure(into)));
            lines.push(row("zswap", format!("{}{flows}", compressed(held))));
        }
        lines.extend(memory.zram.iter().map(|(name, held)| row(name, compressed(*held))));
        lines
    }

    fn stalls(&self, flow: &Flow) -> Line<'static> {
        if flow.stalled_percent.is_empty() {
            return row("stalled", "not told by this kernel (PSI is off: psi=1 on its command line)".to_owned());
        }
        let mut spans = vec![Span::styled(format!("{:NAME$}", "stalled"), self.strong())];
        for (name, label) in [("cpu", "CPU"), ("memory", "memory"), ("io", "I/O")] {
            let Some((some, full)) = flow.stalled_percent.get(name) else { continue };
            let all = if name == "cpu" { String::new() } else { format!(" (all {full:.0} %)") };
            let style = if *full >= STUCK { self.alarm() } else { Style::new() };
            spans.push(Span::styled(format!("{label} {some:>3.0} %{all}   "), style));
        }
        Line::from(spans)
    }

    fn table(&self, flow: &Flow, width: usize) -> Vec<Line<'static>> {
        let head = format!(
            "{:10}{:>9}{:>9}  {:18}{:>8}{:>8}{:>8}{:>8}",
            "disk", "read", "write", "share of its way", "reads/s", "ms", "write/s", "ms"
        );
        let mut lines = vec![Line::from(Span::styled(cut(&head, width), self.strong()))];
        for (name, what, ceiling) in &self.disks {
            let Some(disk) = flow.disks.get(name) else { continue };
            lines.push(self.disk(name, what, *ceiling, disk, width));
        }
        if lines.len() == 1 {
            lines.push(Line::from("no disk was read or written"));
        }
        lines
    }

    fn disk(&self, name: &str, what: &str, ceiling: Option<f64>, disk: &DiskFlow, width: usize) -> Line<'static> {
        let share = match ceiling.and_then(|ceiling| share_of_ceiling(disk, ceiling)) {
            Some(share) => format!("{} {share:>3.0} %", bar(share)),
            None => format!("{} busy", figure(disk.busy_percent) + " %"),
        };
        let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), figure);
        let text = format!(
            "{:10}{:>9}{:>9}  {share:18}{:>8}{:>8}{:>8}{:>8}  {what}",
            cut(name, 9),
            figure(disk.read_mbps),
            figure(disk.write_mbps),
            figure(disk.reads_per_s),
            ms(disk.read_ms),
            figure(disk.writes_per_s),
            ms(disk.write_ms),
        );
        let slow = disk.read_ms.unwrap_or(0.0).max(disk.write_ms.unwrap_or(0.0)) >= SLOW_MS;
        Line::from(Span::styled(cut(&text, width), if slow { self.alarm() } else { Style::new() }))
    }

    /// What was swapped over the last minutes, the newest at the right.
    fn course(&self, frame: &mut Frame<'_>, area: Rect) {
        if area.height == 0 {
            return;
        }
        let [label, rest] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let most = self.swapped.iter().max().copied().unwrap_or(0) as f64 / 10.0;
        let text = format!("swapped, in and out, at most {} MB/s", figure(most));
        frame.render_widget(Paragraph::new(Span::styled(text, self.strong())), label);
        let shown = usize::from(rest.width).min(self.swapped.len());
        let course: Vec<u64> = self.swapped.iter().skip(self.swapped.len() - shown).copied().collect();
        frame.render_widget(Sparkline::default().data(&course), rest);
    }

    fn told(&self, frame: &mut Frame<'_>, area: Rect) {
        if area.height < 2 {
            return;
        }
        let rows = usize::from(area.height) - 2;
        let mut lines = vec![Line::default(), Line::from(Span::styled("what happened", self.strong()))];
        if self.events.is_empty() {
            lines.push(Line::from("nothing that would have to be told"));
        }
        lines.extend(self.events.iter().rev().take(rows).map(|(clock, text)| Line::from(format!("{clock}  {text}"))));
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// The latest look as one line of text, where there is no terminal to draw on.
    pub fn line(&self, clock: &str) -> String {
        let Some((flow, memory)) = &self.now else { return format!("{clock}  looking …") };
        let mut words = vec![clock.to_owned()];
        words.extend(flow.cpu.map(|cpu| format!("CPU {:.0} %, I/O wait {:.0} %", cpu.busy, cpu.iowait)));
        words.extend(flow.stalled_percent.get("memory").map(|(_, all)| format!("stalled for memory {all:.0} %")));
        words.extend(memory.available.map(|available| format!("{} free", size(available))));
        words.extend(flow.swap_mbps.map(|(into, out)| format!("swap in {} out {} MB/s", figure(into), figure(out))));
        for (name, disk) in &flow.disks {
            if disk.read_mbps + disk.write_mbps > 0.0 {
                words.push(format!("{name} {} + {} MB/s", figure(disk.read_mbps), figure(disk.write_mbps)));
            }
        }
        words.join("  ")
    }
}

fn push<T>(onto: &mut VecDeque<T>, new: T, most: usize) {
    if onto.len() == most {
        onto.pop_front();
    }
    onto.push_back(new);
}

fn row(name: &str, text: String) -> Line<'static> {
    Line::from(vec![Span::styled(format!("{name:NAME$}"), Style::new().add_modifier(Modifier::BOLD)), Span::raw(text)])
}

fn words(words: &[String]) -> String {
    if words.is_empty() { "not told by this kernel".to_owned() } else { words.join("   ") }
}

fn bar(percent: f64) -> String {
    let full = ((percent / 100.0 * BAR as f64).round() as usize).min(BAR);
    format!("{}{}", "█".repeat(full), "·".repeat(BAR - full))
}

/// Three digits, and nothing where nothing is.
fn figure(value: f64) -> String {
    if value < 0.005 {
        "0".to_owned()
    } else if value < 0.1 {
        format!("{value:.2}")
    } else {
        significant(value)
    }
}

fn size(bytes: Bytes) -> String {
    let bytes = bytes.0 as f64;
    if bytes >= 1e9 { format!("{} GB", significant(bytes / 1e9)) } else { format!("{} MB", figure(bytes / 1e6)) }
}

fn compressed(held: Compressed) -> String {
    let ratio = held.held.0 as f64 / held.ram.0.max(1) as f64;
    format!("{} in {} of RAM ({ratio:.1} : 1)", size(held.held), size(held.ram))
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(live: &Live, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| live.draw(frame, "10:04:12")).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(width.into());
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
    }

    fn flow() -> Flow {
        let disk = DiskFlow {
            read_mbps: 212.5,
            reads_per_s: 12_970.0,
            read_ms: Some(0.31),
            busy_percent: 99.0,
            ..DiskFlow::default()
        };
        Flow {
            seconds: 1.0,
            cpu: Some(study::flow::Processors { busy: 34.0, iowait: 41.0, steal: 0.0 }),
            stalled_percent: [("memory", (62.0, 41.0)), ("io", (30.0, 12.0))]
                .map(|(name, s)| (name.to_owned(), s))
                .into(),
            major_faults_per_s: Some(12_345.0),
            swap_mbps: Some((210.0, 3.1)),
            disks: [("sda".to_owned(), disk)].into(),
            temperature_c: Some(54.0),
            cpu_mhz: Some(2400),
            ..Flow::default()
        }
    }

    fn memory() -> Memory {
        Memory {
            total: Some(Bytes(4_000_000_000)),
            available: Some(Bytes(500_000_000)),
            dirty: Some(Bytes(12_000_000)),
            swap_total: Some(Bytes(2_000_000_000)),
            swap_used: Some(Bytes(1_500_000_000)),
            zswap: Some(Compressed { held: Bytes(600_000_000), ram: Bytes(200_000_000) }),
            zram: vec![],
        }
    }

    fn live() -> Live {
        let mut live = Live::new(&Machine::default(), false);
        live.disks = vec![("sda".to_owned(), "S3520".to_owned(), Some(430.0))];
        let event =
            Event { kind: "memory".to_owned(), text: "all programs waited for memory 41 % of the time".to_owned() };
        live.look("10:04:12", flow(), memory(), vec![event]);
        live
    }

    #[test]
    fn all_of_it_is_on_a_screen_of_80_by_24() {
        let shown = screen(&live(), 80, 24);
        let text = shown.join("\n");
        for part in [
            "10:04:12   q ends",
            "busy  34 %   I/O wait  41 %   2,400 MHz   54 °C",
            "memory  62 % (all 41 %)",
            "█████████· 3.50 GB of 4 GB taken   500 MB free   dirty 12 MB",
            "in 210 out 3.10 MB/s  major faults 12,345/s",
            "600 MB in 200 MB of RAM (3.0 : 1)",
            "sda",
            "█████·····  49 %",
            "10:04:12  all programs waited for memory 41 % of the time",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(live().line("10:04:12").contains("sda 212 + 0 MB/s"), "{}", live().line("10:04:12"));
    }

    #[test]
    fn a_step_that_runs_stands_above_the_rest() {
        let mut live = live();
        live.working(Some(Work {
            step: "3 of 7: swap-sim on /mnt".to_owned(),
            mbps: Some(201.0),
            per_s: Some(12_300.0),
            latency_us: Some([210.0, 640.0, 2100.0]),
            left: Some("40 s left".to_owned()),
        }));
        let text = screen(&live, 80, 24).join("\n");
        assert!(text.contains("3 of 7: swap-sim on /mnt   40 s left"), "{text}");
        assert!(text.contains("201 MB/s   12,300 a second   p50 210  p99 640  p99.9 2,100 µs"), "{text}");
    }

    #[test]
    fn no_size_of_a_terminal_breaks_it() {
        let live = live();
        for (width, height) in [(1, 1), (20, 5), (80, 3), (40, 24), (300, 100)] {
            assert_eq!(screen(&live, width, height).len(), usize::from(height));
        }
        let text = screen(&Live::new(&Machine::default(), true), 80, 24).join("\n");
        assert!(text.contains("looking …"), "{text}");
    }
}
