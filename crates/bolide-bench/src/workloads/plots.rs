//! Plots of a report, as SVG: groups of bars, one group for each workload, one bar for each system. Scales are logarithmic: the figures differ by orders of magnitude.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::report::{Measured, Report, Side, Summary};
use crate::Result;

const SIZE: (u32, u32) = (1_000, 420);
/// Distinct for people who see colours differently too (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(204, 51, 17),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
];
/// Room for the legend on the right, as a part of all groups' width.
const LEGEND: f64 = 0.15;
/// The part of a group's width that bars take.
const FILLED: f64 = 0.8;
/// Where the name of a group is written, below the axis, in pixels.
const NAME_OFFSET: i32 = 8;

/// A plot: its title, and the figure of a side.
struct Plot {
    file: &'static str,
    title: &'static str,
    figure: fn(&Measured, &Side) -> Option<f64>,
}

const PLOTS: [Plot; 3] = [
    Plot {
        file: "throughput.svg",
        title: "Operations per second, as a multiple of Bolide's",
        figure: |workload, side| workload.ratio(side, |round| round.operations_per_second),
    },
    Plot {
        file: "latency-p50.svg",
        title: "Median latency at the fixed rate, in microseconds",
        figure: |_, side| Summary::of(&side.rounds, |round| round.latency.p50).map(|summary| summary.median),
    },
    Plot {
        file: "latency-p99.svg",
        title: "99th percentile of the latency at the fixed rate, in microseconds",
        figure: |_, side| Summary::of(&side.rounds, |round| round.latency.p99).map(|summary| summary.median),
    },
];

/// The plots: file, title, content. None without figures.
pub fn all(report: &Report) -> Result<Vec<(String, String, String)>> {
    let mut drawn = Vec::new();
    for plot in &PLOTS {
        if let Some(content) = draw(report, plot)? {
            drawn.push((plot.file.to_owned(), plot.title.to_owned(), content));
        }
    }
    Ok(drawn)
}

/// A bar: its group, its place in the group, its height.
struct Bar {
    group: usize,
    system: usize,
    height: f64,
}

fn draw(report: &Report, plot: &Plot) -> Result<Option<String>> {
    let systems = systems(report);
    let bars: Vec<Bar> = bars(report, &systems, plot);
    let highest = bars.iter().map(|bar| bar.height).fold(0.0, f64::max);
    let lowest = bars.iter().map(|bar| bar.height).fold(f64::INFINITY, f64::min);
    if highest <= 0.0 {
        return Ok(None);
    }
    let (bottom, top) = (power_below(lowest), power_above(highest));
    let groups = report.workloads.len() as f64;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(plot.title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..groups * (1.0 + LEGEND), (bottom..top).log_scale())?;
        chart.configure_mesh().disable_x_mesh().disable_x_axis().draw()?;
        for (number, system) in systems.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let of_system = bars.iter().filter(|bar| bar.system == number);
            let width = FILLED / systems.len() as f64;
            let rectangles = of_system.map(|bar| {
                let left = bar.group as f64 + (1.0 - FILLED) / 2.0 + width * number as f64;
                Rectangle::new([(left, bottom), (left + width, bar.height)], colour.filled())
            });
            chart
                .draw_series(rectangles)?
                .label(*system)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
        }
        for (group, workload) in report.workloads.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(group as f64 + 0.5, bottom));
            let style = ("sans-serif", 14)
                .into_text_style(&area)
                .pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(workload.name.as_str(), (x, y + NAME_OFFSET), style))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 14))
            .draw()?;
        area.present()?;
    }
    Ok(Some(svg))
}

/// The systems with figures, in the order of their first.
fn systems(report: &Report) -> Vec<&str> {
    let mut systems: Vec<&str> = Vec::new();
    let sides = report.workloads.iter().flat_map(|workload| &workload.sides);
    for side in sides.filter(|side| !side.rounds.is_empty()) {
        if !systems.contains(&side.system.as_str()) {
            systems.push(&side.system);
        }
    }
    systems
}

fn bars(report: &Report, systems: &[&str], plot: &Plot) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (group, workload) in report.workloads.iter().enumerate() {
        for side in &workload.sides {
            let system = systems.iter().position(|system| *system == side.system);
            let height = (plot.figure)(workload, side).filter(|height| *height > 0.0);
            if let (Some(system), Some(height)) = (system, height) {
                bars.push(Bar { group, system, height });
            }
        }
    }
    bars
}

/// The greatest power of ten below a figure, so that every bar can be seen.
fn power_below(figure: f64) -> f64 {
    10_f64.powf((figure * 0.9).log10().floor())
}

/// The least power of ten above a figure, with room for the legend.
fn power_above(figure: f64) -> f64 {
    10_f64.powf((figure * 1.5).log10().ceil())
}

#[cfg(test)]
mod tests;
