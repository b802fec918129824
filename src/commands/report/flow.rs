//! How calls move from tier to tier: nodes in columns, ribbons between them as wide as there are calls.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::gather::ModelFigures;
use super::rows::CallRow;
use crate::commands::stats::table::name;
use supervisor_engine::session::RecordedOutcome;

/// Tiers of a chain that have a column of their own; later ones share the last.
const COLUMNS: usize = 4;
/// Models of one column that have a node of their own.
const NODES: usize = 7;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const NODE: f64 = 12.0;
const GAP: f64 = 22.0;
const TOP: f64 = 18.0;
/// Room for the words beside the last column.
const RIGHT: f64 = 130.0;

/// Where a call was, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlowPlace {
    /// A model by its rank in the table of models.
    Model(usize),
    /// One of the many that have no node of their own.
    OtherModel,
    Accepted,
    Refused,
    NoAnswer,
}

type FlowNode = (usize, FlowPlace);

/// Calls that asked a model, by the way they took.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    links: BTreeMap<(FlowNode, FlowNode), usize>,
    labels: BTreeMap<FlowPlace, String>,
    last_column: usize,
}

impl Flow {
    pub(super) fn of(rows: &[CallRow], models: &[ModelFigures]) -> Self {
        let rank: BTreeMap<usize, usize> = models
            .iter()
            .enumerate()
            .map(|(rank, model)| (model.place, rank))
            .collect();
        let path = |row: &CallRow| -> Vec<usize> {
            let mut path: Vec<usize> = row
                .attempts
                .iter()
                .map(|attempt| rank[&attempt.model])
                .collect();
            // A second try of the same tier stays where it is.
            path.dedup();
            path.truncate(COLUMNS);
            path
        };
        let mut common: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); COLUMNS];
        for row in rows {
            for (column, model) in path(row).into_iter().enumerate() {
                *common[column].entry(model).or_default() += 1;
            }
        }
        let last_column = common.iter().filter(|column| !column.is_empty()).count();
        let named: Vec<Vec<usize>> = common
            .into_iter()
            .map(|column| {
                let mut models: Vec<(usize, usize)> = column.into_iter().collect();
                models.sort_by_key(|(model, times)| (std::cmp::Reverse(*times), *model));
                models
                    .into_iter()
                    .take(NODES)
                    .map(|(model, _)| model)
                    .collect()
            })
            .collect();
        let mut flow = Self {
            last_column,
            ..Self::default()
        };
        for row in rows.iter().filter(|row| !row.attempts.is_empty()) {
            let mut nodes: Vec<FlowNode> = Vec::new();
            for (column, model) in path(row).into_iter().enumerate() {
                let known = named[column].contains(&model);
                nodes.push((
                    column,
                    if known {
                        FlowPlace::Model(model)
                    } else {
                        FlowPlace::OtherModel
                    },
                ));
            }
            let end = match row.outcome {
                _ if row.is_accepted() => FlowPlace::Accepted,
                RecordedOutcome::Fail => FlowPlace::Refused,
                RecordedOutcome::Pass => FlowPlace::Accepted,
                RecordedOutcome::Error | RecordedOutcome::Skipped | RecordedOutcome::Other(_) => {
                    FlowPlace::NoAnswer
                }
            };
            nodes.push((last_column, end));
            for pair in nodes.windows(2) {
                *flow.links.entry((pair[0], pair[1])).or_default() += 1;
            }
            for (_, place) in nodes {
                flow.labels.entry(place).or_insert_with(|| match place {
                    FlowPlace::Model(rank) => name(&models[rank].stats.model),
                    FlowPlace::OtherModel => "other models".into(),
                    FlowPlace::Accepted => "accepted".into(),
                    FlowPlace::Refused => "refused".into(),
                    FlowPlace::NoAnswer => "no answer".into(),
                });
            }
        }
        flow
    }

    /// Nothing, if no call asked a model.
    pub(super) fn render(&self) -> Option<Markup> {
        if self.links.is_empty() {
            return None;
        }
        let mut sizes: BTreeMap<FlowNode, (usize, usize)> = BTreeMap::new();
        for ((from, to), times) in &self.links {
            sizes.entry(*from).or_default().1 += times;
            sizes.entry(*to).or_default().0 += times;
        }
        let size = |node: &FlowNode| sizes[node].0.max(sizes[node].1);
        let columns: Vec<Vec<FlowNode>> = (0..=self.last_column)
            .map(|column| {
                sizes
                    .keys()
                    .filter(|node| node.0 == column)
                    .copied()
                    .collect()
            })
            .collect();
        let total = |column: &Vec<FlowNode>| column.iter().map(size).sum::<usize>();
        let scale = columns
            .iter()
            .filter(|column| !column.is_empty())
            .map(|column| (HEIGHT - GAP * (column.len() - 1) as f64) / total(column).max(1) as f64)
            .fold(f64::INFINITY, f64::min);
        let x =
            |column: usize| column as f64 * (WIDTH - RIGHT - NODE) / self.last_column.max(1) as f64;
        let mut y: BTreeMap<FlowNode, f64> = BTreeMap::new();
        for column in &columns {
            let mut at = TOP;
            for node in column {
                y.insert(*node, at);
                at += (size(node) as f64 * scale).max(2.0) + GAP;
            }
        }
        let (mut out_at, mut in_at) = (y.clone(), y.clone());
        let mut ribbons = Vec::new();
        for ((from, to), times) in &self.links {
            let width = (*times as f64 * scale).max(1.0);
            let (begin, end) = (out_at.get_mut(from)?, in_at.get_mut(to)?);
            let (x1, x2) = (x(from.0) + NODE, x(to.0));
            let (y1, y2, middle) = (*begin, *end, f64::midpoint(x1, x2));
            let path = format!(
                "M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}V{:.1}C{middle:.1} {:.1} {middle:.1} {:.1} {x1:.1} {:.1}Z",
                y2 + width,
                y2 + width,
                y1 + width,
                y1 + width
            );
            *begin += width;
            *end += width;
            let said = format!("{} → {}: {times}", self.labels[&from.1], self.labels[&to.1]);
            ribbons.push((path, class(to.1), said));
        }
        let height = y
            .iter()
            .map(|(node, y)| y + size(node) as f64 * scale)
            .fold(0.0, f64::max)
            + 12.0;
        Some(html! {
            svg.chart.flow viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" aria-label="Flow of calls from tier to tier" {
                @for (path, class, said) in &ribbons {
                    path.ribbon.(class) d=(path) { title { (said) } }
                }
                @for (node, y) in &y {
                    rect.node.(class(node.1)) x=(format!("{:.1}", x(node.0))) y=(format!("{y:.1}"))
                        width=(NODE) height=(format!("{:.1}", (size(node) as f64 * scale).max(2.0))) rx="2" {
                        title { (self.labels[&node.1]) ": " (size(node)) }
                    }
                    @let beside = node.0 == self.last_column;
                    text.label x=(format!("{:.1}", if beside { x(node.0) + NODE + 6.0 } else { x(node.0) }))
                        y=(format!("{:.1}", if beside { y + 11.0 } else { y - 5.0 })) {
                        (self.labels[&node.1]) " " tspan.dim { (size(node)) }
                    }
                }
            }
        })
    }
}

fn class(place: FlowPlace) -> &'static str {
    match place {
        FlowPlace::Model(rank) => super::charts::series(rank),
        FlowPlace::OtherModel => "s-other",
        FlowPlace::Accepted => "s-pass",
        FlowPlace::Refused => "s-fail",
        FlowPlace::NoAnswer => "s-error",
    }
}
